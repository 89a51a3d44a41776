// SwapPlan: the tensors that are swapped to the host and back, and the control edges that order the
// copies. A plain value: strategies make it, the simulator judges it, apply/ writes it into the
// graph.
#ifndef SPILLWAY_REWRITE_CORE_PLAN_SWAP_PLAN_H_
#define SPILLWAY_REWRITE_CORE_PLAN_SWAP_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "rewrite_core/analysis/memory/buffers.h"
#include "rewrite_core/analysis/shapes/shapes.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/plan/control_edge.h"
#include "spillway/v1/options.pb.h"

namespace spillway::core {

// One input of a node.
struct InputPosition {
  NodeId node;
  int32_t index;  // Among its inputs.
};

// One swap-in: the consumers it serves, and its triggers, usually one.
struct PlannedSwapIn {
  std::vector<InputPosition> consumers;
  absl::InlinedVector<NodeId, 1> triggers;
  // Pace edges: original nodes that wait for the swap-in's host node, and so are not launched
  // before the copy may start.
  std::vector<NodeId> paces = {};
};

// One swapped tensor. Consumers that no swap-in serves keep reading the producer.
struct PlannedSwap {
  Tensor tensor;
  DataType dtype = kDtInvalid;
  int64_t size_bytes = kUnknownSize;
  std::vector<PlannedSwapIn> swap_ins;
  // Deadline edges: original nodes that wait for the end of the swap-out, as they need its memory.
  std::vector<NodeId> deadlines;
  // The buffer (Buffers::buffers()) that this swap is to free, if the strategy chooses buffers. It
  // is freed only if all far readers of all its aliases read swap-ins. kNoBuffer: a tensor was
  // chosen.
  BufferIndex buffer = kNoBuffer;
};

// The verdict on one tensor considered.
struct TensorDecision {
  Tensor tensor;
  v1::Reason reason = v1::REASON_UNSPECIFIED;
  int64_t size_bytes = kUnknownSize;
  v1::SizeUnknown why_unknown = v1::SIZE_UNKNOWN_UNSPECIFIED;
};

struct SwapPlan {
  std::vector<PlannedSwap> swaps;
  // Added control edges between original nodes.
  std::vector<ControlEdge> controls;
  // The device of all swap nodes; empty: the CPU beside each producer.
  std::string cpu_device;

  bool empty() const { return swaps.empty() && controls.empty(); }
};

// The Plan.format_version (plan.proto) of plans of swaps alone, with clones, and with state on the
// host. This build reads all three.
inline constexpr int kPlanFormatVersion = 1, kClonePlanFormatVersion = 2,
                     kOffloadPlanFormatVersion = 3;

// Sorts the swaps by tensor: by node, then port. Returns false if `stop` ended it.
bool SortSwaps(std::vector<PlannedSwap>* swaps, const StopToken& stop);

// The bytes of the swapped tensors whose sizes are known.
int64_t SwappedBytes(const SwapPlan& plan);

// Makes one swap of those of one tensor, which are adjacent: a tensor in host memory may have one
// for each GPU.
void MergeSwaps(std::vector<PlannedSwap>* swaps);

// Converts a plan for `from` to one for `to`, which has all the nodes of `from` under the same
// names; clones, which a plan adds first, follow the nodes of either. The result names no buffers,
// as those belong to a step. Errors: those of `stop`.
absl::StatusOr<SwapPlan> MovePlan(const SwapPlan& plan, const Graph& from, const Graph& to,
                                  const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_PLAN_SWAP_PLAN_H_
