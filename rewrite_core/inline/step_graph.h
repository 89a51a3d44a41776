// A graph for forecasts: with its calls inlined, if it has any.
//
// Thread safety: immutable once made.
#ifndef SPILLWAY_REWRITE_CORE_INLINE_STEP_GRAPH_H_
#define SPILLWAY_REWRITE_CORE_INLINE_STEP_GRAPH_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "spillway/v1/inlining.pb.h"
#include "spillway/v1/rewrite_service.pb.h"
#include "spillway/v1/step.pb.h"

namespace spillway::core {

class StepGraph {
 public:
  // `graph_def` must outlive it. Errors: those of Graph::Parse, and of `stop`.
  static absl::StatusOr<std::unique_ptr<StepGraph>> Parse(absl::string_view graph_def,
                                                          const v1::Step& step,
                                                          const v1::Limits& limits,
                                                          const StopToken& stop);

  // The original graph, and the graph with its calls inlined: the same if it has none.
  const Graph& file() const { return *file_; }
  const Graph& graph() const { return inlined_.has_value() ? *inlined_ : *file_; }

  // Whether the graph has calls, inlined or not, and the outcome for each.
  bool has_calls() const {
    return inlining_.inlined_call_count() > 0 || inlining_.kept_call_count() > 0;
  }
  const v1::Inlining& inlining() const { return inlining_; }

 private:
  StepGraph() = default;

  absl::optional<Graph> file_;
  std::string bytes_;  // The bytes of inlined_.
  absl::optional<Graph> inlined_;
  v1::Inlining inlining_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INLINE_STEP_GRAPH_H_
