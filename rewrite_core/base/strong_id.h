// StrongId: an index with its own type, so that a node's id is not mistaken for a GPU's.
//
//   using NodeId = StrongId<struct NodeIdTag>;
//   using GpuIndex = StrongId<struct GpuIndexTag>;
//
//   for (NodeId node(0); node < graph.num_nodes(); ++node) fanouts[node] = 0;  // Used as a number.
//   NodeId none(-1);     // Made from a number explicitly,
//   GpuIndex gpu = 0;    // so this does not compile,
//   GpuIndex gpu = none; // nor does this,
//   GpuIndex gpu(none);  // nor this.
//
// An int32_t in memory and in registers; like one, not initialized by its default constructor.
#ifndef SPILLWAY_REWRITE_CORE_BASE_STRONG_ID_H_
#define SPILLWAY_REWRITE_CORE_BASE_STRONG_ID_H_

#include <cstdint>
#include <type_traits>
#include <utility>

namespace spillway::core {

template <class Tag>
class StrongId {
 public:
  StrongId() = default;
  // `value` must be in the range of int32_t. No other type converts, another StrongId included.
  template <class Integer, std::enable_if_t<std::is_integral<Integer>::value, int> = 0>
  constexpr explicit StrongId(Integer value) : value_(static_cast<int32_t>(value)) {}

  constexpr int32_t value() const { return value_; }
  // Indexes, compares and prints as the number.
  constexpr operator int32_t() const { return value_; }

  StrongId& operator++() {
    ++value_;
    return *this;
  }
  StrongId& operator--() {
    --value_;
    return *this;
  }

  template <class Hash>
  friend Hash AbslHashValue(Hash state, StrongId id) {
    return Hash::combine(std::move(state), id.value_);
  }

 private:
  int32_t value_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_STRONG_ID_H_
