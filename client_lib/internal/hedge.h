// Internal. Hedging: two attempts of one call, of which the first answer wins.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_HEDGE_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_HEDGE_H_

#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client_lib/internal/call_limits.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::internal {

// An attempt. Ends with CANCELLED soon after `limits` are cancelled.
using RewriteAttempt = std::function<absl::StatusOr<v1::RewriteResponse>(const CallLimits& limits)>;

// Runs `first` on this thread and, if it has not ended after `delay`, `second` concurrently on
// another. The first answer is the result and cancels the other attempt; both have ended when this
// returns. While the other attempt may still succeed, an error that says that the server is
// unreachable or full does not count as an answer. If no thread can be started, there is no second
// attempt.
absl::StatusOr<v1::RewriteResponse> Hedge(absl::Duration delay, const CallLimits& limits,
                                          const RewriteAttempt& first,
                                          const RewriteAttempt& second);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_HEDGE_H_
