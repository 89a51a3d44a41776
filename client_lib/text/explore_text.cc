#include "client_lib/text/explore_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client_lib/text/forecast_parts.h"
#include "client_lib/text/machine_text.h"
#include "client_lib/text/text_table.h"
#include "rewrite_core/base/byte_text.h"

namespace spillway::text {
namespace {

// Of full speed, rounded as it is printed: sizes beyond cost more time.
constexpr double kNearFullSpeedPercent = 95;

const char* WhatVaries(bool size_is_batch) { return size_is_batch ? "batch" : "size"; }
const char* RateUnit(bool size_is_batch) { return size_is_batch ? "examples/s" : "steps/s"; }

std::string PeakText(const v1::Forecast& forecast) {
  if (forecast.devices().empty()) return kNotKnown;
  int64_t peak = 0;
  for (const v1::DeviceForecast& device : forecast.devices()) {
    peak = std::max(peak, device.peak_bytes());
  }
  return core::BytesText(peak);
}

// Examples per second if the size counts them, otherwise steps.
std::string RateText(bool size_is_batch, const v1::ExploredSize& size) {
  if (!size.has_steps_per_s()) return kNotKnown;
  return absl::StrFormat("%.1f", size_is_batch ? size.sizes_per_s() : size.steps_per_s());
}

std::string SwappedRateText(bool size_is_batch, const v1::ExploredSize& size) {
  if (!size.has_swapped_steps_per_s()) return kNotKnown;
  return absl::StrFormat("%.1f",
                         size_is_batch ? size.swapped_sizes_per_s() : size.swapped_steps_per_s());
}

// The share that remains of the speed with unlimited memory.
std::string FullSpeedShare(const v1::ExploredSize& size) {
  if (!size.has_swapped_sizes_per_s() || !(size.full_speed_sizes_per_s() > 0)) return kNotKnown;
  return absl::StrFormat(
      "%.0f%%", std::min(100.0, 100 * size.swapped_sizes_per_s() / size.full_speed_sizes_per_s()));
}

// An upper bound of that share for any plan. (The bound leaves out launch times.)
std::string BoundShare(const v1::ExploredSize& size) {
  if (!size.has_bound_sizes_per_s() || !(size.full_speed_sizes_per_s() > 0)) return kNotKnown;
  const double share = size.bound_sizes_per_s() / size.full_speed_sizes_per_s();
  return absl::StrFormat("%.0f%%", 100 * std::min(share, 1.0));
}

// Whether swapping was asked for.
template <typename Sizes>
bool HasSwapping(const Sizes& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](const v1::ExploredSize& size) {
    return size.has_swapped() || size.has_full_speed_sizes_per_s();
  });
}

// The speed at a size: of its unchanged step if that fits, otherwise with swapping.
struct Speed {
  double sizes_per_s = 0;
  bool swapped = false;
};

std::optional<Speed> SpeedOf(const v1::ExploredSize& size) {
  if (size.unswapped().fit() == v1::FIT_FITS && size.has_sizes_per_s()) {
    return Speed{size.sizes_per_s(), false};
  }
  if (size.has_swapped_sizes_per_s()) return Speed{size.swapped_sizes_per_s(), true};
  if (size.has_sizes_per_s()) return Speed{size.sizes_per_s(), false};  // Unknown whether it fits.
  return std::nullopt;
}

// "batch 256: 228.3 examples/s, 95% of full speed, with swapping".
std::string SizeText(const v1::ExploredSize& size, bool swapped, bool size_is_batch) {
  std::string text =
      absl::StrCat(WhatVaries(size_is_batch), " ", size.size(), ": ",
                   swapped ? SwappedRateText(size_is_batch, size) : RateText(size_is_batch, size),
                   " ", RateUnit(size_is_batch));
  if (swapped) absl::StrAppend(&text, ", ", FullSpeedShare(size), " of full speed, with swapping");
  return text;
}

bool IsNearFullSpeed(const v1::ExploredSize& size, const Speed& speed) {
  return !speed.swapped || (size.full_speed_sizes_per_s() > 0 &&
                            std::round(100 * speed.sizes_per_s / size.full_speed_sizes_per_s()) >=
                                kNearFullSpeedPercent);
}

const v1::ExploredSize* FindSize(const v1::ExploreReport& report, int64_t size) {
  const auto it = std::find_if(report.sizes().begin(), report.sizes().end(),
                               [size](const v1::ExploredSize& s) { return s.size() == size; });
  return it == report.sizes().end() ? nullptr : &*it;
}

bool IsSmaller(const v1::ExploredSize& a, const v1::ExploredSize& b) { return a.size() < b.size(); }

// The common questions: how large a size may be, which is the fastest, and which is large and fast.
void AddBest(const v1::ExploreReport& report, Rows* facts) {
  const v1::ExploredSize *fastest = nullptr, *near_full_speed = nullptr;
  double most = 0;
  for (const v1::ExploredSize& size : report.sizes()) {
    const std::optional<Speed> speed = SpeedOf(size);
    if (!speed.has_value()) continue;
    if (speed->sizes_per_s > most) {
      most = speed->sizes_per_s;
      fastest = &size;
    }
    if (IsNearFullSpeed(size, *speed) &&
        (near_full_speed == nullptr || IsSmaller(*near_full_speed, size))) {
      near_full_speed = &size;
    }
  }
  const auto add = [&](const char* label, const v1::ExploredSize* size, bool swapped,
                       bool unknown = false) {
    if (size == nullptr) return;
    facts->push_back({label, absl::StrCat(SizeText(*size, swapped, report.size_is_batch()),
                                          unknown ? ", unknown whether it fits" : "")});
  };
  const auto add_at_its_speed = [&](const char* label, const v1::ExploredSize* size,
                                    bool unknown = false) {
    add(label, size, size != nullptr && SpeedOf(*size).value_or(Speed()).swapped, unknown);
  };
  add("unswapped", FindSize(report, report.largest_fitting_size()), /*swapped=*/false,
      report.largest_fit() == v1::FIT_UNKNOWN);
  const v1::ExploredSize* largest = FindSize(report, report.largest_fitting_size_swapped());
  add_at_its_speed("largest", largest, report.largest_fit_swapped() == v1::FIT_UNKNOWN);
  add_at_its_speed("fastest", fastest);
  if (report.has_largest_fitting_size_swapped() && near_full_speed != largest) {
    add_at_its_speed(">= 95%", near_full_speed);
  }
}

// How to get the speed that another size's plan gives; empty if none does.
std::string OtherPlansText(const v1::ExploreReport& report) {
  int64_t count = 0;
  const v1::ExploredSize* last = nullptr;  // The largest, which is nearest to full memory.
  for (const v1::ExploredSize& size : report.sizes()) {
    if (!size.has_plan_of_size()) continue;
    ++count;
    if (last == nullptr || IsSmaller(*last, size)) last = &size;
  }
  if (last == nullptr) return "";
  const char* const what = WhatVaries(report.size_is_batch());
  return absl::StrCat(what, " ", last->size(), " is as fast with the plan of ", what, " ",
                      last->plan_of_size(),
                      ": rewrite at that size with --save-plan, then apply the plan",
                      count > 1 ? absl::StrCat(" (", count - 1, " more: --json)") : "");
}

// Whether a plan was clearly slower than full speed, so that more recomputation may gain much.
bool HasSlowPlan(const v1::ExploreReport& report) {
  return std::any_of(report.sizes().begin(), report.sizes().end(),
                     [](const v1::ExploredSize& size) {
                       const std::optional<Speed> speed = SpeedOf(size);
                       return speed.has_value() && !IsNearFullSpeed(size, *speed);
                     });
}

// Whether, and how large.
std::string ExplorationHeadline(const v1::ExploreReport& report) {
  const std::string what = WhatVaries(report.size_is_batch());
  if (report.has_largest_fitting_size_swapped()) {
    return absl::StrCat(what, " ", report.largest_fitting_size_swapped(),
                        report.largest_fit_swapped() == v1::FIT_UNKNOWN
                            ? " may be the largest that fits into "
                            : " is the largest that fits into ",
                        GpuBudgetText(report.hardware()));
  }
  if (report.has_largest_fitting_size()) {
    return absl::StrCat(what, " ", report.largest_fitting_size(),
                        report.largest_fit() == v1::FIT_FITS
                            ? " is the largest that fits unswapped into "
                            : " may be the largest that fits unswapped into ",
                        GpuBudgetText(report.hardware()));
  }
  const auto least = std::min_element(report.sizes().begin(), report.sizes().end(), IsSmaller);
  if (least == report.sizes().end()) return "no size was tried";
  if (MayFit(least->unswapped())) return "with unlimited memory";
  return absl::StrCat(
      "not even ", what, " ", least->size(),
      HasSwapping(report.sizes()) ? " fits, with swapping or without: " : " fits unswapped: ",
      ExcessText(least->unswapped()));
}

}  // namespace

std::string FormatSizes(std::vector<v1::ExploredSize> sizes, bool size_is_batch, Style style) {
  std::sort(sizes.begin(), sizes.end(), IsSmaller);
  const bool swapping = HasSwapping(sizes);
  const char* const unit = RateUnit(size_is_batch);
  Rows rows = {{WhatVaries(size_is_batch), "fits", "peak memory"}};
  // With swapping there is no room for the step time, which the rate implies.
  if (!swapping) rows[0].push_back("step");
  rows[0].push_back(unit);
  if (swapping) {
    rows[0].insert(rows[0].end(), {"swapped", "peak memory", unit, "full speed", "bound"});
  }
  for (const v1::ExploredSize& size : sizes) {
    const v1::Forecast& forecast = size.unswapped();
    std::vector<std::string> row = {absl::StrCat(size.size()), FitText(forecast),
                                    PeakText(forecast)};
    if (!swapping) row.push_back(StepTime(forecast));
    row.push_back(RateText(size_is_batch, size));
    if (swapping) {
      row.push_back(forecast.fit() == v1::FIT_FITS ? "not needed"
                    : size.has_swapped()           ? FitText(size.swapped())
                                                   : "no");
      row.push_back(size.has_swapped() ? PeakText(size.swapped()) : kNotKnown);
      row.push_back(SwappedRateText(size_is_batch, size));
      row.push_back(FullSpeedShare(size));
      row.push_back(BoundShare(size));
    }
    rows.push_back(std::move(row));
  }
  return FormatTable(rows, style);
}

std::string FormatExploration(const v1::ExploreReport& report, Style style,
                              RecomputeChoice recompute) {
  Rows facts;
  AddBest(report, &facts);
  if (recompute == RecomputeChoice::kDefault && HasSlowPlan(report)) {
    facts.push_back(
        {"advice", style.WithOptions("where tensors are swapped, steps may be faster with "
                                     "budget.recompute = ALL")});
  }
  if (std::string text = OtherPlansText(report); !text.empty()) facts.push_back({"plans", text});
  facts.push_back({"machine", HardwareText(report.hardware())});
  facts.push_back({"times", kLaunchedAhead});
  facts.push_back({"step", TargetsText(report.targets())});
  if (const v1::ExploredSize* size = FindSize(report, report.largest_fitting_size())) {
    AddUnknown("unknown", size->unswapped(), &facts);
    AddKnownShare("known", size->unswapped(), &facts);
  }
  AddWarningsOf(report, style, &facts);
  return absl::StrCat(
      FormatSizes({report.sizes().begin(), report.sizes().end()}, report.size_is_batch(), style),
      HeadlineText(ExplorationHeadline(report), style), MayRunOutLine(report, style),
      FormatFacts(facts, style));
}

}  // namespace spillway::text
