// One GPU's unswapped step, slot by slot, for planners: which node is launched when, with which
// buffers, and how much memory is in use. A *slot* is the position of a node in the order in which
// the simulator, launching ahead with unlimited memory, launches this GPU's operations.
//
// Memory is allocated and released in that order, regardless of times (simulator.h, kLaunchAhead),
// so the memory in use at a slot does not depend on any duration, except for buffers being copied.
//
// Thread safety: immutable after Create.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_STEP_ORDER_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_STEP_ORDER_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/base/strong_id.h"
#include "rewrite_core/plan/control_edge.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/simulate/plan_simulator.h"

namespace spillway::core {

using Slot = StrongId<struct SlotTag>;
inline constexpr Slot kNoSlot(-1);

// A buffer on the GPU that is not resident. (BufferIndex is one in Buffers::buffers(), of the whole
// graph.) Those below StepOrder::num_buffers() are made there, the others are StepOrder::copies_in.
using OrderBuffer = StrongId<struct OrderBufferTag>;
inline constexpr OrderBuffer kNoOrderBuffer(-1);

class StepOrder {
 public:
  // One input of a node that is launched on the GPU, and reads a buffer there.
  struct Use {
    Slot slot;
    InputPosition position;
    Tensor tensor;  // The tensor read.
  };

  // For GPU `gpu`. `unswapped`: the step of the graph, with unlimited memory, operations recorded.
  // `facts` must outlive the result. Errors: those of `stop`. REQUIRES: the facts kBuffers and
  // kActiveNodes.
  static absl::StatusOr<StepOrder> Create(const StepFacts& facts, GpuIndex gpu,
                                          const StepResult& unswapped, const StopToken& stop);

  Slot num_slots() const { return Slot(nodes_.size()); }
  NodeId node(Slot slot) const { return nodes_[slot]; }
  // kNoSlot if it is not launched on this GPU.
  Slot slot(NodeId node) const { return slots_[node]; }

  // When its kernel begins and ends, in nanoseconds from the start of the step.
  int64_t begin_ns(Slot slot) const { return begin_ns_[slot]; }
  int64_t end_ns(Slot slot) const { return end_ns_[slot]; }

  // The last slot whose kernel, and all before it, have ended by `ns`; kNoSlot if none has.
  Slot last_ended_by(int64_t ns) const {
    return Slot(std::upper_bound(ended_ns_.begin(), ended_ns_.end(), ns) - ended_ns_.begin() - 1);
  }

  // The latest slot that it waits for, directly or through the host; kNoSlot if it waits for none.
  Slot latest_before(Slot slot) const { return latest_before_[slot]; }

  // A slot that does not wait for the previous one may be launched earlier. Returns the first such
  // slot, from `from` on, whose latest_before is below `before`, or num_slots().
  Slot NextFarWait(Slot from, Slot before) const;

  // The buffers of the GPU that the step makes, by OrderBuffer.
  const std::vector<BufferIndex>& buffers() const { return buffers_; }
  OrderBuffer num_buffers() const { return OrderBuffer(buffers_.size()); }
  // With the copies in, which follow them in the order of copies_in().
  OrderBuffer num_all() const { return OrderBuffer(made_.size()); }
  bool is_copied_in(OrderBuffer i) const { return i >= num_buffers(); }
  OrderBuffer copied_in(size_t copy) const {
    return OrderBuffer(num_buffers() + static_cast<int32_t>(copy));
  }
  // The first of the tensors that share it.
  Tensor first_tensor(OrderBuffer i) const { return first_tensors_[i]; }
  // The buffer behind a tensor (of a copy in, only behind the copied tensor), or kNoOrderBuffer.
  OrderBuffer Find(Tensor tensor) const;
  // Its bytes as rounded by the allocator, the slot that makes it, or from which it is present, and
  // its uses by slot; of a copy in, uses of that tensor alone. A buffer that is copied to the host
  // is used when it is made.
  int64_t bytes(OrderBuffer i) const { return bytes_[i]; }
  Slot made(OrderBuffer i) const { return made_[i]; }
  absl::Span<const Use> uses(OrderBuffer i) const {
    return absl::MakeSpan(uses_).subspan(first_use_[i], first_use_[i + 1] - first_use_[i]);
  }
  // The last slot that makes or uses it.
  Slot last_used(OrderBuffer i) const { return uses(i).empty() ? made(i) : uses(i).back().slot; }

  // For a buffer that is copied to the host, and that no node on the GPU reads: the last slot that
  // is launched before the copy has ended, so that it is still held. kNoSlot for others.
  Slot copied_until(OrderBuffer i) const { return copied_until_[i]; }

  // The buffer that it reuses in place when made.
  OrderBuffer takes_over(OrderBuffer i) const { return takes_over_[i]; }

  // Copies to the GPU from elsewhere, by `first`: live from slot `first` to slot `last`.
  struct CopyIn {
    Slot first, last;
    int64_t bytes;
    Tensor tensor;
  };
  const std::vector<CopyIn>& copies_in() const { return copies_in_; }

  int64_t resident_bytes() const { return resident_bytes_; }
  int64_t workspace_bytes(Slot slot) const { return workspace_bytes_[slot]; }
  // The minimum time from one kernel's launch to the next.
  int64_t launch_ns() const { return launch_ns_; }
  // When its kernel was launched.
  int64_t given_ns(Slot slot) const { return given_ns_[slot]; }

  // By slot: the bytes in use once its node has its memory, workspace included.
  const std::vector<int64_t>& live_bytes() const { return live_bytes_; }

 private:
  StepOrder() = default;

  absl::Status FindCopiesIn(const StepFacts& facts, GpuIndex gpu, const StepResult& unswapped,
                            const StopToken& stop);

  std::vector<NodeId> nodes_;
  std::vector<Slot> slots_;  // By node.
  std::vector<int64_t> given_ns_, begin_ns_, end_ns_;
  std::vector<int64_t> ended_ns_;  // By slot: when it and all before it have ended.
  std::vector<Slot> latest_before_, far_waits_;
  // A tree of the minimum latest_before over far_waits_: node 1 covers all, 2i and 2i+1 the halves
  // of i's; the leaves start at num_leaves_, in the order of far_waits_.
  std::vector<Slot> least_before_;
  size_t num_leaves_ = 1;
  const Buffers* of_graph_ = nullptr;
  std::vector<BufferIndex> buffers_;
  std::vector<OrderBuffer> place_;                                          // By BufferIndex.
  absl::flat_hash_map<std::pair<NodeId, int32_t>, OrderBuffer> copies_of_;  // By tensor.
  // By OrderBuffer, copies in included.
  std::vector<Tensor> first_tensors_;
  std::vector<int64_t> bytes_;
  std::vector<Slot> made_;
  std::vector<Slot> copied_until_;
  std::vector<OrderBuffer> takes_over_;
  std::vector<CopyIn> copies_in_;
  int64_t resident_bytes_ = 0;
  int64_t launch_ns_ = 0;
  std::vector<int64_t> workspace_bytes_;
  std::vector<Use> uses_;
  std::vector<int32_t> first_use_;  // num_all() + 1 items.
  std::vector<int64_t> live_bytes_;
};

// A total order of all nodes of a graph in which no edge goes back, for Soundness: control edges
// that follow it close no cycle, however many are added. Kernels are in order of launch, as far as
// the whole graph allows that. (A StepOrder alone does not suffice: the nodes that lead to a fed
// node are in the graph, but not in the step, and might come after those that the fed node leads
// to.)
//
// Returns, by node, numbers that grow along every edge of the graph, except back edges of loops,
// and along `added`; none if these close a cycle. `step`: with unlimited memory, operations
// recorded. Errors: those of `stop`.
absl::StatusOr<std::vector<int32_t>> RankByLaunch(const StepFacts& facts, const StepResult& step,
                                                  absl::Span<const ControlEdge> added,
                                                  const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_ORDER_STEP_ORDER_H_
