#include "rewrite_core/apply/plan_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/machine/device_name.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::core {
namespace {

// It copies because it is on the host.
constexpr char kSwapOp[] = "Identity";

NodeSpec SwapNode(std::string name, std::string device, DataType dtype) {
  NodeSpec node;
  node.name = std::move(name);
  node.op = kSwapOp;
  node.device = std::move(device);
  node.attrs = {{"T", TypeAttr(dtype)}, {kGrapplerKeepAttr, BoolAttr(true)}};
  return node;
}

}  // namespace

absl::StatusOr<std::vector<SwapNodeNames>> WritePlan(const Graph& graph, const SwapPlan& plan,
                                                     const StopToken& stop, GraphEdit* edit) {
  StopPoller poll(stop);
  std::vector<SwapNodeNames> names;
  names.reserve(plan.swaps.size());
  std::vector<std::string> host_devices(graph.num_devices());  // By device id, once requested.
  for (const PlannedSwap& swap : plan.swaps) {
    if (edit->too_large()) break;
    if (poll.Tick()) return stop.status("apply");
    const absl::string_view producer_device = graph.device(swap.tensor.node);
    std::string& host_device = host_devices[graph.device_id(swap.tensor.node)];
    if (host_device.empty()) host_device = HostDeviceOf(producer_device);
    const std::string& device = plan.cpu_device.empty() ? host_device : plan.cpu_device;
    const std::string stem = NameStem(TensorName(graph, swap.tensor));
    SwapNodeNames of_swap;
    of_swap.swap_out = edit->UniqueName(absl::StrCat("lms/swapout_", stem));
    NodeSpec out = SwapNode(of_swap.swap_out, device, swap.dtype);
    out.inputs = {Spelling(graph.name(swap.tensor.node), swap.tensor.port)};
    edit->AddNode(std::move(out));
    for (const PlannedSwapIn& planned : swap.swap_ins) {
      if (edit->too_large()) break;
      std::string name = edit->UniqueName(absl::StrCat("lms/swapin_", stem));
      NodeSpec in = SwapNode(name, device, swap.dtype);
      in.inputs = {of_swap.swap_out};
      for (NodeId trigger : planned.triggers) {
        if (poll.Tick()) return stop.status("apply");
        in.inputs.push_back(absl::StrCat("^", graph.name(trigger)));
      }
      edit->AddNode(std::move(in));
      for (const InputPosition& consumer : planned.consumers) {
        if (poll.Tick()) return stop.status("apply");
        edit->RewireInput(consumer.node, consumer.index, name);
      }
      for (NodeId node : planned.paces) {
        if (poll.Tick()) return stop.status("apply");
        edit->AddControlInput(node, name, v1::EDGE_KIND_PACE);
      }
      of_swap.swap_ins.push_back(std::move(name));
    }
    for (NodeId node : swap.deadlines) {
      if (poll.Tick()) return stop.status("apply");
      edit->AddControlInput(node, of_swap.swap_out, v1::EDGE_KIND_DEADLINE);
    }
    names.push_back(std::move(of_swap));
  }
  for (const ControlEdge& control : plan.controls) {
    if (poll.Tick()) return stop.status("apply");
    edit->AddControlInput(control.to, graph.name(control.from), control.kind);
  }
  return names;
}

}  // namespace spillway::core
