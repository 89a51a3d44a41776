#include "rewrite_core/analysis/memory/unknown_memory.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/shown_name.h"

namespace spillway::core {
namespace {

// The name of the loop that a node enters.
std::string LoopName(const Graph& graph, NodeId enter) {
  const auto name = graph.attr(enter, "frame_name");
  return ShownName(name ? AttrString(*name).value_or("") : "");
}

// Whether a variable's handle enters the graph at this node.
bool IsOutsideHandle(const Graph& graph, NodeId id) {
  const auto dtype = graph.op(id) == "Placeholder" ? graph.attr(id, "dtype") : absl::nullopt;
  return dtype && AttrType(*dtype) == kDtResource;
}

std::string Message(const Graph& graph, v1::FitUnknownCause cause, int64_t count, NodeId id) {
  const std::string node = ShownName(graph.name(id));
  const std::string at =
      absl::StrCat(count == 1 ? "that of node " : "one of them that of node ", Quoted(node));
  switch (cause) {
    case v1::FIT_UNKNOWN_CAUSE_SIZES:
      if (IsOutsideHandle(graph, id)) {
        return absl::StrCat("the size of ", CountText(count, "buffer"), " on GPUs is unknown, ",
                            count == 1 ? "" : "one of them ", "the variable behind node ",
                            Quoted(node), ", whose shape is not stated; give it as the feed of ",
                            "that name (feeds), or a profile");
      }
      return absl::StrCat("the size of ", CountText(count, "buffer"), " on GPUs is unknown, ", at,
                          "; give batch_size or feeds, a graph with _output_shapes, or a profile");
    case v1::FIT_UNKNOWN_CAUSE_LOOPS:
      return absl::StrCat("loops of unknown iteration count keep ", CountText(count, "buffer"),
                          " on GPUs for each iteration; one such loop is ",
                          Quoted(LoopName(graph, id)),
                          ": give its number of iterations (loop_counts)");
    default:
      return absl::StrCat("the memory that ", CountText(count, "function call"),
                          " on GPUs take is unknown, ", at,
                          "; give the graph with its functions inlined");
  }
}

}  // namespace

void UnknownMemory::Add(v1::FitUnknownCause cause, Place gpu, NodeId node) {
  Nodes& found = nodes[{cause, gpu}];
  found.first = found.count == 0 ? node : std::min(found.first, node);
  ++found.count;
}

std::vector<v1::FitUnknown> DescribeUnknown(const Graph& graph, const UnknownMemory& unknown,
                                            absl::optional<Place> gpu) {
  std::map<v1::FitUnknownCause, UnknownMemory::Nodes> by_cause;
  for (const auto& [key, nodes] : unknown.nodes) {
    if (gpu.has_value() && key.second != *gpu) continue;
    UnknownMemory::Nodes& all = by_cause[key.first];
    all.first = all.count == 0 ? nodes.first : std::min(all.first, nodes.first);
    all.count += nodes.count;
  }
  std::vector<v1::FitUnknown> causes;
  for (const auto& [cause, nodes] : by_cause) {
    v1::FitUnknown& out = causes.emplace_back();
    out.set_cause(cause);
    out.set_node(ShownName(graph.name(nodes.first)));
    out.set_count(nodes.count);
    out.set_message(Message(graph, cause, nodes.count, nodes.first));
  }
  return causes;
}

}  // namespace spillway::core
