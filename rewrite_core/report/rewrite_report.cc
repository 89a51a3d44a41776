#include "rewrite_core/report/rewrite_report.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/node_writer.h"
#include "rewrite_core/report/report_names.h"

namespace spillway::core {
namespace {

// TensorFlow's own limit on pinned host memory if the variable is not set (gpu_process_state: 64
// GiB). Advising less than this would only reduce it.
constexpr int64_t kDefaultHostLimitMib = 65536;
constexpr int64_t kBytesPerMib = 1 << 20;

void SetAdvice(int64_t swap_out_bytes, v1::Advice* advice) {
  // Twice the peak of swapped-out bytes: the host allocator rounds sizes up to powers of two.
  const int64_t needed_mib = swap_out_bytes / kBytesPerMib * 2 + 1;
  const int64_t mib = std::max(kDefaultHostLimitMib, needed_mib);
  advice->set_host_memory_variable(absl::StrCat("TF_GPU_HOST_MEM_LIMIT_IN_MB=", mib));
  advice->set_host_memory_variable_before_1_14(absl::StrCat("TF_CUDA_HOST_MEM_LIMIT_IN_MB=", mib));
  advice->set_explanation(
      absl::StrCat("twice the bytes swapped out per step, at least TensorFlow's default of ",
                   kDefaultHostLimitMib, " MiB; IBM's rule of thumb is 4 x GPU memory x GPUs"));
  advice->set_config_proto_text(
      "graph_options { rewrite_options { memory_optimization: SCHEDULING_HEURISTICS } }");
}

// With as many digits as needed to parse to the same number.
std::string NumberText(double number) {
  const std::string text = absl::StrFormat("%.15g", number);
  double read = 0;
  return absl::SimpleAtod(text, &read) && read == number ? text : absl::StrFormat("%.17g", number);
}

}  // namespace

void AdviseOnSession(double internal_fragmentation_fraction, v1::RewriteReport* report) {
  if (internal_fragmentation_fraction <= 0) return;
  v1::Advice& advice = *report->mutable_advice();
  advice.set_internal_fragmentation_fraction(internal_fragmentation_fraction);
  advice.set_config_proto_text(
      absl::StrCat(advice.config_proto_text(), advice.config_proto_text().empty() ? "" : " ",
                   "gpu_options { experimental { internal_fragmentation_fraction: ",
                   NumberText(internal_fragmentation_fraction), " } }"));
}

void ReportFigures(const Graph& graph, const SwapPlan& plan, v1::RewriteReport* report) {
  // Device ids are in order of their first node.
  std::map<DeviceId, v1::DeviceReport> devices;
  std::map<v1::EdgeKind, int64_t> edges;
  int64_t swap_out_bytes = 0, unknown_sizes = 0, without_trigger = 0;
  for (const PlannedSwap& swap : plan.swaps) {
    v1::DeviceReport& device = devices[graph.device_id(swap.tensor.node)];
    const int64_t swap_ins = static_cast<int64_t>(swap.swap_ins.size());
    device.set_swapped_tensor_count(device.swapped_tensor_count() + 1);
    device.set_swap_out_count(device.swap_out_count() + 1);
    device.set_swap_in_count(device.swap_in_count() + swap_ins);
    if (swap.size_bytes == kUnknownSize) {
      device.set_unknown_size_count(device.unknown_size_count() + 1);
      ++unknown_sizes;
    } else {
      device.set_swap_out_bytes(device.swap_out_bytes() + swap.size_bytes);
      device.set_swap_in_bytes(device.swap_in_bytes() + swap.size_bytes * swap_ins);
      swap_out_bytes += swap.size_bytes;
    }
    for (const PlannedSwapIn& swap_in : swap.swap_ins) {
      if (swap_in.triggers.empty()) ++without_trigger;
      edges[v1::EDGE_KIND_TRIGGER] += static_cast<int64_t>(swap_in.triggers.size());
      edges[v1::EDGE_KIND_PACE] += static_cast<int64_t>(swap_in.paces.size());
    }
    edges[v1::EDGE_KIND_DEADLINE] += static_cast<int64_t>(swap.deadlines.size());
  }
  for (const ControlEdge& control : plan.controls) ++edges[control.kind];
  for (const auto& [kind, count] : edges) {
    if (count == 0) continue;
    v1::EdgeCount* out = report->add_added_control_edges();
    out->set_kind(kind);
    out->set_count(count);
  }
  for (auto& [id, device] : devices) {
    device.set_device(std::string(graph.device_name(id)));
    *report->add_devices() = std::move(device);
  }
  if (!plan.swaps.empty()) SetAdvice(swap_out_bytes, report->mutable_advice());
  if (unknown_sizes > 0) {
    AddWarning(v1::WARNING_CODE_UNKNOWN_SIZES,
               absl::StrCat(unknown_sizes, " of ", plan.swaps.size(),
                            " swapped tensors have no known size, so byte figures are lower "
                            "bounds; the decisions say why, and feeds, batch_size or a graph "
                            "with _output_shapes may help"),
               report);
  }
  if (without_trigger > 0) {
    AddWarning(v1::WARNING_CODE_NO_TRIGGER,
               absl::StrCat(without_trigger,
                            " swap-ins have no trigger and start as soon as their tensor is out, "
                            "which frees no memory"),
               report);
  }
}

absl::Status ReportSwaps(const Graph& graph, const SwapPlan& plan,
                         const std::vector<SwapNodeNames>& names, const StopToken& stop,
                         v1::RewriteReport* report) {
  ReportNames counted(graph, "the report", stop);
  for (size_t i = 0; i < plan.swaps.size(); ++i) {
    const PlannedSwap& planned = plan.swaps[i];
    v1::TensorSwap* swap = report->add_swaps();
    swap->set_tensor(TensorName(graph, planned.tensor));
    swap->set_swap_out(names[i].swap_out);
    swap->set_device(std::string(graph.device(planned.tensor.node)));
    if (planned.size_bytes != kUnknownSize) swap->set_size_bytes(planned.size_bytes);
    absl::Status s =
        counted.Count(swap->tensor().size() + swap->swap_out().size() + swap->device().size());
    for (size_t k = 0; s.ok() && k < planned.swap_ins.size(); ++k) {
      const PlannedSwapIn& planned_in = planned.swap_ins[k];
      v1::SwapIn* swap_in = swap->add_swap_ins();
      swap_in->set_name(names[i].swap_ins[k]);
      s = counted.Count(swap_in->name().size());
      for (size_t c = 0; s.ok() && c < planned_in.consumers.size(); ++c) {
        v1::InputRef* ref = swap_in->add_consumers();
        ref->set_input_index(planned_in.consumers[c].index);
        s = counted.Add(planned_in.consumers[c].node, ref->mutable_node());
      }
      if (s.ok()) s = counted.AddAll(planned_in.triggers, swap_in->mutable_triggers());
      if (s.ok()) s = counted.AddAll(planned_in.paces, swap_in->mutable_pace_nodes());
    }
    if (s.ok()) s = counted.AddAll(planned.deadlines, swap->mutable_deadline_nodes());
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status ReportDecisions(const Graph& graph, const std::vector<TensorDecision>& decisions,
                             const StopToken& stop, v1::RewriteReport* report) {
  // Each tensor once; it has a reader, so the graph spells its name.
  StopPoller poll(stop);
  report->mutable_decisions()->Reserve(static_cast<int>(decisions.size()));
  for (const TensorDecision& decision : decisions) {
    if (poll.Tick()) return stop.status("report");
    v1::Decision* out = report->add_decisions();
    out->set_tensor(TensorName(graph, decision.tensor));
    out->set_reason(decision.reason);
    if (decision.size_bytes == kUnknownSize) {
      out->set_size_unknown(decision.why_unknown);
    } else {
      out->set_size_bytes(decision.size_bytes);
    }
  }
  return absl::OkStatus();
}

void AddWarning(v1::WarningCode code, absl::string_view message, v1::RewriteReport* report) {
  v1::Warning* warning = report->add_warnings();
  warning->set_code(code);
  warning->set_message(std::string(message));
}

void WarnOfFunctions(const Graph& graph, v1::RewriteReport* report) {
  if (!graph.has_functions()) return;
  AddWarning(v1::WARNING_CODE_FUNCTION_BODIES,
             "tensors inside function bodies (If, While, PartitionedCall) are never swapped",
             report);
}

std::string PlanSummary(const SwapPlan& plan, int64_t nodes_added) {
  std::string summary =
      absl::StrCat(plan.swaps.size(), " tensors will be swapped out to and in from the host; ",
                   nodes_added, " nodes were added");
  const auto count = [&plan](v1::EdgeKind kind) {
    return std::count_if(plan.controls.begin(), plan.controls.end(),
                         [kind](const ControlEdge& edge) { return edge.kind == kind; });
  };
  if (const auto edges = count(v1::EDGE_KIND_SERIALIZATION); edges > 0) {
    absl::StrAppend(&summary, "; ", edges, " control edges hold ops in order");
  }
  if (const auto edges = count(v1::EDGE_KIND_ORDER); edges > 0) {
    absl::StrAppend(&summary, "; ", edges, " control edges hold back early ops");
  }
  return summary;
}

absl::Status MakePatch(const Graph& graph, const GraphEdit& edit, const StopToken& stop,
                       v1::GraphPatch* patch) {
  patch->Clear();
  ReportNames counted(graph, "the patch", stop);
  // One at a time: there may be very many, and each takes several times its serialized size.
  for (WireReader nodes(edit.new_nodes()); nodes.Next();) {
    const NodeSpec node = ReadNode(nodes.bytes());
    v1::NewNode* out = patch->add_new_nodes();
    out->set_name(node.name);
    out->set_op(node.op);
    out->set_device(node.device);
    absl::Status s = counted.Count(node.name.size() + node.op.size() + node.device.size());
    for (const std::string& input : node.inputs) {
      if (s.ok()) s = counted.Count(input.size());
      if (!s.ok()) return s;
      out->add_inputs(input);
    }
    for (const auto& [key, value] : node.attrs) {
      if (key == kUndoAttr) continue;
      v1::NodeAttribute* attribute = out->add_attributes();
      attribute->set_name(key);
      attribute->set_value(value);
    }
    std::sort(
        out->mutable_attributes()->begin(), out->mutable_attributes()->end(),
        [](const v1::NodeAttribute& a, const v1::NodeAttribute& b) { return a.name() < b.name(); });
  }
  // Rewires are in order of their node, which may have very many inputs: read each node once.
  NodeId node = kNoNode;
  std::vector<absl::string_view> inputs;
  for (const GraphEdit::Rewire& rewire : edit.rewires()) {
    if (rewire.node != node) {
      node = rewire.node;
      inputs = graph.input_spellings(node);
    }
    const absl::string_view old = inputs[rewire.index];
    v1::RewiredInput* out = patch->add_rewired_inputs();
    absl::Status s = counted.Add(rewire.node, out->mutable_node());
    if (s.ok()) s = counted.Count(old.size() + rewire.spelling.size());
    if (!s.ok()) return s;
    out->set_input_index(rewire.index);
    out->set_old_input(std::string(old));
    out->set_new_input(rewire.spelling);
  }
  for (const GraphEdit::Control& control : edit.controls()) {
    v1::AddedControl* out = patch->add_added_controls();
    absl::Status s = counted.Add(control.node, out->mutable_node());
    if (s.ok()) s = counted.Count(control.source.size());
    if (!s.ok()) return s;
    out->set_source(control.source);
    out->set_kind(control.kind);
  }
  return absl::OkStatus();
}

}  // namespace spillway::core
