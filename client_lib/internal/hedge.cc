#include "client_lib/internal/hedge.h"

#include <new>
#include <system_error>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/types/optional.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/steady_time.h"

namespace spillway::internal {
namespace {

// Whether the status is a server's definite answer, which any other server would also give.
bool IsAnswer(const absl::Status& status) {
  if (absl::IsUnavailable(status) || absl::IsCancelled(status)) return false;
  if (!absl::IsResourceExhausted(status)) return true;
  // Without a reason, it is this process that lacks memory or threads.
  const v1::ErrorReason reason = core::GetErrorReason(status);
  return reason != v1::ERROR_REASON_OVERLOADED && reason != v1::ERROR_REASON_UNSPECIFIED;
}

}  // namespace

absl::StatusOr<v1::RewriteResponse> Hedge(absl::Duration delay, const CallLimits& limits,
                                          const RewriteAttempt& first,
                                          const RewriteAttempt& second) {
  CancellationToken cancel_first, cancel_second;
  const CancellationCallback on_cancel(limits.cancellation(), [&] {
    cancel_first.Cancel();
    cancel_second.Cancel();
  });
  core::Event first_ended;
  absl::optional<absl::StatusOr<v1::RewriteResponse>> second_result;
  std::thread helper;
  // Runs even if the code below throws.
  const absl::Cleanup join = [&] {
    if (!helper.joinable()) return;
    cancel_second.Cancel();
    first_ended.Notify();
    helper.join();
  };
  try {
    helper = std::thread([&] {
      if (first_ended.WaitFor(delay)) return;
      try {
        second_result = second(CallLimits(limits.deadline(), cancel_second));
      } catch (const std::bad_alloc&) {
        return;  // The first attempt continues.
      }
      if (IsAnswer(second_result->status())) cancel_first.Cancel();
    });
  } catch (const std::system_error&) {
    return first(limits);
  }
  absl::StatusOr<v1::RewriteResponse> result = first(CallLimits(limits.deadline(), cancel_first));
  first_ended.Notify();
  if (IsAnswer(result.status())) cancel_second.Cancel();
  helper.join();
  const bool second_answered = second_result.has_value() && IsAnswer(second_result->status());
  return second_answered && !IsAnswer(result.status()) ? *std::move(second_result) : result;
}

}  // namespace spillway::internal
