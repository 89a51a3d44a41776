// The prerequisites of a node: feeds, iterators, queues and other nodes without inputs; initialized
// variables (captured ones, too, whose handles a caller passes in all at once); earlier writes.
// Before a control edge is added between two nodes neither of which leads to the other, this
// determines whether the edge would make a step other than the planned one (an inference, an
// initializer) run something that it did not run before and that may fail or write.
//
// Thread safety: immutable after Find.
#ifndef SPILLWAY_REWRITE_CORE_PLAN_NEEDS_H_
#define SPILLWAY_REWRITE_CORE_PLAN_NEEDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

class Needs {
 public:
  // Errors: those of `stop`. REQUIRES: kTopology and kShapes.
  static absl::StatusOr<Needs> Find(const StepFacts& facts, const StopToken& stop);

  // Whether making `v` wait for `u` runs nothing that has an effect or may fail: u needs nothing
  // that v does not need. Needs beyond kMaxNeeds, or fewer in a very large graph, are not
  // distinguished: no node may wait for one that has such a need.
  bool MayWait(NodeId v, NodeId u) const {
    const uint64_t* of_u = &bits_[words_ * u];
    const uint64_t* of_v = &bits_[words_ * v];
    if ((of_u[0] & kTooMany) != 0) return false;
    for (size_t i = 0; i < words_; ++i) {
      if ((of_u[i] & ~of_v[i]) != 0) return false;
    }
    return true;
  }

  // Likewise in any step that runs `v`, which may be a gradient: no step is run for that alone, so
  // that it may wait, too, if all of its readers may (the exponent's part of a power's gradient
  // needs no gradient). Of no use when `poll` has stopped. REQUIRES: kBackwardPart.
  bool MayGradientWait(const StepFacts& facts, NodeId v, NodeId u, StopPoller* poll) const;

 private:
  static constexpr uint64_t kVariables = 1, kTooMany = 2;
  static constexpr size_t kFirstBit = 2, kBitsPerWord = 64;
  static constexpr size_t kMaxNeeds = 16 * kBitsPerWord - kFirstBit;
  // The words of all nodes together: 64 MiB.
  static constexpr size_t kMaxWords = size_t{8} << 20;

  size_t words_ = 1;            // Per node.
  std::vector<uint64_t> bits_;  // By node, words_ each.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_PLAN_NEEDS_H_
