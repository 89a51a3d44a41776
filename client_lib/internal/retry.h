// Internal. Whether a failed attempt is followed by another, and the pause in between.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_RETRY_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_RETRY_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "client_lib/internal/call_limits.h"
#include "spillway/remote_connection.h"

namespace spillway::internal {

// What the server said about coming back (gRPC's `grpc-retry-pushback-ms`). Absent: nothing.
// Negative: do not.
using Pushback = absl::optional<absl::Duration>;

// Where chance and time come from. Tests give their own.
struct RetryHooks {
  // A number in [0, 1), each as likely as any other.
  std::function<double()> random;
  // Waits that long; false, at once, when `token` is cancelled.
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

  // Waits and returns true if there is to be another attempt. Otherwise `*status` is the answer of
  // the call: unchanged, or CANCELLED if that is what ended the pause.
  bool PauseAfter(absl::Status* status, Pushback pushback);

 private:
  absl::Duration NextPause(Pushback pushback);

  const RetryOptions& options_;
  const CallLimits& limits_;
  const RetryHooks hooks_;
  int attempts_ = 0;  // That have failed.
};

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_RETRY_H_
