// What is wrong with a request whatever its graph: the same by every door, and also where a graph
// is kept and no strategy runs.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_REQUEST_CHECK_H_
#define SPILLWAY_REWRITE_CORE_REQUEST_CHECK_H_

#include "absl/status/status.h"
#include "rewrite_core/base/stop_token.h"
#include "spillway/v1/options.pb.h"

namespace spillway::core {

// INVALID_ARGUMENT naming the option: fields and values that this build does not know, numbers out
// of their range, texts that mean nothing, of the strategy asked for and of all else. Also errors
// of `stop`.
absl::Status CheckOptions(const v1::RewriteOptions& options, const StopToken& stop);

// Whether options.outputs asks for that part of the answer. An empty list asks for all but a patch.
bool AsksFor(v1::Output output, const v1::RewriteOptions& options);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_REQUEST_CHECK_H_
