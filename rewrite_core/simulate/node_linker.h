// NodeLinker: how a node of the graph, or a plan's swap node, becomes an operation of the workload:
// what it waits for, reads and writes, which copies that takes, whose memory it shares or may take
// over (workload_builder.h has the rules). One text for both who make workloads: the builder, which
// goes over the whole graph, and the patch, which goes over what a plan touches.
//
// A Target has
//   BufferId BufferOf(Tensor);          the buffer behind a tensor, kNoBufferId if there is none
//   void SetBufferOf(Tensor, BufferId); of a swap node's output
//   OpId OpOf(NodeId);                  kNoOp if it does not run
//   int32_t DeviceOf(BufferId);
//   View CopyOf(Tensor, Place from, Place to);            there already, or by MakeCopy
//   OpId AddCopy(const Copy&);
//   BufferId AddCopied(const Copy&, Place);               what such a copy writes
//   void LinkCopy(OpId, OpId before, BufferId from, BufferId to);
//   void Wait(OpId, OpId before);       once for each
//   void Read(OpId, BufferId);          once for each, and nothing from afar
//   void Write(OpId, BufferId);
//   BufferId Own(Tensor, Place, int64_t bytes, bool resident);   a buffer of the tensor's own
//   void Share(Tensor, BufferId, int64_t bytes);          kNoBytes: it is no larger for that
//   void AddReuse(OpId, BufferId output, absl::Span<const BufferId> candidates);
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_NODE_LINKER_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_NODE_LINKER_H_

#include <cstdint>
#include <vector>

#include "rewrite_core/analysis/reachability.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/simulate/plan_overlay.h"
#include "rewrite_core/simulate/simulator.h"
#include "rewrite_core/simulate/workload.h"
#include "rewrite_core/simulate/workload_builder.h"

namespace spillway::core {

template <typename Target>
class NodeLinker {
 protected:
  // A tensor as some memory has it: its buffer there, and the operation that puts it there.
  struct View {
    BufferId buffer = kNoBufferId;
    OpId op = kNoOp;
  };
  // A copy operation to be.
  struct Copy {
    OpKind kind;
    Place device;
    Tensor tensor;  // What is copied, a swap node's output perhaps,
    Place want;     // where to,
    int32_t step;   // and of two copies in a row which one.
    int64_t bytes;
    int64_t duration_ns;
  };
  static constexpr int64_t kNoBytes = -2;
  // Nodes of a dead side, and around it, that one dead input of a Merge is followed to: time stays
  // linear in the graph. Sides of layers have some tens, one with a whole network thousands.
  static constexpr size_t kMaxBeyond = 1 << 14;

  NodeLinker(const StepFacts& facts, const PlanOverlay& overlay)
      : facts_(facts),
        graph_(facts.graph()),
        overlay_(overlay),
        seen_(graph_.has_control_flow() ? graph_.num_nodes() : 0) {}

  Tensor Original(Tensor t) const {
    return overlay_.IsSwapNode(t.node) ? overlay_.swap(t.node).tensor : t;
  }
  // A dense number for each tensor; those of swap nodes come behind the graph's.
  int32_t Index(Tensor t) const {
    return overlay_.IsSwapNode(t.node)
               ? facts_.buffers().num_tensors() + (t.node - graph_.num_nodes())
               : facts_.buffers().index(t);
  }
  Place PlaceOf(Tensor t) const {
    return overlay_.IsSwapNode(t.node) ? overlay_.swap(t.node).place : facts_.buffers().place(t);
  }
  Place Wanted(NodeId id, int32_t index, Tensor input) const {
    return overlay_.IsSwapNode(id) ? overlay_.swap(id).place
                                   : facts_.placement().input(id, index, Original(input));
  }
  static bool NeedsCopy(Place have, Place want) {
    return have != want && have != kNoMemory && want != kNoMemory;
  }
  // Whether the input is the back edge of a loop, which is cut.
  bool IsCut(NodeId id, Tensor input) const {
    return !overlay_.IsSwapNode(id) && !overlay_.IsSwapNode(input.node) &&
           graph_.op_info(id).control_flow == ControlFlow::kMerge &&
           IsBackEdge(graph_, input.node, id);
  }

  // Whether the tensor, or the end of its node, comes without a value: for a conditional, or, of a
  // swap node, for what it reads or waits for.
  bool IsDead(Tensor t) const {
    if (!overlay_.IsSwapNode(t.node)) return facts_.conditionals().IsDead(t);
    for (Tensor input : overlay_.Inputs(t.node)) {  // A swap-in reads a swap-out.
      if (IsDead(input)) return true;
    }
    return false;
  }

  // More than there is to add up is found out when it is (PreparedWorkload).
  static int64_t Times(int64_t runs, int64_t each) {
    int64_t all;
    return __builtin_mul_overflow(runs, each, &all) ? kTooMuch : all;
  }
  static constexpr int64_t kTooMuch = int64_t{1} << 62;

  // Whether with the plan's edges no body needs what its loop leaves. Otherwise (TensorFlow would
  // wait for ever; Soundness allows no such edge) what is linked across loops is not.
  bool LoopsHold(StopPoller* poll) const;

  void LinkNode(NodeId id, OpId op);
  View MakeCopy(Tensor tensor, Place from, Place want);

  const StepFacts& facts_;
  const Graph& graph_;
  const PlanOverlay& overlay_;
  WorkloadNotes notes_;
  bool links_loops_ = true;

 private:
  Target& self() { return static_cast<Target&>(*this); }
  View Get(Tensor tensor, Place want) {
    const Place have = PlaceOf(tensor);
    if (NeedsCopy(have, want)) return self().CopyOf(tensor, have, want);
    return {self().BufferOf(tensor), self().OpOf(tensor.node)};
  }
  // A Merge, `op`, waits for what runs of those that its dead input `id` hangs on. TensorFlow's
  // does not, but the order in which a step runs then is one of the whole graph: plans add edges
  // along it, which close no cycle in a step that takes the other side.
  void WaitBeyond(NodeId id, OpId op);
  void LinkOutput(Tensor tensor, OpId op);
  // Of an Exit: whose value it gives out.
  Tensor LastValue(NodeId id) const {
    const bool leaves = !overlay_.IsSwapNode(id) && !facts_.loops().empty() &&
                        facts_.loops().last_value(id) != kNoNode;
    return leaves ? Shared({id, 0}) : Tensor{kNoNode, 0};
  }
  Tensor Shared(Tensor tensor) const {
    if (!links_loops_ || overlay_.IsSwapNode(tensor.node)) return {kNoNode, 0};
    return facts_.buffers().shared(tensor);
  }
  // What a tensor's own buffer takes: one for each iteration, where a loop keeps them.
  int64_t HeldBytes(Tensor tensor);
  void FindReuse(Tensor tensor, OpId op, BufferId output);
  void CountUses(int32_t by) {
    for (const View& view : views_) {
      if (view.buffer == kNoBufferId) continue;
      if (view.buffer >= static_cast<int32_t>(uses_.size())) uses_.resize(view.buffer + 1);
      uses_[view.buffer] += by;
    }
  }

  // Of the node at hand.
  std::vector<View> views_;  // By data input.
  std::vector<NodeId> beyond_;
  VisitMarks seen_;
  std::vector<BufferId> candidates_;
  std::vector<int32_t> uses_;  // By buffer: how many of its inputs.
};

}  // namespace spillway::core

#include "rewrite_core/simulate/node_linker.inc"  // IWYU pragma: export

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_NODE_LINKER_H_
