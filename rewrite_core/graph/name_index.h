// A hash table from node names to dense ids that stores no names: eight bytes a slot.
//
// Thread safety: Find may run in parallel once the last Insert is done.
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_NAME_INDEX_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_NAME_INDEX_H_

#include <cstdint>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

namespace spillway::core {

// Linear probing at a load of at most one half. The hash is Abseil's, seeded per process, so that a
// hostile graph cannot choose names that collide; nothing depends on the order of the slots.
class NameIndex {
 public:
  static constexpr int32_t kNotFound = -1;

  // Makes room for `count` names and forgets all others.
  void Reset(size_t count) {
    size_t slots = 16;
    while (slots < 2 * count) slots *= 2;
    slots_.assign(slots, Slot{0, kNotFound});
  }

  // Adds `name` as `id` and returns kNotFound, or returns the id that has this name already.
  // `name_of(id)` gives the name of an id. REQUIRES: fewer Inserts than Reset made room for.
  template <typename NameOf>
  int32_t Insert(absl::string_view name, int32_t id, const NameOf& name_of) {
    Slot& slot = Probe(slots_, name, name_of);
    if (slot.id != kNotFound) return slot.id;
    slot = {Tag(name), id};
    return kNotFound;
  }

  template <typename NameOf>
  int32_t Find(absl::string_view name, const NameOf& name_of) const {
    return slots_.empty() ? kNotFound : Probe(slots_, name, name_of).id;
  }

 private:
  struct Slot {
    uint32_t tag;
    int32_t id;
  };

  static uint32_t Tag(absl::string_view name) {
    return static_cast<uint32_t>(absl::Hash<absl::string_view>()(name) >> 16);
  }

  template <typename Slots, typename NameOf>
  static auto& Probe(Slots& slots, absl::string_view name, const NameOf& name_of) {
    const size_t mask = slots.size() - 1;
    const uint32_t tag = Tag(name);
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
