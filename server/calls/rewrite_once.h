// A rewrite on a worker, for one call or for all identical concurrent ones (flights.h).
#ifndef SPILLWAY_SERVER_CALLS_REWRITE_ONCE_H_
#define SPILLWAY_SERVER_CALLS_REWRITE_ONCE_H_

#include <functional>
#include <memory>

#include "absl/strings/string_view.h"
#include "server/calls/call.h"
#include "server/work/rewrite_task.h"
#include "spillway/v1/options.pb.h"

namespace spillway::server {

// Rewrites `graph`, or waits for an identical rewrite in progress; then calls `answer`, either on
// this thread or later on another worker. `answer` must not throw, and may hold the only reference
// to the call when this returns. `graph` must live until `answer` is called. Does not throw.
void RewriteOnce(Call& call, absl::string_view graph, const v1::RewriteOptions& options,
                 std::function<void(const std::shared_ptr<RewriteAnswer>&)> answer);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_REWRITE_ONCE_H_
