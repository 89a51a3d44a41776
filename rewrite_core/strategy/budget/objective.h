// The objective of a plan of the strategy `budget`: how slow it may be, and whether it should use
// less memory than the budget (options.proto, PlanningObjective).
//
// Thread safety: immutable.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_OBJECTIVE_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_OBJECTIVE_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "rewrite_core/analysis/machine/hardware.h"
#include "spillway/v1/options.pb.h"

namespace spillway::core {

// INVALID_ARGUMENT: UNKNOWN_OPTION for an objective that this build does not know, BAD_OPTION for a
// max_slowdown out of range, CONFLICTING_OPTIONS for a max_slowdown with FREE_SWAPS_ONLY.
absl::Status CheckObjective(const v1::BudgetStrategy& options);

class Objective {
 public:
  // REQUIRES: CheckObjective.
  explicit Objective(const v1::BudgetStrategy& options);

  v1::PlanningObjective kind() const { return kind_; }
  // Absent: a plan may be arbitrarily slow.
  absl::optional<double> max_slowdown() const { return max_slowdown_; }
  // Whether to plan for less than the GPU's budget, and even if the unswapped graph fits.
  bool saves_memory() const { return kind_ != v1::PLANNING_OBJECTIVE_FASTEST_THAT_FITS; }

  // The maximum step time, to the nanosecond; may be kUnlimited.
  int64_t MaxStepTime(int64_t full_speed_ns) const;
  // "1.1 times full speed (max_slowdown)". REQUIRES: max_slowdown().
  std::string MaxSlowdownText() const;

 private:
  v1::PlanningObjective kind_;
  absl::optional<double> max_slowdown_;
  bool is_given_ = false;  // Whether max_slowdown is given.
};

// Bisects between `low`, which does not suffice, and `high`, which does, until they are at most
// `step` apart. Returns the smallest budget found to suffice. Errors: those of `suffices`.
absl::StatusOr<int64_t> LeastBudget(int64_t low, int64_t high, int64_t step,
                                    absl::FunctionRef<absl::StatusOr<bool>(int64_t)> suffices);

// FAILED_PRECONDITION (DOES_NOT_FIT): the fastest plan found within the budget takes
// `step_time_ns`, which is too slow. `smallest_budget_bytes`: a budget with a fast enough plan; 0:
// none is known. Details: device, budget_bytes, budget_source, slowdown, max_slowdown;
// smallest_budget_bytes and smallest_gpu_memory_bytes. REQUIRES: max_slowdown().
absl::Status TooSlowError(const Objective& objective, absl::string_view gpu, int64_t step_time_ns,
                          int64_t full_speed_ns, const Hardware& hardware, int64_t budget_bytes,
                          int64_t smallest_budget_bytes);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_OBJECTIVE_H_
