#include "rewrite_core/inspect/shape_listing.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/report/tensor_summary.h"

namespace spillway::core {
namespace {

// A megabyte of graph may have shapes of gigabytes.
constexpr size_t kMaxTextBytes = size_t{512} << 20;

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
  auto graph = Graph::Parse(graph_def, limits, stop);
  if (!graph.ok()) return graph.status();
  const StepFacts facts(*graph, options.step());
  if (absl::Status s = facts.Compute({Fact::kShapes}, stop); !s.ok()) return s;
  const Shapes& shapes = facts.shapes();
  std::string text;
  StopPoller poll(stop);
  for (NodeId id = 0; id < graph->num_nodes(); ++id) {
    for (int32_t port = 0; port < shapes.num_outputs(id); ++port) {
      if (poll.Tick()) return stop.status("shapes");
      if (text.size() > kMaxTextBytes) return TooLong(graph->name(id));
      absl::StrAppend(&text, absl::CHexEscape(graph->name(id)), ":", port, "\t",
                      TypeText(shapes.type({id, port}), "?"), "\t",
                      ShapeText(shapes.shape({id, port})), "\n");
    }
  }
  return text;
}

}  // namespace spillway::core
