#include "rewrite_core/report/rewrite_report.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "rewrite_core/analysis/machine/device_name.h"
#include "rewrite_core/analysis/shapes/variable_handles.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/saturating.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/node_writer.h"
#include "rewrite_core/report/report_names.h"

namespace spillway::core {
namespace {

// TensorFlow's own limit on pinned host memory if the variable is not set (gpu_process_state: 64
// GiB). Up to this, nothing has to be set.
constexpr int64_t kDefaultHostLimitMib = 65536;

// Grappler's memory optimizer (core/grappler/optimizers/memory_optimizer.cc) would swap by itself.
// SCHEDULING_HEURISTICS alone still turns an AddN into additions to a variable, in any order, which
// takes more memory than planned and may change bits. (Of 56 plans that
// tests/tensorflow/what_runs.py had changed thus, nine, of a GPT, needed 2 to 19 % more memory than
// with NO_MEM_OPT, and one of these did not fit; the others were the same.) Without it the first
// value of a reference variable is copied, as simulator.h has it.
constexpr char kNoMemoryOptimizer[] =
    "graph_options { rewrite_options { memory_optimization: NO_MEM_OPT } }";

// The parts of Grappler to switch off so that a graph and its rewritten one compute the same bits,
// if the same kernels run: tests/tensorflow/grappler_bits.py finds the fewest.
constexpr char kSameBits[] = "graph_options { rewrite_options { arithmetic_optimization: OFF } }";

// Memory pinned by feeds, fetches, checkpoints and the input pipeline beside swaps: an assumption.
// A region that does not grow has to hold it, too.
constexpr int64_t kOtherPinnedMib = 1024;

// `variable_bytes`: of variables on CPUs, which TensorFlow pins if there is a GPU
// (set_gpu_compatible in core/kernels/variable_ops.cc and resource_variable_ops.cc).
void SetAdvice(int64_t swap_out_bytes, int64_t variable_bytes, bool sizes_known,
               v1::Advice* advice) {
  // Twice the bytes: the host allocator rounds sizes up to powers of two.
  const int64_t needed_mib = SaturatingAdd(swap_out_bytes, variable_bytes) / kBytesPerMib * 2 + 1;
  advice->set_config_proto_text(kNoMemoryOptimizer);
  // GPUProcessState::GetGpuHostAllocator in core/common_runtime/gpu/gpu_process_state.cc; without
  // growth BFCAllocator takes its limit whole.
  if (sizes_known && swap_out_bytes > 0) {
    advice->set_pinned_memory_config_proto_text(absl::StrCat(
        "gpu_options { experimental { gpu_host_mem_limit_in_mb: ", needed_mib + kOtherPinnedMib,
        " gpu_host_mem_disallow_growth: true } }"));
  }
  if (needed_mib <= kDefaultHostLimitMib) return;
  advice->set_host_memory_variable(absl::StrCat("TF_GPU_HOST_MEM_LIMIT_IN_MB=", needed_mib));
  advice->set_host_memory_variable_before_1_14(
      absl::StrCat("TF_CUDA_HOST_MEM_LIMIT_IN_MB=", needed_mib));
  advice->set_explanation(absl::StrCat("twice the bytes swapped out per step",
                                       variable_bytes > 0 ? " and of variables on CPUs" : "",
                                       "; TensorFlow's default is ", kDefaultHostLimitMib, " MiB"));
}

// With as many digits as needed to parse to the same number.
std::string NumberText(double number) {
  const std::string text = absl::StrFormat("%.15g", number);
  double read = 0;
  return absl::SimpleAtod(text, &read) && read == number ? text : absl::StrFormat("%.17g", number);
}

// Sorts the added nodes so that each reads only earlier ones; otherwise in the order in which they
// were added. REQUIRES: they have no cycle.
absl::Status SortNewNodes(const StopToken& stop, v1::GraphPatch* patch) {
  StopPoller poll(stop);
  auto& nodes = *patch->mutable_new_nodes();
  absl::flat_hash_map<absl::string_view, int> index;
  for (int i = 0; i < nodes.size(); ++i) {
    if (poll.Tick()) return stop.status("report");
    index[nodes[i].name()] = i;
  }
  std::vector<int> order, path;
  std::vector<int> next_input(nodes.size(), 0);  // Of nodes on the path, or already ordered.
  for (int i = 0; i < nodes.size(); ++i) {
    if (next_input[i] == 0) path.push_back(i);
    while (!path.empty()) {
      if (poll.Tick()) return stop.status("report");
      const int last = path.back();
      if (next_input[last]++ == nodes[last].inputs_size()) {
        order.push_back(last);
        path.pop_back();
        continue;
      }
      absl::string_view input = nodes[last].inputs(next_input[last] - 1);
      absl::ConsumePrefix(&input, "^");
      const auto found = index.find(input.substr(0, input.rfind(':')));
      if (found != index.end() && next_input[found->second] == 0) path.push_back(found->second);
    }
  }
  google::protobuf::RepeatedPtrField<v1::NewNode> sorted;
  for (int i : order) {
    if (poll.Tick()) return stop.status("report");
    *sorted.Add() = std::move(nodes[i]);
  }
  nodes = std::move(sorted);
  return absl::OkStatus();
}

}  // namespace

absl::Status ReportClones(const StepFacts& facts, const ClonePlan& clones, const StopToken& stop,
                          v1::RewriteReport* report) {
  if (absl::Status s = facts.Compute({Fact::kCosts}, stop); !s.ok()) return s;
  const Graph& graph = facts.graph();
  // Outputs that have readers, except those in the memory of an input.
  std::set<std::pair<CloneIndex, int32_t>> read;
  std::map<DeviceId, int64_t> times_ns;
  StopPoller poll(stop);
  for (CloneIndex i(0); i < static_cast<int32_t>(clones.clones.size()); ++i) {
    if (poll.Tick()) return stop.status("report");
    const PlannedClone& clone = clones.clones[i];
    times_ns[graph.device_id(clone.original)] += facts.costs()[clone.original].duration_ns;
    for (const PlannedClone::Input& input : clone.inputs) {
      if (poll.Tick()) return stop.status("report");
      read.emplace(input.from, graph.inputs(clone.original)[input.index].port);
    }
    for (const InputPosition& consumer : clone.consumers) {
      if (poll.Tick()) return stop.status("report");
      read.emplace(i, graph.inputs(consumer.node)[consumer.index].port);
    }
  }
  v1::Recomputation& out = *report->mutable_recomputation();
  out.set_node_count(static_cast<int64_t>(clones.clones.size()));
  int64_t bytes = 0;
  for (const auto& [from, port] : read) {
    if (poll.Tick()) return stop.status("report");
    const Tensor made{clones.clones[from].original, port};
    const int64_t size = facts.shapes().size_bytes(made);
    if (size != kUnknownSize && facts.buffers().alias_input(made) == kNoAlias) {
      bytes = SaturatingAdd(bytes, size);
    }
  }
  out.set_bytes(bytes);
  for (const auto& [device, time_ns] : times_ns) out.set_time_ns(std::max(out.time_ns(), time_ns));
  return absl::OkStatus();
}

absl::Status ReportCloneNames(const Graph& graph, const ClonePlan& clones,
                              const std::vector<std::string>& names, const StopToken& stop,
                              v1::RewriteReport* report) {
  ReportNames counted(graph, "the report", stop);
  std::map<NodeId, v1::RecomputedNode> nodes;  // In file order.
  for (size_t i = 0; i < names.size(); ++i) {
    v1::RecomputedNode& node = nodes[clones.clones[i].original];
    absl::Status s = counted.Count(names[i].size());
    if (s.ok() && node.clones().empty()) {
      s = counted.Add(clones.clones[i].original, node.mutable_original());
    }
    if (!s.ok()) return s;
    node.add_clones(names[i]);
  }
  StopPoller poll(stop);
  for (auto& [original, node] : nodes) {
    if (poll.Tick()) return stop.status("report");
    *report->mutable_recomputation()->add_nodes() = std::move(node);
  }
  return absl::OkStatus();
}

absl::Status ReportOffload(const Graph& graph, const OffloadPlan& offload, const StopToken& stop,
                           v1::RewriteReport* report) {
  if (offload.empty()) return absl::OkStatus();
  constexpr size_t kMaxKept = 1000;  // As documented.
  ReportNames counted(graph, "the report", stop);
  v1::OffloadReport& out = *report->mutable_offload();
  out.set_state_bytes(offload.state_bytes);
  out.set_node_count(static_cast<int64_t>(offload.nodes.size()));
  for (const StateGroup& group : offload.groups) {
    out.set_variable_count(out.variable_count() + static_cast<int64_t>(group.variables.size()));
    out.set_bytes(SaturatingAdd(out.bytes(), group.bytes));
    v1::MovedState& moved = *out.add_moved();
    moved.set_bytes(group.bytes);
    absl::Status s = counted.AddAll(group.variables, moved.mutable_variables());
    if (!s.ok()) return s;
  }
  for (size_t i = 0; i < std::min(kMaxKept, offload.kept.size()); ++i) {
    const StateGroup& group = offload.kept[i];
    v1::KeptState& kept = *out.add_kept();
    kept.set_bytes(group.bytes);
    kept.set_reason(group.kept);
    absl::Status s = counted.Add(group.variables[0], kept.mutable_variable());
    if (s.ok()) s = counted.Add(group.in_the_way, kept.mutable_node());
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

void ReportSameBits(const Graph& original, const ClonePlan& clones, v1::RewriteReport* report) {
  absl::flat_hash_set<int32_t> ops;  // Each is looked at once: there may be very many clones.
  const bool keeps_bits = absl::c_all_of(clones.clones, [&](const PlannedClone& clone) {
    return !ops.insert(original.op_id(clone.original)).second ||
           original.op_info(clone.original).run_again == RunAgain::kSameBits;
  });
  report->set_same_bits(keeps_bits ? v1::SAME_BITS_WITH_ADVICE : v1::SAME_BITS_NO);
  report->mutable_advice()->set_same_bits_config_proto_text(kSameBits);
}

void AdviseOnSession(double internal_fragmentation_fraction, v1::RewriteReport* report) {
  std::vector<std::string> options;
  v1::Advice& advice = *report->mutable_advice();
  // A resource variable has the memory of its first value, which a restore does not pin
  // (AssignVariableOp in core/kernels/resource_variable_ops.cc): copies would then take twice as
  // long.
  if (report->has_offload()) options.push_back("force_gpu_compatible: true");
  if (internal_fragmentation_fraction > 0) {
    advice.set_internal_fragmentation_fraction(internal_fragmentation_fraction);
    options.push_back(absl::StrCat("experimental { internal_fragmentation_fraction: ",
                                   NumberText(internal_fragmentation_fraction), " }"));
  }
  if (options.empty()) return;
  advice.set_config_proto_text(absl::StrCat(advice.config_proto_text(),
                                            advice.config_proto_text().empty() ? "" : " ",
                                            "gpu_options { ", absl::StrJoin(options, " "), " }"));
}

void AdviseOnEnvironment(const v1::Step& step, v1::RewriteReport* report) {
  const std::string& host_memory = report->advice().host_memory_variable();
  if (!host_memory.empty()) report->mutable_advice()->add_environment(host_memory);
  // GetDnnWorkspaceLimitOrDefault in core/kernels/conv_ops_gpu.cc, in MiB.
  const int64_t limit = step.has_convolution_workspace_limit_bytes()
                            ? step.convolution_workspace_limit_bytes()
                            : report->forecast_after().convolution_workspace_limit_bytes();
  if (limit == 0) return;
  report->mutable_advice()->add_environment(
      absl::StrCat("TF_CUDNN_WORKSPACE_LIMIT_IN_MB=", limit / kBytesPerMib));
}

// The device of the node's output: that of the variable, for a node that reads one.
absl::string_view DeviceOfValue(const Graph& graph, NodeId node) {
  const absl::Span<const Tensor> inputs = graph.inputs(node);
  const bool reads = TakesVariable(graph.op(node)) && !inputs.empty() && !inputs[0].is_control();
  return graph.device(reads ? HandleOrigin(graph, inputs[0]).node : node);
}

absl::Status ReportFigures(const Graph& graph, const ClonePlan& clones, const SwapPlan& plan,
                           const StopToken& stop, v1::RewriteReport* report) {
  // Device ids are in order of their first node.
  std::map<DeviceId, v1::DeviceReport> devices;
  std::map<v1::EdgeKind, int64_t> edges;
  int64_t swap_out_bytes = 0, unknown_sizes = 0, without_trigger = 0;
  StopPoller poll(stop);
  for (const PlannedSwap& swap : plan.swaps) {
    if (poll.Tick(1 + static_cast<int64_t>(swap.swap_ins.size()))) return stop.status("report");
    v1::DeviceReport& device = devices[graph.device_id(swap.tensor.node)];
    const int64_t swap_ins = static_cast<int64_t>(swap.swap_ins.size());
    device.set_swapped_tensor_count(device.swapped_tensor_count() + 1);
    device.set_swap_out_count(device.swap_out_count() + 1);
    device.set_swap_in_count(device.swap_in_count() + swap_ins);
    if (swap.size_bytes == kUnknownSize) {
      device.set_unknown_size_count(device.unknown_size_count() + 1);
      ++unknown_sizes;
    } else {
      // Tensors already in host memory are not copied there.
      const bool is_on_host = IsCpuDevice(DeviceOfValue(graph, swap.tensor.node));
      const int64_t out_bytes = is_on_host ? 0 : swap.size_bytes;
      device.set_swap_out_bytes(SaturatingAdd(device.swap_out_bytes(), out_bytes));
      device.set_swap_in_bytes(
          SaturatingAdd(device.swap_in_bytes(), SaturatingMultiply(swap.size_bytes, swap_ins)));
      swap_out_bytes = SaturatingAdd(swap_out_bytes, out_bytes);
    }
    for (const PlannedSwapIn& swap_in : swap.swap_ins) {
      if (swap_in.triggers.empty()) ++without_trigger;
      edges[v1::EDGE_KIND_TRIGGER] += static_cast<int64_t>(swap_in.triggers.size());
      edges[v1::EDGE_KIND_PACE] += static_cast<int64_t>(swap_in.paces.size());
    }
    edges[v1::EDGE_KIND_DEADLINE] += static_cast<int64_t>(swap.deadlines.size());
  }
  for (const ControlEdge& control : plan.controls) {
    if (poll.Tick()) return stop.status("report");
    ++edges[control.kind];
  }
  for (const PlannedClone& clone : clones.clones) {
    if (poll.Tick()) return stop.status("report");
    if (clone.trigger != kNoNode) ++edges[v1::EDGE_KIND_TRIGGER];
    edges[v1::EDGE_KIND_ORDER] += static_cast<int64_t>(clone.updates.size());
  }
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
  if (!plan.swaps.empty() || report->has_offload()) {
    const v1::Forecast& forecast = report->forecast_before();
    SetAdvice(swap_out_bytes,
              SaturatingAdd(forecast.host_variable_bytes(), report->offload().bytes()),
              unknown_sizes == 0 &&
                  (!report->has_forecast_before() || forecast.has_host_variable_bytes()),
              report->mutable_advice());
  } else if (!clones.clones.empty()) {
    report->mutable_advice()->set_config_proto_text(kNoMemoryOptimizer);
  }
  if (unknown_sizes > 0) {
    AddWarning(v1::WARNING_CODE_UNKNOWN_SIZES,
               absl::StrCat(unknown_sizes, " of ", plan.swaps.size(),
                            " swapped tensors have no known size, so byte figures are lower "
                            "bounds; the decisions say why, and feeds, batch_size or a graph "
                            "with _output_shapes may help"),
               report);
  }
  if (without_trigger > 0) {
    AddWarning(
        v1::WARNING_CODE_NO_TRIGGER,
        absl::StrCat(
            "no trigger was found for ", CountText(without_trigger, "swap-in"),
            ": without one, a swap-in starts as soon as its tensor is out, and frees no memory"),
        report);
  }
  return absl::OkStatus();
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

void WarnOfFunctions(const Graph& graph, absl::string_view why_kept, v1::RewriteReport* report) {
  if (!graph.has_functions()) return;
  AddWarning(
      v1::WARNING_CODE_FUNCTION_BODIES,
      absl::StrCat("tensors inside function bodies (If, While, PartitionedCall) are never swapped",
                   why_kept.empty() ? "" : "; ", why_kept),
      report);
}

std::string PlanSummary(const OffloadPlan& offload, const ClonePlan& clones, const SwapPlan& plan,
                        int64_t nodes_added, bool dry_run) {
  std::vector<std::string> parts;
  const auto add = [&parts](int64_t count, absl::string_view what, absl::string_view verb) {
    parts.push_back(absl::StrCat(CountText(count, what), verb));
  };
  const auto edges = [&plan](v1::EdgeKind kind) {
    return std::count_if(plan.controls.begin(), plan.controls.end(),
                         [kind](const ControlEdge& edge) { return edge.kind == kind; });
  };
  if (!offload.empty()) {
    int64_t variables = 0;
    for (const StateGroup& group : offload.groups) variables += group.variables.size();
    add(variables, "variable",
        dry_run          ? " would be kept in host memory"
        : variables == 1 ? " is kept in host memory"
                         : " are kept in host memory");
  }
  if (!clones.clones.empty()) {
    add(static_cast<int64_t>(clones.clones.size()), "node",
        dry_run ? " would be recomputed" : " will be recomputed");
  }
  if (clones.clones.empty() || !plan.swaps.empty()) {
    add(static_cast<int64_t>(plan.swaps.size()), "tensor",
        dry_run ? " would be swapped to host memory and back"
                : " will be swapped to host memory and back");
  }
  add(nodes_added, "node",
      dry_run            ? " would be added"
      : nodes_added == 1 ? " was added"
                         : " were added");
  if (const int64_t count = edges(v1::EDGE_KIND_SERIALIZATION); count > 0) {
    add(count, "control edge", count == 1 ? " keeps ops in order" : " keep ops in order");
  }
  if (const int64_t count = edges(v1::EDGE_KIND_ORDER); count > 0) {
    add(count, "control edge",
        count == 1 ? " delays an op that would run too early"
                   : " delay ops that would run too early");
  }
  return absl::StrCat(dry_run ? "dry run: " : "", absl::StrJoin(parts, "; "));
}

absl::Status NameOriginals(const Graph& graph, const ClonePlan& clones,
                           const std::vector<std::string>& names, const StopToken& stop,
                           v1::GraphPatch* patch) {
  ReportNames counted(graph, "the patch", stop);
  StopPoller poll(stop);
  absl::flat_hash_map<absl::string_view, NodeId> originals;
  for (size_t i = 0; i < names.size(); ++i) {
    if (poll.Tick()) return stop.status("report");
    originals[names[i]] = clones.clones[i].original;
  }
  for (v1::NewNode& node : *patch->mutable_new_nodes()) {
    if (poll.Tick()) return stop.status("report");
    const auto found = originals.find(node.name());
    if (found == originals.end()) continue;
    if (absl::Status s = counted.Add(found->second, node.mutable_original()); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status AddToPatch(const Graph& graph, const GraphEdit& edit, const StopToken& stop,
                        v1::GraphPatch* patch) {
  ReportNames counted(graph, "the patch", stop);
  StopPoller poll(stop);
  // Nodes that earlier edits added or rewired are edited.
  absl::flat_hash_map<std::string, v1::NewNode*> added;
  for (v1::NewNode& node : *patch->mutable_new_nodes()) {
    if (poll.Tick()) return stop.status("report");
    added[node.name()] = &node;
  }
  absl::flat_hash_map<std::pair<std::string, int>, v1::RewiredInput*> rewired;
  for (v1::RewiredInput& input : *patch->mutable_rewired_inputs()) {
    if (poll.Tick()) return stop.status("report");
    rewired[{input.node(), input.input_index()}] = &input;
  }
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
      if (poll.Tick()) return stop.status("report");
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
      if (poll.Tick(static_cast<int64_t>(inputs.size()))) return stop.status("report");
    }
    const absl::string_view old = inputs[rewire.index];
    std::string name;
    absl::Status s = counted.Add(rewire.node, &name);
    if (s.ok()) s = counted.Count(old.size() + rewire.spelling.size());
    if (!s.ok()) return s;
    if (const auto of = added.find(name); of != added.end()) {
      of->second->set_inputs(rewire.index, rewire.spelling);
    } else if (const auto was = rewired.find({name, rewire.index}); was != rewired.end()) {
      was->second->set_new_input(rewire.spelling);
    } else {
      v1::RewiredInput* out = patch->add_rewired_inputs();
      out->set_node(std::move(name));
      out->set_input_index(rewire.index);
      out->set_old_input(std::string(old));
      out->set_new_input(rewire.spelling);
    }
  }
  for (const GraphEdit::Control& control : edit.controls()) {
    std::string name;
    absl::Status s = counted.Add(control.node, &name);
    if (s.ok()) s = counted.Count(control.source.size());
    if (!s.ok()) return s;
    if (const auto of = added.find(name); of != added.end()) {
      of->second->add_inputs(absl::StrCat("^", control.source));
      continue;
    }
    v1::AddedControl* out = patch->add_added_controls();
    out->set_node(std::move(name));
    out->set_source(control.source);
    out->set_kind(control.kind);
  }
  return added.empty() ? absl::OkStatus() : SortNewNodes(stop, patch);
}

}  // namespace spillway::core
