#include "server/observe/rewrite_record.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "rewrite_core/analysis/machine/hardware.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/strategy/strategies.h"

namespace spillway::server {
namespace {

std::optional<int64_t> DetailOf(const v1::ErrorInfo& info, const char* key) {
  const auto found = info.metadata().find(key);
  int64_t number = 0;
  if (found == info.metadata().end() || !absl::SimpleAtoi(found->second, &number)) {
    return std::nullopt;
  }
  return number;
}

// If the report has none.
std::string MachineOf(const v1::RewriteOptions& options) {
  const core::PlanningStrategy* const strategy = core::FindStrategy(options);
  if (strategy == nullptr) return "";
  const auto hardware = core::Hardware::FromOptions(strategy->step(options).hardware());
  if (!hardware.ok()) return "";
  return hardware->preset.empty() ? std::string(core::kCustomMachine) : hardware->preset;
}

}  // namespace

const char* AnsweredFromName(AnsweredFrom from) {
  switch (from) {
    case AnsweredFrom::kWork:
      return "work";
    case AnsweredFrom::kPlan:
      return "plan";
    case AnsweredFrom::kShared:
      return "shared";
    case AnsweredFrom::kCache:
      break;
  }
  return "cache";
}

std::optional<double> RewriteRecord::slowdown() const {
  // An unchanged graph may already swap, and its step without swaps is unknown.
  if (outcome == v1::OUTCOME_KEPT || outcome == v1::OUTCOME_FOREIGN) return std::nullopt;
  return figures.slowdown();
}

std::optional<double> RewriteRecord::need_ratio() const {
  const core::GpuFigures* const gpu = figures.fullest();
  if (gpu == nullptr || !gpu->used_bytes().has_value() || gpu->budget_bytes.value_or(0) <= 0) {
    return std::nullopt;
  }
  return static_cast<double>(*gpu->used_bytes()) / static_cast<double>(*gpu->budget_bytes);
}

std::string OutcomeName(v1::Outcome outcome) {
  if (outcome == v1::OUTCOME_UNSPECIFIED) return "does_not_fit";
  return absl::AsciiStrToLower(absl::StripPrefix(v1::Outcome_Name(outcome), "OUTCOME_"));
}

std::optional<RewriteRecord> RecordOf(const absl::Status& status, const v1::RewriteReport& report,
                                      const v1::RewriteOptions& options, AnsweredFrom from) {
  RewriteRecord record;
  record.from = from;
  if (status.ok()) {
    if (report.outcome() == v1::OUTCOME_UNSPECIFIED || !v1::Outcome_IsValid(report.outcome())) {
      return std::nullopt;
    }
    record.outcome = report.outcome();
    record.figures = core::FiguresOf(report);
    core::RewriteFigures& figures = record.figures;
    // If the report was not requested, it has no forecast, but a plan was made.
    if (figures.machine.empty() && !figures.gpus.empty()) figures.machine = MachineOf(options);
    return record;
  }
  if (core::GetErrorReason(status) != v1::ERROR_REASON_DOES_NOT_FIT) return std::nullopt;
  const v1::ErrorInfo info = core::GetErrorInfo(status);
  record.figures.fit = v1::FIT_DOES_NOT_FIT;
  record.figures.machine = MachineOf(options);
  core::GpuFigures gpu;
  gpu.budget_bytes = DetailOf(info, "budget_bytes");
  gpu.need_bytes = DetailOf(info, "smallest_budget_bytes");
  record.figures.gpus.push_back(gpu);
  return record;
}

}  // namespace spillway::server
