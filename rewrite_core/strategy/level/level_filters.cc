#include "rewrite_core/strategy/level/level_filters.h"

#include <iterator>

#include "absl/container/flat_hash_set.h"
#include "rewrite_core/analysis/machine/device_name.h"
#include "rewrite_core/strategy/common/op_filter.h"
#include "rewrite_core/strategy/level/inactive_ops.h"
#include "rewrite_core/strategy/level/level_parameters.h"

namespace spillway::core {
namespace {

// Never a producer, never a consumer. Includes AssignSubVariableOp and ResourceGather, which TFLMS
// v2 means to list, but a missing comma there lets them through.
constexpr absl::string_view kBuiltInTypes[] = {
    "Assign",
    "AssignAdd",
    "AssignAddVariableOp",
    "AssignSub",
    "AssignSubVariableOp",
    "AssignVariableOp",
    "Const",
    "Identity",
    "Placeholder",
    "PlaceholderWithDefault",
    "Queue",
    "RandomUniform",
    "Range",
    "Read",
    "ReadVariableOp",
    "ResourceGather",
    "ResourceScatterAdd",
    "ResourceScatterDiv",
    "ResourceScatterMax",
    "ResourceScatterMin",
    "ResourceScatterMul",
    "ResourceScatterNdAdd",
    "ResourceScatterNdUpdate",
    "ResourceScatterSub",
    "ResourceScatterUpdate",
    "ScatterAdd",
    "ScatterSub",
    "ScatterUpdate",
    "TruncatedNormal",
    "VarHandleOp",
    "VarIsInitializedOp",
    "Variable",
    "VariableShape",
    "VariableV2",
};

}  // namespace

absl::Status CheckLevelFilters(const v1::LevelStrategy& options) {
  return SwapFilters::Check(options);
}

absl::StatusOr<LevelFilters> LevelFilters::Create(const StepFacts& facts,
                                                  const v1::LevelStrategy& options,
                                                  const StopToken& stop) {
  const Graph& graph = facts.graph();
  LevelFilters filters(graph);
  auto inactive = FindInactiveOps(
      graph, facts.control_flow(),
      LevelParameters(options).is_training ? Phase::kTraining : Phase::kInference, stop);
  if (!inactive.ok()) return inactive.status();
  filters.inactive_ = *std::move(inactive);

  auto given = SwapFilters::Create(graph, options, stop);
  if (!given.ok()) return given.status();

  const absl::flat_hash_set<absl::string_view> built_in(std::begin(kBuiltInTypes),
                                                        std::end(kBuiltInTypes));
  for (int32_t op = 0; op < graph.num_ops(); ++op) {
    filters.built_in_.push_back(built_in.contains(graph.op_name(op)));
  }
  for (DeviceId device(0); device < graph.num_devices(); ++device) {
    filters.is_cpu_.push_back(IsCpuDevice(graph.device_name(device)));
  }
  filters.producer_.assign(graph.num_nodes(), v1::REASON_SWAPPED);
  filters.consumer_.assign(graph.num_nodes(), true);
  bool any_producer = false, any_consumer = false;
  StopPoller poll(stop);
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (poll.Tick()) return stop.status("strategy");
    const bool built_in_op = filters.built_in_[graph.op_id(id)];
    uint8_t& producer = filters.producer_[id];
    if (filters.IsOnCpu(id)) {
      producer = v1::REASON_CPU_PRODUCER;
    } else if (built_in_op) {
      producer = v1::REASON_EXCLUDED;
    } else if (given->outputs.ReasonFor(id) != v1::REASON_SWAPPED) {
      producer = given->outputs.ReasonFor(id);
    } else if (filters.inactive_[id]) {
      producer = v1::REASON_INACTIVE;
    }
    filters.consumer_[id] = !filters.IsOnCpu(id) && !built_in_op &&
                            given->inputs.ReasonFor(id) == v1::REASON_SWAPPED &&
                            !filters.inactive_[id];
    any_producer = any_producer || producer == v1::REASON_SWAPPED;
    any_consumer = any_consumer || filters.consumer_[id];
  }
  if (!any_producer && given->outputs.is_given()) return given->outputs.LeavesNothing();
  if (!any_consumer && given->inputs.is_given()) return given->inputs.LeavesNothing();
  return filters;
}

}  // namespace spillway::core
