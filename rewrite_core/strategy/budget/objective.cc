#include "rewrite_core/strategy/budget/objective.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/plan/fit_error.h"
#include "rewrite_core/simulate/simulator.h"

namespace spillway::core {
namespace {

// The default of max_slowdown (documented in options.proto).
constexpr double kSmallestPeakSlowdown = 1.1;
// Copies that hide behind kernels still delay a few launches: up to this slowdown a plan counts as
// one without copies.
constexpr double kFreeSlowdown = 1.005;

}  // namespace

absl::Status CheckObjective(const v1::BudgetStrategy& options) {
  if (!v1::PlanningObjective_IsValid(options.objective())) {
    const int value = static_cast<int>(options.objective());
    return InvalidError(v1::ERROR_REASON_UNKNOWN_OPTION,
                        absl::StrCat("objective is ", value,
                                     ", which this server does not know; it is FASTEST_THAT_FITS, "
                                     "SMALLEST_PEAK or FREE_SWAPS_ONLY"),
                        {{"option", "objective"}, {"value", absl::StrCat(value)}});
  }
  if (!options.has_max_slowdown()) return absl::OkStatus();
  const double slowdown = options.max_slowdown();
  if (!std::isfinite(slowdown) || slowdown < 1) {  // NaN is not finite.
    return BadOptionError(
        "max_slowdown", slowdown,
        "it is a number from 1 up, how many times as long as at full speed a step "
        "may take");
  }
  if (options.objective() == v1::PLANNING_OBJECTIVE_FREE_SWAPS_ONLY) {
    return InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                        absl::StrCat("max_slowdown is ", slowdown,
                                     ", and the objective FREE_SWAPS_ONLY allows no slowdown; take "
                                     "SMALLEST_PEAK with max_slowdown, or leave it out"),
                        {{"option", "max_slowdown"},
                         {"other_option", "objective"},
                         {"value", absl::StrCat(slowdown)}});
  }
  return absl::OkStatus();
}

Objective::Objective(const v1::BudgetStrategy& options)
    : kind_(options.objective()), is_given_(options.has_max_slowdown()) {
  if (kind_ == v1::PLANNING_OBJECTIVE_UNSPECIFIED) kind_ = v1::PLANNING_OBJECTIVE_FASTEST_THAT_FITS;
  if (is_given_) {
    max_slowdown_ = options.max_slowdown();
  } else if (kind_ == v1::PLANNING_OBJECTIVE_SMALLEST_PEAK) {
    max_slowdown_ = kSmallestPeakSlowdown;
  } else if (kind_ == v1::PLANNING_OBJECTIVE_FREE_SWAPS_ONLY) {
    max_slowdown_ = kFreeSlowdown;
  }
}

int64_t Objective::MaxStepTime(int64_t full_speed_ns) const {
  if (!max_slowdown_) return kUnlimited;
  const double time = std::round(*max_slowdown_ * static_cast<double>(full_speed_ns));
  return time < static_cast<double>(kUnlimited) ? static_cast<int64_t>(time) : kUnlimited;
}

std::string Objective::MaxSlowdownText() const {
  return absl::StrFormat("%.5g times full speed (%s)", *max_slowdown_,
                         is_given_ ? "max_slowdown"
                         : kind_ == v1::PLANNING_OBJECTIVE_FREE_SWAPS_ONLY
                             ? "the objective FREE_SWAPS_ONLY"
                             : "max_slowdown, by default");
}

absl::StatusOr<int64_t> LeastBudget(int64_t low, int64_t high, int64_t step,
                                    absl::FunctionRef<absl::StatusOr<bool>(int64_t)> suffices) {
  while (high - low > step) {
    const int64_t middle = low + (high - low) / 2;
    auto does = suffices(middle);
    if (!does.ok()) return does.status();
    (*does ? high : low) = middle;
  }
  return high;
}

absl::Status TooSlowError(const Objective& objective, absl::string_view gpu, int64_t step_time_ns,
                          int64_t full_speed_ns, const Hardware& hardware, int64_t budget_bytes,
                          int64_t smallest_budget_bytes) {
  const int64_t memory =
      smallest_budget_bytes > 0 ? hardware.GpuMemoryFor(smallest_budget_bytes) : 0;
  const double slowdown = static_cast<double>(step_time_ns) / static_cast<double>(full_speed_ns);
  const std::string slowdown_text = absl::StrFormat("%.5g", slowdown);
  const std::string limit_text = absl::StrFormat("%.5g", *objective.max_slowdown());
  const std::string budget = absl::StrCat(budget_bytes);
  const std::string source = MemorySourceName(hardware.gpu_memory_source);
  const std::string smallest_text = absl::StrCat(smallest_budget_bytes);
  const std::string memory_text = absl::StrCat(memory);
  std::vector<ErrorDetail> details = {{"device", gpu},
                                      {"budget_bytes", budget},
                                      {"budget_source", source},
                                      {"slowdown", slowdown_text},
                                      {"max_slowdown", limit_text}};
  if (memory > 0) {
    details.push_back({"smallest_budget_bytes", smallest_text});
    details.push_back({"smallest_gpu_memory_bytes", memory_text});
  }
  return Error(
      absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DOES_NOT_FIT,
      absl::StrCat("no plan was found that fits the ", BudgetText(hardware, budget_bytes), " of ",
                   GpuText(gpu), " and takes at most ", objective.MaxSlowdownText(),
                   ": the fastest found takes ", slowdown_text, " times; ",
                   memory > 0 ? absl::StrCat(BytesText(memory), " (", memory,
                                             " bytes) of GPU memory would suffice")
                              : "no sufficient budget is known",
                   "; or allow a larger max_slowdown, or take a smaller batch"),
      details);
}

}  // namespace spillway::core
