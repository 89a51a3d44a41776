// Internal. Whether a failed attempt is retried, and the backoff before that.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_RETRY_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_RETRY_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "client_lib/internal/call_limits.h"
#include "spillway/remote_connection.h"

namespace spillway::internal {

// The server's pushback (gRPC's `grpc-retry-pushback-ms`). Absent: none. Negative: do not retry.
using Pushback = absl::optional<absl::Duration>;

// The sources of randomness and time. Tests provide their own.
struct RetryHooks {
  // A uniformly distributed number in [0, 1).
  std::function<double()> random;
  // Waits for the duration; returns false immediately when `token` is cancelled.
  std::function<bool(absl::Duration, const CancellationToken& token)> sleep;
};
RetryHooks DefaultRetryHooks();

// The attempts of one call. Not thread-safe.
//
//   RetryLoop retry(options, limits);
//   while (true) {
//     absl::Status status = Attempt(&pushback);
//     if (status.ok() || !retry.PauseAfter(&status, pushback)) return status;
//   }
class RetryLoop {
 public:
  // Both must outlive the loop.
  RetryLoop(const RetryOptions& options, const CallLimits& limits,
            RetryHooks hooks = DefaultRetryHooks())
      : options_(options), limits_(limits), hooks_(std::move(hooks)) {}

  // Waits and returns true if another attempt should follow. Otherwise `*status` is the result of
  // the call: unchanged, or CANCELLED if the pause was cancelled.
  bool PauseAfter(absl::Status* status, Pushback pushback);

 private:
  absl::Duration NextPause(Pushback pushback);

  const RetryOptions& options_;
  const CallLimits& limits_;
  const RetryHooks hooks_;
  int attempts_ = 0;  // Failed so far.
};

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_RETRY_H_
