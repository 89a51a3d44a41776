// How a deadline or a cancellation reaches the loops of the core.
#ifndef SPILLWAY_REWRITE_CORE_BASE_STOP_TOKEN_H_
#define SPILLWAY_REWRITE_CORE_BASE_STOP_TOKEN_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace spillway::core {

// Called by a running plan search for each simulated plan, with its step time; 0 if it does not
// fit. Not called concurrently; must return quickly.
using PlanListener = std::function<void(int64_t step_time_ns)>;

// Says when work should end, and reports its progress: the caller's connection to a running call.
// Thread-safe; the given flag and listener must outlive it.
class StopToken {
 public:
  // Never stops.
  StopToken() = default;

  // Stops at `deadline`, by SteadyNow (DEADLINE_EXCEEDED), or as soon as `*cancelled` is true
  // (CANCELLED). `cancelled` may be null.
  explicit StopToken(absl::Time deadline, const std::atomic<bool>* cancelled = nullptr)
      : deadline_(deadline), cancelled_(cancelled) {}

  // A token that fires after `steps` counted steps, for tests.
  static StopToken AfterStepsForTest(int64_t steps);

  StopToken(const StopToken& other);
  StopToken& operator=(const StopToken&) = delete;

  // Counts `steps` more steps and returns true when work should end.
  bool ShouldStop(int64_t steps) const;

  // OK while ShouldStop has not returned true; otherwise the error, which names `stage`.
  absl::Status status(absl::string_view stage) const;

  // The listener that ReportPlan calls; null for none. Set before the work begins; copies share it.
  void set_plan_listener(const PlanListener* listener) { plan_listener_ = listener; }
  bool tells_plans() const { return plan_listener_ != nullptr; }
  void ReportPlan(int64_t step_time_ns) const {
    if (plan_listener_ != nullptr) (*plan_listener_)(step_time_ns);
  }

  // Ends plan searches, not the call, at `deadline` or once `*ended` is true: their results so far
  // stand (SearchBudget). Set before the work begins; copies share it.
  void set_search_end(absl::Time deadline, const std::atomic<bool>* ended) {
    search_deadline_ = deadline;
    search_ended_ = ended;
  }
  bool SearchShouldEnd() const;

  // Steps counted so far, and those counted after the token fired: how late loops noticed it.
  int64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  int64_t steps_after_stop() const { return steps_after_stop_.load(std::memory_order_relaxed); }

 private:
  absl::Time deadline_ = absl::InfiniteFuture();
  const std::atomic<bool>* cancelled_ = nullptr;
  const PlanListener* plan_listener_ = nullptr;
  absl::Time search_deadline_ = absl::InfiniteFuture();
  const std::atomic<bool>* search_ended_ = nullptr;
  int64_t step_limit_ = std::numeric_limits<int64_t>::max();
  mutable std::atomic<int64_t> steps_{0};
  mutable std::atomic<int64_t> steps_after_stop_{0};
  mutable std::atomic<int> stopped_{0};  // An absl::StatusCode, 0 while running.
};

// Polls a token from a loop: one increment per step, one check of the token per kStride steps.
//
//   StopPoller poll(stop);
//   for (...) { if (poll.Tick()) return stop.status("order"); ... }
//
// A loop may also just end, and leave the check to its caller: once Tick has returned true, it
// always does, and does not check the token again.
class StopPoller {
 public:
  // Steps are tens of nanoseconds, so a loop notices within a tenth of a millisecond.
  static constexpr int kStride = 1024;

  explicit StopPoller(const StopToken& token) : token_(token) {}

  // Counts `steps` steps, and returns true when work should end.
  bool Tick(int64_t steps = 1) {
    left_ -= steps;
    return left_ <= 0 && Look();
  }
  // Whether a Tick has returned true.
  bool stopped() const { return stopped_; }

 private:
  bool Look() {
    if (!stopped_) stopped_ = token_.ShouldStop(kStride - left_);
    left_ = stopped_ ? 0 : kStride;
    return stopped_;
  }

  const StopToken& token_;
  int64_t left_ = kStride;  // Until the next check.
  bool stopped_ = false;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_STOP_TOKEN_H_
