#include "rewrite_core/base/stop_token.h"

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/steady_time.h"

namespace spillway::core {

StopToken StopToken::AfterStepsForTest(int64_t steps) {
  StopToken token;
  token.step_limit_ = steps;
  return token;
}

StopToken::StopToken(const StopToken& other)
    : deadline_(other.deadline_),
      cancelled_(other.cancelled_),
      plan_listener_(other.plan_listener_),
      search_deadline_(other.search_deadline_),
      search_ended_(other.search_ended_),
      step_limit_(other.step_limit_) {}

bool StopToken::ShouldStop(int64_t steps) const {
  const int64_t total = steps_.fetch_add(steps, std::memory_order_relaxed) + steps;
  if (stopped_.load(std::memory_order_relaxed) != 0) {
    steps_after_stop_.fetch_add(steps, std::memory_order_relaxed);
    return true;
  }
  absl::StatusCode code = absl::StatusCode::kOk;
  if (total > step_limit_ ||
      (cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed))) {
    code = absl::StatusCode::kCancelled;
  } else if (deadline_ != absl::InfiniteFuture() && SteadyNow() >= deadline_) {
    code = absl::StatusCode::kDeadlineExceeded;
  }
  if (code == absl::StatusCode::kOk) return false;
  stopped_.store(static_cast<int>(code), std::memory_order_relaxed);
  return true;
}

bool StopToken::SearchShouldEnd() const {
  return (search_ended_ != nullptr && search_ended_->load(std::memory_order_relaxed)) ||
         (search_deadline_ != absl::InfiniteFuture() && SteadyNow() >= search_deadline_);
}

absl::Status StopToken::status(absl::string_view stage) const {
  const auto code = static_cast<absl::StatusCode>(stopped_.load(std::memory_order_relaxed));
  if (code == absl::StatusCode::kOk) return absl::OkStatus();
  const bool late = code == absl::StatusCode::kDeadlineExceeded;
  return Error(code, v1::ERROR_REASON_STOPPED,
               absl::StrCat(late ? "the deadline passed" : "the call was cancelled", " in stage ",
                            stage, late ? "; allow more time" : ""),
               {{"stage", stage}});
}

}  // namespace spillway::core
