#include "rewrite_core/analysis/flow/active_nodes.h"

#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/flow/constant_shapes.h"
#include "rewrite_core/analysis/flow/default_targets.h"
#include "rewrite_core/analysis/flow/grappler_noops.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/graph/near_in_graph.h"
#include "rewrite_core/graph/op_outputs.h"
#include "rewrite_core/graph/strip.h"

namespace spillway::core {
namespace {

absl::Status BadTarget(v1::ErrorReason reason, absl::string_view name, absl::string_view what) {
  return InvalidError(reason,
                      absl::StrCat("target ", Quoted(name), " ", what,
                                   "; name nodes, or tensors as node:port, of this graph"),
                      {{"option", "targets"}, {"value", name}});
}

absl::StatusOr<NodeId> FindTarget(const Graph& graph, absl::string_view target,
                                  OutputCounts& counts) {
  absl::string_view name = target;
  const size_t colon = name.rfind(':');
  int port = 0;
  if (colon != absl::string_view::npos) {
    if (!absl::SimpleAtoi(name.substr(colon + 1), &port) || port < 0) {
      return BadTarget(v1::ERROR_REASON_BAD_OPTION, target, "is not of the form node or node:port");
    }
    name = name.substr(0, colon);
  }
  const NodeId node = graph.Find(name);
  if (node == kNoNode)
    return BadTarget(v1::ERROR_REASON_NAME_MATCHES_NOTHING, target,
                     absl::StrCat("names no node of the graph", NearNodes(graph, name)));
  if (colon != absl::string_view::npos) {
    const int count = counts[node];
    if (count >= 0 && port >= count) {
      return BadTarget(v1::ERROR_REASON_NAME_MATCHES_NOTHING, target,
                       absl::StrCat("names output ", port, ", but the node has ", count));
    }
  }
  return node;
}

}  // namespace

absl::StatusOr<std::vector<NodeId>> FindTargets(const Graph& graph, const v1::Step& step,
                                                const StopToken& stop) {
  std::vector<NodeId> targets;
  OutputCounts counts(graph);
  StopPoller poll(stop);
  for (const std::string& name : step.targets()) {
    if (poll.Tick()) return stop.status("active nodes");
    absl::StatusOr<NodeId> node = FindTarget(graph, name, counts);
    if (!node.ok()) return node.status();
    targets.push_back(*node);
  }
  return targets;
}

absl::StatusOr<ActiveNodes> FindActiveNodes(const Graph& graph, const Topology& topology,
                                            const Shapes& shapes, const v1::Step& step,
                                            const BackwardPart* backward, const StopToken& stop) {
  ActiveNodes active;
  auto targets = FindTargets(graph, step, stop);
  if (!targets.ok()) return targets.status();
  active.targets = *std::move(targets);
  StopPoller poll(stop);
  if (step.targets().empty()) {
    active.source = TargetSource::kUpdates;
    absl::StatusOr<BackwardPart> found = BackwardPart();
    if (backward == nullptr) {
      found = FindBackwardPart(graph, topology, stop);
      if (!found.ok()) return found.status();
      backward = &*found;
    }
    auto trains = FindDefaultTargets(graph, topology, shapes, *backward, stop);
    if (!trains.ok()) return trains.status();
    active.targets = *std::move(trains);
  }
  if (active.targets.empty()) {
    active.source = TargetSource::kSinks;
    for (NodeId id(0); id < graph.num_nodes(); ++id) {
      if (poll.Tick()) return stop.status("active nodes");
      if (!graph.readers(id).empty() || IsIdleCall(graph, id) || IsInlinedNode(graph, id)) continue;
      active.targets.push_back(id);
    }
    // The graph is one large loop.
    if (active.targets.empty()) active.targets.push_back(topology.order().back());
  }
  active.needed.assign(graph.num_nodes(), false);
  if (!AddNeeded(graph, shapes, active.targets, &poll, &active.needed)) {
    return stop.status("active nodes");
  }
  active.flags = active.needed;
  auto constants = FindConstantShapes(graph, topology, shapes, step, stop);
  if (!constants.ok()) return constants.status();
  active.constants = *std::move(constants);
  auto only_orders = FindGrapplerNoOps(graph, topology, shapes, step, active.needed,
                                       active.constants, active.targets, stop);
  if (!only_orders.ok()) return only_orders.status();
  active.only_orders = *std::move(only_orders);
  return active;
}

}  // namespace spillway::core
