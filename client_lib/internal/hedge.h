// Internal. Two attempts of one call, of which the first answer counts.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_HEDGE_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_HEDGE_H_

#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client_lib/internal/call_limits.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::internal {

// Ends with CANCELLED soon after `limits` say so.
using RewriteAttempt = std::function<absl::StatusOr<v1::RewriteResponse>(const CallLimits& limits)>;

// Runs `first` on this thread and, if it has not ended after `delay`, `second` meanwhile on
// another. The first answer is the result, and cancels the other attempt; both have ended when this
// returns. An error that says that the server cannot be reached or is full is no answer as long as
// the other attempt may have one. If there is no thread, there is no second attempt.
absl::StatusOr<v1::RewriteResponse> Hedge(absl::Duration delay, const CallLimits& limits,
                                          const RewriteAttempt& first,
                                          const RewriteAttempt& second);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_HEDGE_H_
