// What a step takes once a strategy has fitted it to a machine, without writing the graph: for
// searches over sizes.
#ifndef SPILLWAY_REWRITE_CORE_INSPECT_SWAPPED_STEP_H_
#define SPILLWAY_REWRITE_CORE_INSPECT_SWAPPED_STEP_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "spillway/v1/forecast.pb.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::core {

struct SwappedStep {
  // Absent: no plan fits. As the graph is, where no swapping is needed.
  absl::optional<v1::Forecast> forecast;
  // Of the step as the graph is, launched ahead, with unlimited memory.
  int64_t full_speed_ns = 0;
};

// `options`: of a strategy that plans. Errors: those of the facts and of the strategy, but for
// DOES_NOT_FIT. Thread-safe.
absl::StatusOr<SwappedStep> ForecastSwapped(const Graph& graph, const v1::RewriteOptions& options,
                                            const v1::Limits& limits, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INSPECT_SWAPPED_STEP_H_
