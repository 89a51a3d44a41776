// A hash table from node names to dense ids that stores no names: eight bytes per slot.
//
// Thread safety: Find may run in parallel once the last Insert is done.
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_NAME_INDEX_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_NAME_INDEX_H_

#include <cstdint>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

namespace spillway::core {

// Linear probing with a load factor of at most one half. The hash is Abseil's, seeded per process,
// so that a hostile graph cannot choose names that collide; nothing depends on the order of the
// slots.
class NameIndex {
 public:
  static constexpr int32_t kNotFound = -1;

  // Makes room for `count` names and forgets all others.
  void Reset(size_t count) {
    size_t slots = 16;
    while (slots < 2 * count) slots *= 2;
    slots_.assign(slots, Slot{0, kNotFound});
  }

  // A name's hash. In a large graph every lookup takes several cache misses. To look up many names,
  // compute their tags first and call Prefetch for each, so that the misses overlap.
  static uint32_t Tag(absl::string_view name) {
    return static_cast<uint32_t>(absl::Hash<absl::string_view>()(name) >> 16);
  }
  void Prefetch(uint32_t tag) const { __builtin_prefetch(&slots_[tag & (slots_.size() - 1)]); }
  // The id that a lookup with this tag is likely to find, or kNotFound. REQUIRES: Reset.
  int32_t Guess(uint32_t tag) const { return slots_[tag & (slots_.size() - 1)].id; }

  // Adds `name`, whose tag is `tag`, as `id` and returns kNotFound, or returns the id that has this
  // name already. `name_of(id)` returns the name of an id. REQUIRES: fewer Inserts than Reset made
  // room for.
  template <typename NameOf>
  int32_t Insert(absl::string_view name, uint32_t tag, int32_t id, const NameOf& name_of) {
    Slot& slot = Probe(slots_, name, tag, name_of);
    if (slot.id != kNotFound) return slot.id;
    slot = {tag, id};
    return kNotFound;
  }

  template <typename NameOf>
  int32_t Find(absl::string_view name, uint32_t tag, const NameOf& name_of) const {
    return slots_.empty() ? kNotFound : Probe(slots_, name, tag, name_of).id;
  }

 private:
  struct Slot {
    uint32_t tag;
    int32_t id;
  };

  template <typename Slots, typename NameOf>
  static auto& Probe(Slots& slots, absl::string_view name, uint32_t tag, const NameOf& name_of) {
    const size_t mask = slots.size() - 1;
    size_t i = tag & mask;
    while (slots[i].id != kNotFound && (slots[i].tag != tag || name_of(slots[i].id) != name)) {
      i = (i + 1) & mask;
    }
    return slots[i];
  }

  std::vector<Slot> slots_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_NAME_INDEX_H_
