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

#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/simulate/plan_overlay.h"
#include "rewrite_core/simulate/workload.h"
#include "rewrite_core/simulate/workload_builder.h"

namespace spillway::core {

inline constexpr BufferId kNoBufferId = -1;

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

  NodeLinker(const StepFacts& facts, const PlanOverlay& overlay)
      : facts_(facts), graph_(facts.graph()), overlay_(overlay) {}

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

  void LinkNode(NodeId id, OpId op);
  View MakeCopy(Tensor tensor, Place from, Place want);

  const StepFacts& facts_;
  const Graph& graph_;
  const PlanOverlay& overlay_;
  WorkloadNotes notes_;

 private:
  Target& self() { return static_cast<Target&>(*this); }
  View Get(Tensor tensor, Place want) {
    const Place have = PlaceOf(tensor);
    if (NeedsCopy(have, want)) return self().CopyOf(tensor, have, want);
    return {self().BufferOf(tensor), self().OpOf(tensor.node)};
  }
  void LinkOutput(Tensor tensor, OpId op);
  void FindReuse(Tensor tensor, OpId op, BufferId output);
  void CountUses(int32_t by) {
    for (const View& view : views_) {
      if (view.buffer == kNoBufferId) continue;
      if (view.buffer >= static_cast<BufferId>(uses_.size())) uses_.resize(view.buffer + 1);
      uses_[view.buffer] += by;
    }
  }

  // Of the node at hand.
  std::vector<View> views_;  // By data input.
  std::vector<BufferId> candidates_;
  std::vector<int32_t> uses_;  // By buffer: how many of its inputs.
};

template <typename Target>
typename NodeLinker<Target>::View NodeLinker<Target>::MakeCopy(Tensor tensor, Place from,
                                                               Place want) {
  Copy copy{OpKind::kCopyOut, from, tensor, want, 0, facts_.buffers().bytes(Original(tensor)), 0};
  View view{self().BufferOf(tensor), self().OpOf(tensor.node)};
  const auto step = [&](OpKind kind, Place device, Place to, double rate) {
    copy.kind = kind;
    copy.device = device;
    copy.duration_ns = CopyNanoseconds(facts_.hardware(), rate, copy.bytes);
    const OpId op = self().AddCopy(copy);
    const BufferId written = self().AddCopied(copy, to);
    self().LinkCopy(op, view.op, view.buffer, written);
    view = {written, op};
    ++copy.step;
  };
  if (from != kHostPlace) {
    step(OpKind::kCopyOut, from, kHostPlace, facts_.hardware().d2h_bytes_per_s);
  }
  if (want != kHostPlace) {
    step(OpKind::kCopyIn, want, want, facts_.hardware().h2d_bytes_per_s);
  }
  return view;
}

template <typename Target>
void NodeLinker<Target>::LinkNode(NodeId id, OpId op) {
  views_.clear();
  const absl::Span<const Tensor> inputs = overlay_.Inputs(id);
  bool in_loop = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor input = inputs[i];
    if (IsCut(id, input)) {
      in_loop = true;
      ++notes_.loops;
      if (const Place gpu = facts_.placement().node(id); gpu != kHostPlace) {
        notes_.unknown.Add(v1::FIT_UNKNOWN_CAUSE_LOOPS, gpu, id);
      }
      if (!input.is_control()) views_.push_back({});
      continue;
    }
    if (input.is_control()) {
      self().Wait(op, self().OpOf(input.node));
      continue;
    }
    const View view = Get(input, Wanted(id, static_cast<int32_t>(i), input));
    views_.push_back(view);
    self().Wait(op, view.op);
    self().Read(op, view.buffer);
  }
  if (overlay_.IsSwapNode(id)) {
    self().SetBufferOf({id, 0}, views_[0].buffer);  // As an Identity does.
    return;
  }
  notes_.merges += graph_.op_info(id).control_flow == ControlFlow::kMerge && !in_loop;
  for (int32_t port = 0; port < facts_.buffers().num_outputs(id); ++port) {
    LinkOutput({id, port}, op);
  }
}

template <typename Target>
void NodeLinker<Target>::LinkOutput(Tensor tensor, OpId op) {
  const Buffers& buffers = facts_.buffers();
  const Place where = buffers.place(tensor);
  const int64_t bytes = buffers.bytes(tensor);
  const int32_t alias = buffers.alias_input(tensor);
  if (alias != kNoAlias && alias < static_cast<int32_t>(views_.size())) {
    const BufferId shared = views_[alias].buffer;
    if (shared != kNoBufferId && (where == kNoMemory || self().DeviceOf(shared) == where)) {
      self().Share(tensor, shared, where == kNoMemory ? kNoBytes : bytes);
      return;
    }
  }
  const Storage storage = alias == kNoAlias ? buffers.storage(tensor) : Storage::kAllocated;
  if (storage == Storage::kVariable) {
    self().Own(tensor, facts_.placement().node(tensor.node), bytes, /*resident=*/true);
    return;
  }
  if (where == kNoMemory) return;
  const bool constant = storage == Storage::kConstant;
  const BufferId output = self().Own(tensor, where, bytes, /*resident=*/constant);
  if (constant) return;
  self().Write(op, output);
  if (where != kHostPlace) FindReuse(tensor, op, output);
}

template <typename Target>
void NodeLinker<Target>::FindReuse(Tensor tensor, OpId op, BufferId output) {
  const uint32_t reusable = facts_.buffers().reusable_inputs(tensor);
  if (reusable == 0) return;
  const DataType dtype = facts_.shapes().type(tensor).dtype;
  const absl::Span<const Tensor> inputs = overlay_.Inputs(tensor.node);
  candidates_.clear();
  CountUses(1);
  for (size_t i = 0; i < views_.size(); ++i) {
    const bool listed = reusable == Buffers::kAnyInput || (i < 32 && (reusable >> i & 1) != 0);
    if (!listed || views_[i].buffer == kNoBufferId) continue;
    if (facts_.shapes().type(Original(inputs[i])).dtype != dtype) continue;
    if (uses_[views_[i].buffer] > 1) continue;  // Read at two inputs, it has two holders.
    candidates_.push_back(views_[i].buffer);
  }
  CountUses(-1);
  if (!candidates_.empty()) self().AddReuse(op, output, candidates_);
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_NODE_LINKER_H_
