// How large a batch or an image may be: simulates a graph at many sizes, and searches for the
// largest that fits.
#ifndef SPILLWAY_REWRITE_CORE_INSPECT_EXPLORE_H_
#define SPILLWAY_REWRITE_CORE_INSPECT_EXPLORE_H_

#include <functional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"
#include "spillway/v1/rewrite_service.pb.h"
#include "spillway/v1/simulate.pb.h"

namespace spillway::core {

using ExploredSizeSink = std::function<void(const v1::ExploredSize&)>;

// `graph_def`: a serialized tensorflow.GraphDef. The largest size is found by bisection, which
// assumes that no size above one that does not fit fits either. Sizes are at most 2^31 - 1; a size
// at which bytes overflow 63 bits does not fit, with a warning. Without a budget only the requested
// sizes are simulated, without a search. Errors: those of SimulateGraph, including for a size that
// contradicts the graph's shapes; INVALID_ARGUMENT if sizes, multiple_of or the dimensions -1 are
// wrong, if a profile is given, if no_budget is given without sizes or with swapping, or if the
// size changes nothing in the graph. Thread-safe.
//
// `on_size`, if set, is called once for each size in the report, in this thread, as soon as its
// entry is complete, except plan_of_size: in no particular order, and even if an error follows.
absl::StatusOr<v1::ExploreReport> Explore(absl::string_view graph_def,
                                          const v1::ExploreOptions& options,
                                          const v1::Limits& limits, const StopToken& stop,
                                          const ExploredSizeSink& on_size = nullptr);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INSPECT_EXPLORE_H_
