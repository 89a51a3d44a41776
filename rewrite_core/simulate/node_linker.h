// NodeLinker: how a node of the graph, or a plan's swap node, becomes an operation of the workload:
// its waits, reads and writes, their copies, the memory that it shares or may reuse
// (workload_builder.h has the rules). The two makers of workloads share the code: the builder,
// which visits the whole graph, and the patch, which visits the nodes that a plan touches.
//
// A Target has
//   BufferId BufferOf(Tensor);          the buffer behind a tensor, kNoBufferId if none
//   void SetBufferOf(Tensor, BufferId); for a swap node's output
//   OpId OpOf(NodeId);                  kNoOp if it does not run
//   int32_t DeviceOf(BufferId);
//   View CopyOf(Tensor, TensorForm from, TensorForm to);              existing, or made by MakeCopy
//   OpId AddCopy(const Copy&);
//   BufferId AddCopied(const Copy&, Place);               the output of such a copy
//   void LinkCopy(OpId, OpId before, BufferId from, BufferId to);
//   void Wait(OpId, OpId before);       once for each
//   void Read(OpId, BufferId);          once for each, never from another memory
//   void Write(OpId, BufferId);
//   BufferId Own(Tensor, Place, int64_t bytes, bool resident);   a new buffer for the tensor
//   void Share(Tensor, BufferId, int64_t bytes);          kNoBytes: it does not grow
//   void AddReuse(OpId, BufferId output, absl::Span<const BufferId> candidates);
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_NODE_LINKER_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_NODE_LINKER_H_

#include <cstdint>
#include <vector>

#include "rewrite_core/analysis/flow/grappler_noops.h"
#include "rewrite_core/analysis/flow/reachability.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/simulate/plan_overlay.h"
#include "rewrite_core/simulate/simulator.h"
#include "rewrite_core/simulate/workload.h"
#include "rewrite_core/simulate/workload_builder.h"

namespace spillway::core {

template <typename Target>
class NodeLinker {
 protected:
  // A tensor in one memory: its buffer there, and the operation that writes it.
  struct View {
    BufferId buffer = kNoBufferId;
    OpId op = kNoOp;
  };
  // A copy operation to be added, or a transposition: of kind kCompute.
  struct Copy {
    OpKind kind;
    Place device;
    Tensor tensor;    // The copied one: may be a swap node's output,
    TensorForm want;  // to this form,
    int32_t step;     // and which of two copies in a row.
    int64_t bytes;
    int64_t duration_ns;
  };
  static constexpr int64_t kNoBytes = -2;
  // The maximum number of nodes, on dead sides and around them, that are followed from the dead
  // inputs of a Merge, so that time stays linear in the graph. A side with a few layers has some
  // tens of nodes, one with a whole network thousands.
  static constexpr size_t kMaxBeyond = 1 << 14;

  NodeLinker(const StepFacts& facts, const PlanOverlay& overlay)
      : facts_(facts),
        graph_(facts.graph()),
        overlay_(overlay),
        needed_(&facts.active_nodes().needed),
        only_orders_(&facts.active_nodes().only_orders),
        seen_(graph_.has_control_flow() ? graph_.num_nodes() : 0) {}

  Tensor Original(Tensor t) const {
    return overlay_.IsSwapNode(t.node) ? overlay_.swap(t.node).tensor : t;
  }
  // A dense number for each tensor; those of swap nodes follow the graph's.
  int32_t Index(Tensor t) const {
    return overlay_.IsSwapNode(t.node)
               ? facts_.buffers().num_tensors() + (t.node - graph_.num_nodes())
               : facts_.buffers().index(t);
  }
  Place PlaceOf(Tensor t) const {
    return overlay_.IsSwapNode(t.node) ? overlay_.swap(t.node).place : facts_.buffers().place(t);
  }
  TensorForm FormOf(Tensor t) const {
    const Place place = PlaceOf(t);
    return {place, place >= 0 && !overlay_.IsSwapNode(t.node) && facts_.layout().WritesOther(t)};
  }
  TensorForm Wanted(NodeId id, int32_t index, Tensor input) const {
    if (overlay_.IsSwapNode(id)) return {overlay_.swap(id).place};
    const Place place = facts_.placement().input(id, index, Original(input));
    return {place, place >= 0 && facts_.layout().ReadsOther(id, index)};
  }
  static bool NeedsCopy(TensorForm have, TensorForm want) {
    return !(have == want) && have.place != kNoMemory && want.place != kNoMemory;
  }
  // Whether the input is the back edge of a loop, which is cut.
  bool IsCut(NodeId id, Tensor input) const {
    return !overlay_.IsSwapNode(id) && !overlay_.IsSwapNode(input.node) &&
           graph_.op_info(id).control_flow == ControlFlow::kMerge &&
           IsBackEdge(graph_, input.node, id);
  }

  // Whether the tensor, or the end of its node, is dead: because of a conditional or, for a swap
  // node, because of its inputs or waits.
  bool IsDead(Tensor t) const {
    if (!overlay_.IsSwapNode(t.node)) return facts_.conditionals().IsDead(t);
    for (Tensor input : overlay_.Inputs(t.node)) {  // A swap-in reads a swap-out.
      if (IsDead(input)) return true;
    }
    return false;
  }

  // Saturates; the overflow is reported when sizes are added up (PreparedWorkload).
  static int64_t Times(int64_t runs, int64_t each) {
    int64_t all;
    return __builtin_mul_overflow(runs, each, &all) ? kTooMuch : all;
  }
  static constexpr int64_t kTooMuch = int64_t{1} << 62;

  // Whether TensorFlow makes the node a NoOp, which reads and writes nothing. A swap node is an
  // Identity.
  bool OnlyOrders(NodeId id) const {
    if (!overlay_.IsSwapNode(id)) return (*only_orders_)[id];
    const PlanOverlay::SwapNode& node = overlay_.swap(id);
    if (facts_.step().grappler() == v1::GRAPPLER_AS_IS ||
        KeepsIdentity(graph_, facts_.shapes(), node.tensor)) {
      return false;
    }
    return !overlay_.IsRead(
        id, [this](NodeId reader) { return (*needed_)[reader] && !ReadsNothing(reader); });
  }

  bool ReadsNothing(NodeId id) const {
    return OnlyOrders(id) || (!overlay_.IsSwapNode(id) && facts_.active_nodes().constants[id]);
  }

  // Whether, with the plan's edges, no loop body needs its own loop's outputs. If one does
  // (TensorFlow would wait forever; Soundness allows no such edge), links across loops are omitted.
  bool LoopsHold(StopPoller* poll) const;

  void LinkNode(NodeId id, OpId op);
  View MakeCopy(Tensor tensor, TensorForm from, TensorForm want);

  const StepFacts& facts_;
  const Graph& graph_;
  const PlanOverlay& overlay_;
  // Of the graph's nodes (ActiveNodes); others if a plan makes more of them run.
  const NodeFlags* needed_;
  const NodeFlags* only_orders_;
  WorkloadNotes notes_;
  bool links_loops_ = true;

 private:
  Target& self() { return static_cast<Target&>(*this); }
  View Get(Tensor tensor, TensorForm want) {
    const TensorForm have = FormOf(tensor);
    if (NeedsCopy(have, want)) return self().CopyOf(tensor, have, want);
    return {self().BufferOf(tensor), self().OpOf(tensor.node)};
  }
  // Makes a Merge, `op`, wait for those nodes behind its dead input `id` that do run. TensorFlow's
  // Merge does not wait for them, but this way the order of a step is an order of the whole graph:
  // plans add edges along it, which then close no cycle in a step that takes the other side.
  void WaitBeyond(NodeId id, OpId op);
  void LinkOutput(Tensor tensor, OpId op);
  // For an Exit: the tensor whose value it outputs.
  Tensor LastValue(NodeId id) const {
    const bool leaves = !overlay_.IsSwapNode(id) && !facts_.loops().empty() &&
                        facts_.loops().last_value(id) != kNoNode;
    return leaves ? Shared({id, 0}) : Tensor{kNoNode, 0};
  }
  Tensor Shared(Tensor tensor) const {
    if (!links_loops_ || overlay_.IsSwapNode(tensor.node)) return {kNoNode, 0};
    return facts_.buffers().shared(tensor);
  }
  // The bytes of a tensor's own buffer: one per iteration, if a loop keeps them.
  int64_t HeldBytes(Tensor tensor);
  void FindReuse(Tensor tensor, OpId op, BufferId output);
  void CountUses(int32_t by) {
    for (const View& view : views_) {
      if (view.buffer == kNoBufferId) continue;
      if (view.buffer >= static_cast<int32_t>(uses_.size())) uses_.resize(view.buffer + 1);
      uses_[view.buffer] += by;
    }
  }

  // For the current node.
  std::vector<View> views_;  // By data input.
  std::vector<NodeId> beyond_;
  VisitMarks seen_;
  std::vector<BufferId> candidates_;
  std::vector<int32_t> uses_;  // By buffer: how many of its inputs read it.
};

}  // namespace spillway::core

#include "rewrite_core/simulate/node_linker.inc"  // IWYU pragma: export

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_NODE_LINKER_H_
