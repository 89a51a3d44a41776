// Which ops may have their outputs swapped by the strategy `level`, and which may read swap-ins:
// the eight filters of TFLMS v2, its built-in list, and its inactive ops.
//
// Thread safety: immutable after Create.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_FILTERS_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_FILTERS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rewrite_core/analysis/flow/reachability.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/report.pb.h"

namespace spillway::core {

// INVALID_ARGUMENT (CONFLICTING_OPTIONS) if a scope or a type is both included and excluded. Does
// not depend on the graph.
absl::Status CheckLevelFilters(const v1::LevelStrategy& options);

class LevelFilters {
 public:
  // INVALID_ARGUMENT if a scope or a type matches no op (NAME_MATCHES_NOTHING), or if the filters
  // leave no op (BAD_OPTION). REQUIRES: CheckLevelFilters.
  static absl::StatusOr<LevelFilters> Create(const StepFacts& facts,
                                             const v1::LevelStrategy& options,
                                             const StopToken& stop);

  // REASON_SWAPPED if outputs of the op may be swapped, otherwise the reason.
  v1::Reason producer(NodeId id) const { return static_cast<v1::Reason>(producer_[id]); }
  bool MayConsume(NodeId id) const { return consumer_[id]; }
  // Whether the op is on TFLMS v2's built-in list: variables, constants and the like.
  bool IsBuiltIn(NodeId id) const { return built_in_[graph_->op_id(id)]; }
  bool IsOnCpu(NodeId id) const { return is_cpu_[graph_->device_id(id)]; }
  bool is_inactive(NodeId id) const { return inactive_[id]; }
  const NodeFlags& inactive() const { return inactive_; }

 private:
  explicit LevelFilters(const Graph& graph) : graph_(&graph) {}

  const Graph* graph_;
  NodeFlags inactive_;
  std::vector<bool> built_in_;     // By Graph::op_id.
  std::vector<bool> is_cpu_;       // By DeviceId.
  std::vector<uint8_t> producer_;  // v1::Reason, by node.
  NodeFlags consumer_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_LEVEL_LEVEL_FILTERS_H_
