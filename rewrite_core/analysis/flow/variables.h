// Variables and their writers: nodes of certain op types (write_ops.h), and calls of functions (If,
// While, PartitionedCall, ...) that contain such nodes, directly or through further calls: loss
// scaling updates in an If, Keras in functions for XLA.
//
// A call writes everything that one of its functions may write. In a library whose call graph takes
// more than kMaxSteps to follow, the rest is not found.
//
// Thread safety: immutable after Find.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_VARIABLES_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_VARIABLES_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "rewrite_core/analysis/flow/training_ops.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// How a call uses the variables passed to it, and whether it computes gradients.
struct CallUse {
  // The inputs whose variable it may write to, by position, and the strongest kind of write.
  std::vector<int32_t> written;
  Write write = Write::kNone;
  bool has_gradients = false;  // It contains an op that only gradients use.
};

class Variables {
 public:
  static constexpr int64_t kMaxSteps = 2'000'000;

  // For a graph without variables.
  Variables() = default;

  // Linear in the graph, functions included, up to kMaxSteps. Errors: those of `stop`.
  static absl::StatusOr<Variables> Find(const Graph& graph, const StopToken& stop);

  // Whether the node outputs a variable: by its op type, or as a handle from outside the graph that
  // some op reads or writes as a variable's.
  bool is_variable(NodeId id) const { return !variable_.empty() && variable_[id]; }

  // Null if the node calls no function with such a use.
  const CallUse* call(NodeId id) const {
    const auto found = calls_.find(id);
    return found == calls_.end() ? nullptr : &found->second;
  }

 private:
  std::vector<bool> variable_;
  absl::flat_hash_map<NodeId, CallUse> calls_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_FLOW_VARIABLES_H_
