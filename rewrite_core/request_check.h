// Checks of a request that do not depend on its graph. They are the same for every entry point, and
// also apply if the graph stays unchanged and no strategy runs.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_REQUEST_CHECK_H_
#define SPILLWAY_REWRITE_CORE_REQUEST_CHECK_H_

#include "absl/status/status.h"
#include "rewrite_core/base/stop_token.h"
#include "spillway/v1/options.pb.h"

namespace spillway::core {

// Checks all options, those of the requested strategy included. INVALID_ARGUMENT naming the option
// for fields and values that this build does not know, numbers out of range, and text that does not
// parse. Also errors of `stop`.
absl::Status CheckOptions(const v1::RewriteOptions& options, const StopToken& stop);

// Whether options.outputs requests that part of the response. An empty list requests the graph and
// the report.
bool AsksFor(v1::Output output, const v1::RewriteOptions& options);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_REQUEST_CHECK_H_
