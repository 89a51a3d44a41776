// What a node needs to run: feeds, iterators, queues and other things without inputs, initialized
// variables, writes that come before. Whoever adds a control edge between two nodes of which
// neither leads to the other asks here whether it makes a run of one of them, in another step than
// the one planned for (an inference, an initializer), run what that did without, and may fail or
// write.
//
// Thread safety: immutable after Find.
#ifndef SPILLWAY_REWRITE_CORE_PLAN_NEEDS_H_
#define SPILLWAY_REWRITE_CORE_PLAN_NEEDS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/topology.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

class Needs {
 public:
  // Errors: those of `stop`.
  static absl::StatusOr<Needs> Find(const Graph& graph, const Topology& topology,
                                    const StopToken& stop);

  // Whether a wait of `v` for `u` makes nothing run that has an effect or may fail: u needs nothing
  // that v does without. Of more than 61 things without inputs the others are not told apart: what
  // needs one of them is never waited for.
  bool MayWait(NodeId v, NodeId u) const {
    return (bits_[u] & ~bits_[v]) == 0 && (bits_[u] & (kWrite | kTooMany)) == 0;
  }

 private:
  static constexpr uint64_t kWrite = 1, kVariables = 2, kTooMany = 4;
  static constexpr int kFirstRoot = 3;

  std::vector<uint64_t> bits_;  // By node.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_PLAN_NEEDS_H_
