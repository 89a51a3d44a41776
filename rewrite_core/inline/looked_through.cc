#include "rewrite_core/inline/looked_through.h"

#include <utility>

#include "rewrite_core/inline/inline_calls.h"

namespace spillway::core {

absl::StatusOr<std::unique_ptr<LookedThrough>> LookedThrough::Parse(absl::string_view graph_def,
                                                                    const v1::Step& step,
                                                                    const v1::Limits& limits,
                                                                    const StopToken& stop) {
  std::unique_ptr<LookedThrough> looked(new LookedThrough());
  auto file = Graph::Parse(graph_def, limits, stop);
  if (!file.ok()) return file.status();
  looked->file_ = *std::move(file);
  auto calls = InlineCalls(*looked->file_, step, limits, stop);
  if (!calls.ok()) return calls.status();
  looked->inlining_ = std::move(calls->summary);
  if (calls->graph_def.empty()) return looked;
  looked->bytes_ = std::move(calls->graph_def);
  auto inlined = Graph::Parse(looked->bytes_, limits, stop);
  if (!inlined.ok()) return inlined.status();
  looked->inlined_ = *std::move(inlined);
  return looked;
}

}  // namespace spillway::core
