// The work limit of a strategy's searches: it ends a hopeless search with an error that says what
// to do, while a deadline would only say that time is up. A caller may end it likewise, to get the
// best so far (StopToken::set_search_end).
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_SEARCH_BUDGET_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_SEARCH_BUDGET_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "rewrite_core/base/stop_token.h"

namespace spillway::core {

// Counts the steps of all searches of one rewrite, and the plans that they simulate. One thread at
// a time.
class SearchBudget {
 public:
  // `max_steps`: the limit max_search_steps. `stop` must outlive the budget.
  SearchBudget(int64_t max_steps, const StopToken& stop)
      : max_steps_(max_steps), stop_(stop), poll_(stop) {}

  // Takes one step. Returns true once the search must end, and on every later call; status() then
  // says why.
  bool Spend() {
    over_ = over_ || ++steps_ > max_steps_ || poll_.Tick() || IsEndedEarly();
    return over_;
  }

  // Takes several steps: for results that are kept, not only examined.
  bool Spend(int64_t steps) {
    steps_ += steps - 1;
    return Spend();
  }

  // The simulations of plans for one GPU, and how many of them fitted. `gpu`: its index.
  struct Simulations {
    int64_t count = 0;
    int64_t fitting = 0;
  };
  void CountSimulation(size_t gpu, bool fits) {
    if (gpu >= simulations_.size()) simulations_.resize(gpu + 1);
    ++simulations_[gpu].count;
    simulations_[gpu].fitting += fits;
  }
  Simulations simulations(size_t gpu) const {
    return gpu < simulations_.size() ? simulations_[gpu] : Simulations();
  }

  int64_t steps_taken() const { return steps_; }
  int64_t steps_left() const { return std::max<int64_t>(0, max_steps_ - steps_); }

  // Whether Spend has returned true, and whether because the caller ended the search.
  bool is_over() const { return over_; }
  bool ended_early() const { return ended_early_; }

  const StopToken& stop() const { return stop_; }

  // RESOURCE_EXHAUSTED (SEARCH_TOO_LONG) once all steps are spent or the search is ended; otherwise
  // the stop token's error. `remedy`: advice to the user.
  absl::Status status(absl::string_view search, absl::string_view remedy) const;

 private:
  // Looks once in StopPoller::kStride steps, the first time at once.
  bool IsEndedEarly() {
    if (steps_ < next_look_) return false;
    next_look_ = steps_ + StopPoller::kStride;
    ended_early_ = stop_.SearchShouldEnd();
    return ended_early_;
  }

  int64_t max_steps_;
  int64_t steps_ = 0, next_look_ = 0;
  bool over_ = false, ended_early_ = false;
  std::vector<Simulations> simulations_;
  const StopToken& stop_;
  StopPoller poll_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_SEARCH_BUDGET_H_
