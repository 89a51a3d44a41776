// How large a batch or an image may be: simulates a graph at many sizes, and looks for the largest
// that fits.
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

// `graph_def`: a serialized tensorflow.GraphDef. The search for the largest size goes by bisection:
// it takes for granted that what is above a size that does not fit does not fit either. Sizes up to
// 2^31 - 1; one at which bytes overflow 63 bits does not fit, and a warning says so. Without a
// budget the sizes asked for are simulated, and nothing is looked for. Errors: those of
// SimulateGraph, also where a size contradicts the graph's shapes; INVALID_ARGUMENT if sizes,
// multiple_of or the dimensions -1 are wrong, if a profile is given, or if the size changes nothing
// in the graph. Thread-safe.
//
// `on_size`, if any, is called for each size of the report once, in this thread, as soon as all of
// it is known: in no order, and also where an error follows.
absl::StatusOr<v1::ExploreReport> Explore(absl::string_view graph_def,
                                          const v1::ExploreOptions& options,
                                          const v1::Limits& limits, const StopToken& stop,
                                          const ExploredSizeSink& on_size = nullptr);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INSPECT_EXPLORE_H_
