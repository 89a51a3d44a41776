// Variables, and who writes to them: nodes whose op types say so (write_ops.h), and calls of
// functions (If, While, PartitionedCall, ...) whose bodies do, or those of functions that these
// call: loss scaling updates in an If, Keras in functions for XLA.
//
// A call writes what one of its functions may write. Of libraries of functions that call each other
// in more ways than kMaxSteps of looking tell, the rest is not found.
//
// Thread safety: immutable after Find.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_VARIABLES_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_VARIABLES_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "rewrite_core/analysis/write_ops.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// What a call does with the variables that it is given, and whether it computes gradients.
struct CallUse {
  // The inputs whose variable it may write to, by position, and the strongest way in which.
  std::vector<int32_t> written;
  Write write = Write::kNone;
  bool has_gradients = false;  // Some op that only gradients use is in it.
};

class Variables {
 public:
  static constexpr int64_t kMaxSteps = 2'000'000;

  // Of a graph without any.
  Variables() = default;

  // Linear in the graph, functions included, up to kMaxSteps. Errors: those of `stop`.
  static absl::StatusOr<Variables> Find(const Graph& graph, const StopToken& stop);

  // Whether the node gives out a variable: by its op, or as a handle that comes from outside and
  // that something reads or writes as a variable's.
  bool is_variable(NodeId id) const { return !variable_.empty() && variable_[id]; }

  // Null if the node calls no function that does any of this.
  const CallUse* call(NodeId id) const {
    const auto found = calls_.find(id);
    return found == calls_.end() ? nullptr : &found->second;
  }

 private:
  std::vector<bool> variable_;
  absl::flat_hash_map<NodeId, CallUse> calls_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_VARIABLES_H_
