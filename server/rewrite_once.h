// A rewrite on a worker, for one call or for all that ask the same at one time (flights.h).
#ifndef SPILLWAY_SERVER_REWRITE_ONCE_H_
#define SPILLWAY_SERVER_REWRITE_ONCE_H_

#include <functional>
#include <memory>

#include "absl/strings/string_view.h"
#include "server/call.h"
#include "server/rewrite_task.h"
#include "spillway/v1/options.pb.h"

namespace spillway::server {

// Rewrites `graph`, or waits for who does; then calls `answer`: in this thread, or later in another
// worker's. `answer` must not throw, and may be all that refers to the call when this returns.
// `graph` must live until then. Does not throw.
void RewriteOnce(Call& call, absl::string_view graph, const v1::RewriteOptions& options,
                 std::function<void(const std::shared_ptr<RewriteAnswer>&)> answer);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_REWRITE_ONCE_H_
