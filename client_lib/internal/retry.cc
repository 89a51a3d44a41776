#include "client_lib/internal/retry.h"

#include <algorithm>
#include <cmath>

#include "absl/random/random.h"
#include "client_lib/internal/status_conversion.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/steady_time.h"

namespace spillway::internal {
namespace {

// From gRPC's connection backoff.
constexpr double kMultiplier = 1.6;

bool MayTryAgain(const absl::Status& status, Pushback pushback) {
  if (pushback && *pushback < absl::ZeroDuration()) return false;
  if (status.GetPayload(kNoRetryUrl).has_value()) return false;
  if (absl::IsUnavailable(status)) return true;
  // Without a pushback from the server, a retry would add to the load.
  return core::GetErrorReason(status) == v1::ERROR_REASON_OVERLOADED && pushback;
}

bool Sleep(absl::Duration pause, const CancellationToken& token) {
  core::Event cancelled;
  CancellationCallback on_cancel(token, [&cancelled] { cancelled.Notify(); });
  return !cancelled.WaitFor(pause);
}

}  // namespace

RetryHooks DefaultRetryHooks() {
  return {[] {
            absl::BitGen generator;
            return absl::Uniform(generator, 0.0, 1.0);
          },
          Sleep};
}

bool RetryLoop::PauseAfter(absl::Status* status, Pushback pushback) {
  ++attempts_;
  if (attempts_ >= options_.max_attempts || !MayTryAgain(*status, pushback)) return false;
  const absl::Duration pause = NextPause(pushback);
  if (core::SteadyNow() + pause >= limits_.deadline()) return false;
  if (options_.on_retry) {
    options_.on_retry({*status, pause, attempts_ + 1, options_.max_attempts});
  }
  if (!hooks_.sleep(pause, limits_.cancellation())) {
    *status = limits_.CheckStart();
    return false;
  }
  return true;
}

absl::Duration RetryLoop::NextPause(Pushback pushback) {
  const absl::Duration bound = std::min(
      options_.max_backoff, options_.initial_backoff * std::pow(kMultiplier, attempts_ - 1));
  // A server may ask for a month; without a deadline the call would appear to hang.
  const absl::Duration asked =
      std::min(options_.max_backoff, pushback.value_or(absl::ZeroDuration()));
  return asked + bound * hooks_.random();
}

}  // namespace spillway::internal
