// The costs of calls that are kept, because TensorFlow does not inline them (XLA compiles them, for
// example), from the ops of their bodies. A call takes the time of its body's nodes; its workspace
// is the most that the body allocates, besides its results, if its nodes run one after the other.
// XLA's code for a body may take less: the figures are upper bounds.
//
// Not thread-safe.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_CALL_COST_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_CALL_COST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "rewrite_core/analysis/cost.h"
#include "rewrite_core/analysis/shapes/function_body.h"

namespace spillway::core {

class CallCosts {
 public:
  // All must outlive it. If stopped, functions are missing: check `stop`.
  CallCosts(const Graph& graph, const Shapes& shapes, const Hardware& hardware,
            const v1::Step& step, const StopToken& stop);

  // Whether nodes of that op type call a function of the library by its name.
  bool IsFunction(absl::string_view op) const { return functions_.contains(op); }

  // The cost of a call (by its name, PartitionedCall, StatefulPartitionedCall) on a GPU. nullopt if
  // a size, an argument's shape or an op's cost in the body is unknown; if the body has control
  // flow, variables or further calls; beyond a total of kMaxBytes of bodies and of the arguments'
  // shapes; or if stopped.
  absl::optional<NodeCost> Of(NodeId call);

 private:
  // Each different call of a function is analysed separately: a grouped convolution has some 1 kB.
  static constexpr int64_t kMaxBytes = int64_t{32} << 20;

  absl::optional<NodeCost> Analyse(absl::string_view function_def,
                                   const std::vector<std::string>& arguments);

  const Graph& graph_;
  const Shapes& shapes_;
  const Hardware& hardware_;
  const v1::Step& step_;
  const StopToken& stop_;
  StopPoller poll_;  // Of all calls: most are short.
  int64_t bytes_left_ = kMaxBytes;
  absl::flat_hash_map<absl::string_view, absl::string_view> functions_;
  FunctionResults function_results_;
  // By function and arguments.
  absl::flat_hash_map<std::string, absl::optional<NodeCost>> costs_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_CALL_COST_H_
