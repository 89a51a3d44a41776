// The work limit of a strategy's searches: it ends a hopeless search with an error that says what
// to do, while a deadline would only say that time is up.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_SEARCH_BUDGET_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_SEARCH_BUDGET_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "rewrite_core/base/stop_token.h"

namespace spillway::core {

// Counts the steps of all searches of one rewrite. One thread at a time.
class SearchBudget {
 public:
  // `max_steps`: the limit max_search_steps. `stop` must outlive the budget.
  SearchBudget(int64_t max_steps, const StopToken& stop)
      : max_steps_(max_steps), stop_(stop), poll_(stop) {}

  // Takes one step. Returns true once the search must end, and on every later call; status() then
  // says why.
  bool Spend() {
    over_ = over_ || ++steps_ > max_steps_ || poll_.Tick();
    return over_;
  }

  // Takes several steps: for results that are kept, not only looked at.
  bool Spend(int64_t steps) {
    steps_ += steps - 1;
    return Spend();
  }

  int64_t steps_left() const { return std::max<int64_t>(0, max_steps_ - steps_); }

  // Whether Spend has returned true.
  bool is_over() const { return over_; }

  const StopToken& stop() const { return stop_; }

  // RESOURCE_EXHAUSTED (SEARCH_TOO_LONG) once all steps are spent; else the stop token's error.
  // `remedy` says what the user can do.
  absl::Status status(absl::string_view search, absl::string_view remedy) const;

 private:
  int64_t max_steps_;
  int64_t steps_ = 0;
  bool over_ = false;
  const StopToken& stop_;
  StopPoller poll_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_SEARCH_BUDGET_H_
