#include "rewrite_core/simulate/plan_overlay.h"

#include "rewrite_core/base/polled_sort.h"

namespace spillway::core {

bool PlanOverlay::Set(const SwapPlan& plan, StopPoller* poll) {
  if (first_.empty()) {
    first_.assign(num_nodes_, -1);
    list_.assign(num_nodes_, -1);
  }
  for (const SwapNode& node : swap_nodes_) first_[node.tensor.node] = -1;
  for (NodeId node : edited_nodes_) list_[node] = -1;
  swap_nodes_.clear();
  edited_nodes_.clear();
  edits_.clear();
  const Place place =
      plan.cpu_device.empty() ? kHostPlace : facts_.placement().Resolve(plan.cpu_device);
  for (size_t i = 0; i < plan.swaps.size(); ++i) {
    if (poll->Tick()) return false;
    AddSwap(plan.swaps[i], static_cast<int32_t>(i), place);
  }
  for (const ControlEdge& control : plan.controls) {
    if (poll->Tick()) return false;
    edits_.push_back({control.to, kAppended, {control.from, kControl}});
  }
  return EditInputs(poll);
}

NodeId PlanOverlay::AddSwapNode(const SwapNode& node) {
  swap_nodes_.push_back(node);
  return id(static_cast<int32_t>(swap_nodes_.size()) - 1);
}

void PlanOverlay::AddSwap(const PlannedSwap& planned, int32_t swap, Place place) {
  const Tensor t = planned.tensor;
  const NodeId out = AddSwapNode({t, t, {}, {}, place, swap, -1, first_[t.node]});
  first_[t.node] = out - num_nodes_;
  for (size_t i = 0; i < planned.swap_ins.size(); ++i) {
    const PlannedSwapIn& planned_in = planned.swap_ins[i];
    int32_t& behind = swap_nodes_[out - num_nodes_].next;
    const NodeId in = AddSwapNode({t,
                                   {out, 0},
                                   planned_in.triggers,
                                   planned_in.consumers,
                                   place,
                                   swap,
                                   static_cast<int32_t>(i),
                                   behind});
    swap_nodes_[out - num_nodes_].next = in - num_nodes_;
    for (const InputPosition& consumer : planned_in.consumers) {
      edits_.push_back({consumer.node, consumer.index, {in, 0}});
    }
    for (NodeId node : planned_in.paces) edits_.push_back({node, kAppended, {in, kControl}});
  }
  for (NodeId node : planned.deadlines) edits_.push_back({node, kAppended, {out, kControl}});
}

bool PlanOverlay::EditInputs(StopPoller* poll) {
  inputs_.clear();
  begin_.clear();
  for (const SwapNode& node : swap_nodes_) {
    begin_.push_back(static_cast<int32_t>(inputs_.size()));
    inputs_.push_back(node.input);
    for (NodeId trigger : node.triggers) inputs_.push_back({trigger, kControl});
  }
  const auto by_position = [](const Edit& a, const Edit& b) {
    return std::pair(a.node, a.index) < std::pair(b.node, b.index);
  };
  if (!PolledSort(edits_.begin(), edits_.end(), by_position, poll)) return false;
  for (size_t i = 0; i < edits_.size();) {
    const NodeId node = edits_[i].node;
    const int32_t begin = static_cast<int32_t>(inputs_.size());
    list_[node] = static_cast<int32_t>(begin_.size());
    begin_.push_back(begin);
    edited_nodes_.push_back(node);
    const absl::Span<const Tensor> inputs = facts_.graph().inputs(node);
    inputs_.insert(inputs_.end(), inputs.begin(), inputs.end());
    for (; i < edits_.size() && edits_[i].node == node; ++i) {
      if (poll->Tick()) return false;
      if (edits_[i].index == kAppended) {
        inputs_.push_back(edits_[i].tensor);
      } else {
        inputs_[begin + edits_[i].index] = edits_[i].tensor;
      }
    }
  }
  begin_.push_back(static_cast<int32_t>(inputs_.size()));
  return true;
}

absl::Span<const Tensor> PlanOverlay::Inputs(NodeId id) const {
  if (IsSwapNode(id)) return ListOf(id - num_nodes_);
  if (facts_.shapes().IsFed(id)) return {};
  if (list_.empty() || list_[id] < 0) return facts_.graph().inputs(id);
  return ListOf(list_[id]);
}

}  // namespace spillway::core
