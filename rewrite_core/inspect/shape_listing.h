// Types, shapes and sizes of tensors, for people and programs.
#ifndef SPILLWAY_REWRITE_CORE_INSPECT_SHAPE_LISTING_H_
#define SPILLWAY_REWRITE_CORE_INSPECT_SHAPE_LISTING_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/shapes.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "spillway/v1/inspect.pb.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::core {

// One line `node:port TAB dtype TAB shape` for each output of each node, in file order. The shape
// is
// `[2,?,3]`, `[]` for a scalar, `?` where the rank is not known; the dtype of a reference ends in
// `_ref`, an unknown one is `?`. Control characters in names are escaped as in C. Looks at
// options.step alone. Errors: those of Inspect. Thread-safe.
absl::StatusOr<std::string> ListShapes(absl::string_view graph_def,
                                       const v1::InspectOptions& options, const v1::Limits& limits,
                                       const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INSPECT_SHAPE_LISTING_H_
