#include "client_lib/text/budget_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "client_lib/text/level_text.h"
#include "client_lib/text/text_table.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/names.h"

namespace spillway::text {
namespace {

std::string EffortText(v1::PlanningEffort effort) {
  const std::string name = core::PlanningEffortName(effort);
  // A newer server may send another value.
  return name.empty() || effort == v1::PLANNING_EFFORT_UNSPECIFIED
             ? ""
             : absl::StrCat(", planning effort ", name);
}

std::string VariedText(const v1::BudgetDevice& device, Sizes sizes) {
  const int fits = device.variation_count() - device.unfit_variation_count();
  std::string text = absl::StrCat(sizes == Sizes::kKnown ? "" : "the known part ", "fits in ", fits,
                                  " of ", device.variation_count(),
                                  " variations of op order, copy times and variable placement");
  if (device.has_fastest_step_time_ns()) {
    absl::StrAppend(&text, "; the fastest plan, which does not fit in all of them, takes ",
                    core::DurationText(absl::Nanoseconds(device.fastest_step_time_ns())));
  }
  return text;
}

// Empty if any plan that fits was requested.
std::string ObjectiveText(const v1::BudgetDevice& device, const v1::BudgetReport& report) {
  if (!PlansWhatFits(report) && !report.has_max_slowdown()) return "";
  std::string text =
      absl::StrReplaceAll(core::PlanningObjectiveName(report.objective()), {{"_", " "}});
  if (report.has_max_slowdown()) {
    absl::StrAppendFormat(&text, "%sat most %.5g times the step at full speed",
                          text.empty() ? "" : ", ", report.max_slowdown());
  }
  if (device.has_least_budget_bytes()) {
    absl::StrAppend(&text, "; planned for ", core::BytesText(device.least_budget_bytes()));
  }
  return text;
}

}  // namespace

bool PlansWhatFits(const v1::BudgetReport& report) {
  return report.objective() != v1::PLANNING_OBJECTIVE_UNSPECIFIED &&
         report.objective() != v1::PLANNING_OBJECTIVE_FASTEST_THAT_FITS;
}

void AddBudgetSearch(const v1::BudgetDevice& device, const v1::BudgetReport& report, Sizes sizes,
                     Style style, std::vector<std::vector<std::string>>* facts) {
  const std::string objective = ObjectiveText(device, report);
  if (!objective.empty()) facts->push_back({"objective", objective});
  if (device.has_ordered_peak_bytes()) {
    facts->push_back({"ordered", absl::StrCat(core::BytesText(device.ordered_peak_bytes()),
                                              " at the peak with this op order alone")});
  }
  facts->push_back(
      {"search",
       absl::StrCat(
           FormatCount(device.plan_count(), "plan"), " simulated, ", device.fitting_plan_count(),
           " fitting", EffortText(report.planning_effort()),
           device.cut_short() ? style.WithOptions("; cut short by max_search_steps") : "")});
  if (device.has_level()) {
    facts->push_back({"setting", absl::StrCat(LevelSettingText(device.level()),
                                              "; the plan of the strategy level is faster")});
  }
  if (!device.other_budget_bytes().empty()) {
    facts->push_back(
        {"fits", absl::StrCat(sizes == Sizes::kKnown ? "also into " : "the known part also into ",
                              absl::StrJoin(device.other_budget_bytes(), ", ",
                                            [](std::string* out, int64_t bytes) {
                                              absl::StrAppend(out, core::BytesText(bytes));
                                            }))});
  }
  if (device.variation_count() > 0) facts->push_back({"varied", VariedText(device, sizes)});
  if (device.step_time_bound_ns() > 0) {
    facts->push_back(
        {"bound", absl::StrCat("at least ",
                               core::DurationText(absl::Nanoseconds(device.step_time_bound_ns())),
                               " with swaps alone")});
  }
}

}  // namespace spillway::text
