#include "rewrite_core/report/plan_message.h"

#include <string>
#include <utility>

#include "rewrite_core/graph/canonical_form.h"
#include "rewrite_core/report/report_names.h"

namespace spillway::core {

namespace {

absl::Status WriteClone(const PlannedClone& planned, ReportNames* counted,
                        v1::PlannedClone* clone) {
  absl::Status s = counted->Add(planned.original, clone->mutable_node());
  for (const PlannedClone::Input& input : planned.inputs) {
    v1::CloneInput* of = clone->add_inputs();
    of->set_input_index(input.index);
    of->set_clone(input.from);
  }
  if (s.ok() && planned.trigger != kNoNode) {
    s = counted->Add(planned.trigger, clone->mutable_trigger());
  }
  for (const InputPosition& consumer : planned.consumers) {
    v1::InputRef* ref = clone->add_consumers();
    ref->set_input_index(consumer.index);
    if (s.ok()) s = counted->Add(consumer.node, ref->mutable_node());
    if (!s.ok()) return s;
  }
  return s.ok() ? counted->AddAll(planned.updates, clone->mutable_updates()) : s;
}

}  // namespace

absl::Status WritePlanMessage(const Graph& file, const Graph& graph, const StrategyResult& result,
                              const StopToken& stop, v1::Plan* message) {
  const ClonePlan& clones = result.clones;
  const SwapPlan& plan = result.plan;
  auto sha256 = CanonicalSha256(file.bytes(), stop);
  if (!sha256.ok()) return sha256.status();
  message->set_format_version(!result.offload.empty()  ? kOffloadPlanFormatVersion
                              : !clones.clones.empty() ? kClonePlanFormatVersion
                                                       : kPlanFormatVersion);
  message->set_graph_sha256(*std::move(sha256));
  message->set_cpu_device(plan.cpu_device);
  ReportNames counted(graph, "the plan", stop);
  for (const StateGroup& group : result.offload.groups) {
    absl::Status s =
        counted.AddAll(group.variables, message->add_moved_groups()->mutable_variables());
    if (!s.ok()) return s;
  }
  for (const PlannedClone& planned : clones.clones) {
    if (absl::Status s = WriteClone(planned, &counted, message->add_clones()); !s.ok()) return s;
  }
  for (const PlannedSwap& planned : plan.swaps) {
    v1::PlannedSwap* swap = message->add_swaps();
    swap->set_tensor(TensorName(graph, planned.tensor));
    swap->set_dtype(std::string(DataTypeName(planned.dtype)));
    if (planned.size_bytes != kUnknownSize) swap->set_size_bytes(planned.size_bytes);
    absl::Status s = counted.Count(swap->tensor().size());
    for (const PlannedSwapIn& planned_in : planned.swap_ins) {
      v1::PlannedSwapIn* swap_in = swap->add_swap_ins();
      for (const InputPosition& consumer : planned_in.consumers) {
        v1::InputRef* ref = swap_in->add_consumers();
        ref->set_input_index(consumer.index);
        if (s.ok()) s = counted.Add(consumer.node, ref->mutable_node());
        if (!s.ok()) return s;
      }
      if (s.ok()) s = counted.AddAll(planned_in.triggers, swap_in->mutable_triggers());
      if (s.ok()) s = counted.AddAll(planned_in.paces, swap_in->mutable_pace_nodes());
      if (!s.ok()) return s;
    }
    if (s.ok()) s = counted.AddAll(planned.deadlines, swap->mutable_deadline_nodes());
    if (!s.ok()) return s;
  }
  for (const ControlEdge& planned : plan.controls) {
    v1::AddedControl* control = message->add_controls();
    control->set_kind(planned.kind);
    absl::Status s = counted.Add(planned.to, control->mutable_node());
    if (s.ok()) s = counted.Add(planned.from, control->mutable_source());
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace spillway::core
