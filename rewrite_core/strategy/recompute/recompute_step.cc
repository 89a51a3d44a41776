#include "rewrite_core/strategy/recompute/recompute_step.h"

#include <algorithm>

namespace spillway::core {

absl::StatusOr<RecomputeStep> RecomputeStep::Create(const StepFacts& facts, const StepOrder& order,
                                                    const CloneRules& rules,
                                                    const RecomputeTerms& terms,
                                                    const StopToken& stop) {
  RecomputeStep step(facts, order, rules);
  if (absl::Status s = step.FindSlots(terms, stop); !s.ok()) return s;
  if (absl::Status s = step.FindRemade(terms, stop); !s.ok()) return s;
  step.least_bytes_ = terms.least_bytes;
  return step;
}

absl::Status RecomputeStep::FindSlots(const RecomputeTerms& terms, const StopToken& stop) {
  StopPoller poll(stop);
  std::vector<std::vector<OrderBuffer>> reads(order_->num_slots()), makes(order_->num_slots());
  for (OrderBuffer i(0); i < order_->num_buffers(); ++i) {
    makes[order_->made(i)].push_back(i);
    for (const StepOrder::Use& use : order_->uses(i)) {
      if (poll.Tick()) return stop.status("strategy");
      std::vector<OrderBuffer>& of = reads[use.slot];
      if (of.empty() || of.back() != i) of.push_back(i);
    }
  }
  first_read_.push_back(0);
  first_made_.push_back(0);
  for (Slot slot(0); slot < order_->num_slots(); ++slot) {
    if (poll.Tick()) return stop.status("strategy");
    reads_.insert(reads_.end(), reads[slot].begin(), reads[slot].end());
    makes_.insert(makes_.end(), makes[slot].begin(), makes[slot].end());
    first_read_.push_back(static_cast<int32_t>(reads_.size()));
    first_made_.push_back(static_cast<int32_t>(makes_.size()));
    const NodeId node = order_->node(slot);
    Slot before = order_->num_slots();
    const RunAgain again = rules_->Of(node);
    bool may_clone =
        again != RunAgain::kNever && again >= terms.least && IsWanted(node, terms) &&
        (terms.filter == nullptr || terms.filter->ReasonFor(node) == v1::REASON_SWAPPED);
    for (NodeId update : may_clone ? rules_->UpdatesOf(node) : std::vector<NodeId>()) {
      if (poll.Tick()) return stop.status("strategy");
      if (!facts_->active_nodes().needed[update]) continue;  // In this step, it does not run.
      // One that is not launched here, or comes first, cannot be made to wait for a clone.
      may_clone = may_clone && order_->slot(update) > slot;
      before = std::min(before, order_->slot(update));
    }
    may_clone_.push_back(may_clone);
    before_.push_back(before);
  }
  return absl::OkStatus();
}

// A buffer stays if a reader cannot be moved to a clone: a host, another GPU, a fetch, a node in a
// loop, a node that shares its memory and cannot be cloned.
absl::Status RecomputeStep::FindRemade(const RecomputeTerms& terms, const StopToken& stop) {
  const Graph& graph = facts_->graph();
  const Buffers& buffers = facts_->buffers();
  StopPoller poll(stop);
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (poll.Tick()) return stop.status("strategy");
    may_clone_forwarder_.push_back(rules_->MayCloneForwarder(id) && IsWanted(id, terms));
  }
  std::vector<bool> stays(buffers.buffers().size(), false);
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    for (Tensor input : graph.inputs(id)) {
      if (poll.Tick()) return stop.status("strategy");
      if (input.is_control()) break;
      const BufferIndex buffer = buffers.buffer_of(input);
      if (buffer != kNoBuffer && !IsMovable(id, input)) stays[buffer] = true;
    }
  }
  for (NodeId target : facts_->active_nodes().targets) {
    for (int32_t port = 0; port < buffers.num_outputs(target); ++port) {
      if (poll.Tick()) return stop.status("strategy");
      const BufferIndex buffer = buffers.buffer_of({target, port});
      if (buffer != kNoBuffer) stays[buffer] = true;
    }
  }
  for (OrderBuffer i(0); i < order_->num_buffers(); ++i) {
    const Buffers::Buffer& buffer = buffers.buffers()[order_->buffers()[i]];
    const bool is_made_here = order_->node(order_->made(i)) == buffer.first.node;
    may_remake_.push_back(!stays[order_->buffers()[i]] && is_made_here && !buffer.in_list &&
                          buffer.copies == 1 && may_clone_[order_->made(i)]);
  }
  return absl::OkStatus();
}

// Whether the reader can read a clone of the tensor's producer, or be cloned itself to forward one.
bool RecomputeStep::IsMovable(NodeId reader, Tensor tensor) const {
  const ActiveNodes& active = facts_->active_nodes();
  if (!active.needed[reader] || active.ReadsNothing(reader)) return true;
  const ControlFlowAnalysis& flow = facts_->control_flow();
  if (facts_->shapes().IsFed(reader) || flow.input_frame(reader) != kRootFrame) return false;
  const Buffers& buffers = facts_->buffers();
  const NodeId maker = buffers.buffers()[buffers.buffer_of(tensor)].first.node;
  // One without a slot reads the original, as soon as it is made (a shape, a copy to the host), or
  // shares its memory: then its own readers do not find their way back to the maker.
  if (tensor.node == maker) return true;
  const int32_t input = buffers.alias_input(tensor);
  return may_clone_forwarder_[tensor.node] && input >= 0 &&
         buffers.buffer_of(tensor) == buffers.buffer_of(facts_->graph().inputs(tensor.node)[input]);
}

}  // namespace spillway::core
