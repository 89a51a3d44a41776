// The common parts of texts about forecasts: forecast_text and explore_text.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_FORECAST_PARTS_H_
#define SPILLWAY_CLIENT_LIB_TEXT_FORECAST_PARTS_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_lib/text/machine_text.h"
#include "client_lib/text/style.h"
#include "client_lib/text/text_table.h"
#include "rewrite_core/base/byte_text.h"
#include "spillway/v1/report.pb.h"
#include "spillway/v1/simulate.pb.h"

namespace spillway::text {

using Rows = std::vector<std::vector<std::string>>;

inline constexpr char kNotKnown[] = "-";

// The execution model of the reported times.
inline constexpr char kLaunchedAhead[] = "of steps launched ahead, as TensorFlow runs them";

// A graph whose nodes have no device runs on one GPU.
inline std::string GpuText(const std::string& device) {
  return device.empty() ? "the GPU" : device;
}

// Whether the step fits as far as is known.
bool MayFit(const v1::Forecast& forecast);

// "yes", "no" or "unknown".
const char* FitText(const v1::Forecast& forecast);

// A step that fits under only one of the two execution models has a time, but does not fit.
bool HasStep(const v1::Forecast& forecast);

std::string StepTime(const v1::Forecast& forecast);

// Why it is unknown whether a step fits, and which options to give.
void AddUnknown(const char* label, const v1::Forecast& forecast, Rows* facts);

// The known share of the step, if not all.
void AddKnownShare(const char* label, const v1::Forecast& forecast, Rows* facts);

// The largest memory that a kernel takes beside its outputs, if that counts.
template <typename Report>
void AddTemporaries(const Report& report, Rows* facts) {
  if (report.temporaries().empty()) return;
  const v1::Temporary& largest = report.temporaries(0);
  facts->push_back({"temporaries", absl::StrCat("up to ", core::BytesText(largest.bytes()), ", of ",
                                                largest.node(), ": ", largest.reason())});
}

// By how much the step exceeds a budget, in one sentence without a full stop.
std::string ExcessText(const v1::Forecast& forecast);

// At the top of a report, at the left margin.
std::string HeadlineText(const std::string& headline, Style style);

// "all that a, b and c need".
template <typename Names>
std::string TargetsText(const Names& targets) {
  constexpr int kShown = 3;
  std::string text = "all that ";
  if (targets.size() > kShown) {
    absl::StrAppend(&text, targets[0], " and ", targets.size() - 1, " others need");
    return text;
  }
  for (int i = 0; i < targets.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : i + 1 < targets.size() ? ", " : " and ", targets[i]);
  }
  return absl::StrCat(text, targets.size() == 1 ? " needs" : " need");
}

// The warning that TensorFlow may run out of memory; empty if none.
template <typename Report>
std::string MayRunOutText(const Report& report) {
  for (const v1::Warning& warning : report.warnings()) {
    if (warning.code() == v1::WARNING_CODE_MAY_RUN_OUT) return warning.message();
  }
  return "";
}

// The same as the line below a heading, which always has room for it.
template <typename Report>
std::string MayRunOutLine(const Report& report, Style style) {
  const std::string text = style.WithOptions(MayRunOutText(report));
  if (text.empty()) return "";
  return absl::StrCat(style.Warning(Shortened(absl::StrCat("  warning  ", text), style.width())),
                      "\n");
}

// All others.
template <typename Report>
void AddWarningsOf(const Report& report, Style style, Rows* facts) {
  const auto add = [&](bool about_the_plan) {
    for (const v1::Warning& warning : report.warnings()) {
      if ((warning.code() == v1::WARNING_CODE_LITTLE_SWAPPED) != about_the_plan ||
          warning.code() == v1::WARNING_CODE_MAY_RUN_OUT) {
        continue;
      }
      facts->push_back({"warning", style.WithOptions(warning.message())});
    }
  };
  add(/*about_the_plan=*/true);  // First: there may be room for one alone.
  if (const std::string assumed = AssumedText(report.hardware()); !assumed.empty()) {
    facts->push_back({"warning", assumed});
  }
  add(/*about_the_plan=*/false);
}

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_FORECAST_PARTS_H_
