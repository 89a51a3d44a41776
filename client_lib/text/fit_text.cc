#include "client_lib/text/fit_text.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client_lib/text/budget_text.h"
#include "client_lib/text/level_text.h"
#include "client_lib/text/text_table.h"
#include "rewrite_core/base/byte_text.h"

namespace spillway::text {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string SourceText(v1::MemorySource source, const v1::Hardware& hardware, Style style) {
  switch (source) {
    case v1::MEMORY_SOURCE_PRESET:
      return absl::StrCat(", from the preset", hardware.preset().empty() ? "" : " ",
                          hardware.preset());
    case v1::MEMORY_SOURCE_OPTION:
      return absl::StrCat(", from ", style.WithOptions("gpu_memory_bytes"));
    case v1::MEMORY_SOURCE_NVIDIA_SMI:
      return ", from nvidia-smi";
    default:
      return "";
  }
}

std::string ReserveText(const v1::Hardware& hardware) {
  if (hardware.allocator_reserve() == 0) return "";
  return absl::StrFormat(", less %.3g%% for TensorFlow's allocator",
                         100 * hardware.allocator_reserve());
}

std::string NeedText(const v1::DeviceFit& fit, bool has_margin, bool plans_what_fits) {
  if (fit.not_needed()) {
    return fit.fit() == v1::FIT_UNKNOWN ? ": unknown whether swapping is needed"
                                        : ": no swapping is needed";
  }
  // Enough bytes are free, but not contiguous or not while kernels wait.
  return has_margin && !plans_what_fits && fit.fit() != v1::FIT_UNSPECIFIED
             ? ", but does not fit unchanged"
             : "";
}

std::string UnswappedText(const v1::DeviceFit& fit, bool plans_what_fits) {
  const int64_t margin = fit.budget_bytes() - fit.unswapped_peak_bytes();
  return absl::StrCat(core::BytesText(fit.unswapped_peak_bytes()), " at the peak, ",
                      core::BytesText(margin < 0 ? -margin : margin),
                      margin < 0 ? " more" : " less", " than the budget",
                      NeedText(fit, margin >= 0, plans_what_fits));
}

std::string StepText(const v1::DeviceFit& fit) {
  std::vector<std::string> parts;
  if (fit.has_step_time_ns()) {
    parts.push_back(StepSpeedText(fit.step_time_ns(), fit.full_speed_step_time_ns()));
  }
  if (fit.has_synchronous_step_time_ns()) {
    parts.push_back(absl::StrCat(
        core::DurationText(absl::Nanoseconds(fit.synchronous_step_time_ns())), " synchronously"));
  }
  if (fit.has_peak_bytes()) {
    parts.push_back(absl::StrCat(core::BytesText(fit.peak_bytes()), " at the peak"));
  }
  if (fit.has_need_bytes() && fit.need_bytes() > fit.peak_bytes()) {
    parts.push_back(absl::StrCat(core::BytesText(fit.need_bytes()), " needed with fragmentation"));
  }
  return absl::StrJoin(parts, ", ");
}

void AddFit(const v1::DeviceFit& fit, const v1::RewriteReport& report, Style style, Rows* facts) {
  const v1::Hardware& hardware = report.hardware().hardware();
  facts->push_back({"budget", absl::StrCat(core::BytesText(fit.budget_bytes()),
                                           SourceText(fit.budget_source(), hardware, style),
                                           ReserveText(hardware))});
  facts->push_back({"unswapped", UnswappedText(fit, PlansWhatFits(report.budget()))});
  const std::string step = StepText(fit);
  if (!step.empty()) facts->push_back({"simulated", step});
}

// In the report's order: the strategy's GPUs, then those with only a fit.
std::vector<std::string> DeviceNames(const v1::RewriteReport& report) {
  std::vector<std::string> names;
  const auto add = [&names](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const v1::LevelDevice& device : report.level().devices()) add(device.device());
  for (const v1::BudgetDevice& device : report.budget().devices()) add(device.device());
  for (const v1::DeviceFit& fit : report.fits()) add(fit.device());
  return names;
}

Rows FactsOf(const std::string& name, const v1::RewriteReport& report, Style style) {
  Rows facts;
  for (const v1::LevelDevice& device : report.level().devices()) {
    if (device.device() == name) AddLevelSetting(device, &facts);
  }
  for (const v1::BudgetDevice& device : report.budget().devices()) {
    if (device.device() != name) continue;
    const bool is_unknown =
        std::any_of(report.fits().begin(), report.fits().end(), [&name](const v1::DeviceFit& fit) {
          return fit.device() == name && fit.fit() == v1::FIT_UNKNOWN;
        });
    AddBudgetSearch(device, report.budget(), is_unknown ? Sizes::kPartlyKnown : Sizes::kKnown,
                    style, &facts);
  }
  for (const v1::DeviceFit& fit : report.fits()) {
    if (fit.device() == name) AddFit(fit, report, style, &facts);
  }
  return facts;
}

}  // namespace

std::string StepSpeedText(int64_t step_ns, int64_t full_speed_ns) {
  std::string text = core::DurationText(absl::Nanoseconds(step_ns));
  if (full_speed_ns <= 0 || step_ns <= 0) return text;
  const double share = 100.0 * static_cast<double>(full_speed_ns) / static_cast<double>(step_ns);
  constexpr double kMuch = 100.5;
  absl::StrAppendFormat(&text, " (%.0f%% of full speed%s)", std::min(share, 100.0),
                        share > kMuch ? ", in a faster order" : "");
  return text;
}

std::vector<std::vector<std::string>> DeviceFacts(const v1::RewriteReport& report, Style style) {
  const std::vector<std::string> names = DeviceNames(report);
  return names.size() == 1 ? FactsOf(names[0], report, style) : Rows();
}

std::string FormatDeviceFacts(const v1::RewriteReport& report, Style style) {
  const std::vector<std::string> names = DeviceNames(report);
  if (names.size() < 2) return "";
  std::string text;
  for (const std::string& name : names) {
    absl::StrAppend(&text, Paragraph(name.empty() ? "(none given)" : name, 2, style),
                    FormatFacts(FactsOf(name, report, style), style));
  }
  return text;
}

}  // namespace spillway::text
