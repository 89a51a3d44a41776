#include "rewrite_core/inspect/shape_listing.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rewrite_core/analysis/topology.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/shown_name.h"
#include "rewrite_core/graph/dtype.h"
#include "rewrite_core/inspect/inspect.h"

namespace spillway::core {
namespace {

constexpr char kUnknown[] = "?";

std::string ShapeText(ShapeView shape) {
  if (!shape.known_rank) return kUnknown;
  return absl::StrCat("[",
                      absl::StrJoin(shape.dims, ",",
                                    [](std::string* out, int64_t dim) {
                                      dim == kUnknownDim ? absl::StrAppend(out, kUnknown)
                                                         : absl::StrAppend(out, dim);
                                    }),
                      "]");
}

std::string TypeText(OutputType type) {
  const absl::string_view name = DataTypeName(type.dtype);
  return absl::StrCat(name, type.is_ref && !name.empty() ? "_ref" : "");
}

// A megabyte of graph may have shapes of gigabytes: no tensor of a program has 254 dimensions.
constexpr size_t kMaxTextBytes = size_t{512} << 20;
constexpr size_t kMaxShownDims = 16;

absl::Status TooLong(absl::string_view node) {
  return Error(
      absl::StatusCode::kOutOfRange, v1::ERROR_REASON_RESULT_TOO_LARGE,
      absl::StrCat("the list of shapes is longer than ", kMaxTextBytes, " bytes, reached at node ",
                   Quoted(node), "; list those of a smaller graph"),
      {{"node", node}});
}

}  // namespace

absl::StatusOr<std::string> ListShapes(absl::string_view graph_def,
                                       const v1::InspectOptions& options, const v1::Limits& limits,
                                       const StopToken& stop) {
  if (absl::Status s = CheckInspectStep(options.step()); !s.ok()) return s;
  auto graph = Graph::Parse(graph_def, limits, stop);
  if (!graph.ok()) return graph.status();
  auto topology = Topology::Build(*graph, stop);
  if (!topology.ok()) return topology.status();
  auto shapes = Shapes::Infer(*graph, *topology, options.step(), stop);
  if (!shapes.ok()) return shapes.status();
  std::string text;
  StopPoller poll(stop);
  for (NodeId id = 0; id < graph->num_nodes(); ++id) {
    for (int32_t port = 0; port < shapes->num_outputs(id); ++port) {
      if (poll.Tick()) return stop.status("shapes");
      const std::string type = TypeText(shapes->type({id, port}));
      if (text.size() > kMaxTextBytes) return TooLong(graph->name(id));
      absl::StrAppend(&text, absl::CHexEscape(graph->name(id)), ":", port, "\t",
                      type.empty() ? kUnknown : type, "\t", ShapeText(shapes->shape({id, port})),
                      "\n");
    }
  }
  return text;
}

v1::TensorSummary Summarize(const Graph& graph, const Shapes& shapes, Tensor tensor) {
  v1::TensorSummary summary;
  summary.set_tensor(absl::StrCat(ShownName(graph.name(tensor.node)), ":", tensor.port));
  summary.set_dtype(TypeText(shapes.type(tensor)));
  const ShapeView shape = shapes.shape(tensor);
  if (shape.known_rank) {
    ShapeView shown = shape;
    shown.dims = shown.dims.subspan(0, kMaxShownDims);
    summary.set_shape(ShapeText(shown));
    if (shape.dims.size() > kMaxShownDims) summary.mutable_shape()->append("...");
  }
  const int64_t bytes = shapes.size_bytes(tensor);
  if (bytes == kUnknownSize) {
    summary.set_size_unknown(shapes.why_unknown(tensor));
  } else {
    summary.set_size_bytes(bytes);
  }
  return summary;
}

}  // namespace spillway::core
