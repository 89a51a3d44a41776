#include "client_lib/text/forecast_parts.h"

#include "absl/time/time.h"
#include "client_lib/text/text_table.h"
#include "rewrite_core/base/byte_text.h"

namespace spillway::text {

bool MayFit(const v1::Forecast& forecast) { return forecast.fit() != v1::FIT_DOES_NOT_FIT; }

const char* FitText(const v1::Forecast& forecast) {
  switch (forecast.fit()) {
    case v1::FIT_FITS:
      return "yes";
    case v1::FIT_DOES_NOT_FIT:
      return "no";
    default:
      return "unknown";
  }
}

bool HasStep(const v1::Forecast& forecast) {
  return MayFit(forecast) && forecast.has_step_time_ns();
}

std::string StepTime(const v1::Forecast& forecast) {
  return HasStep(forecast) ? core::DurationText(absl::Nanoseconds(forecast.step_time_ns()))
                           : kNotKnown;
}

void AddUnknown(const char* label, const v1::Forecast& forecast, Rows* facts) {
  for (const v1::FitUnknown& cause : forecast.fit_unknown()) {
    facts->push_back({label, cause.message()});
    label = "";
  }
}

void AddKnownShare(const char* label, const v1::Forecast& forecast, Rows* facts) {
  const v1::KnownShare& share = forecast.known_share();
  if (share.unknown_tensor_count() == 0 && share.bounded_tensor_count() == 0 &&
      share.unknown_node_count() == 0) {
    return;
  }
  std::string text =
      absl::StrCat("the size of ", share.tensor_count() - share.unknown_tensor_count(), " of ",
                   FormatCount(share.tensor_count(), "tensor"), " on GPUs");
  if (share.bounded_tensor_count() > 0) {
    absl::StrAppend(&text, " (", share.bounded_tensor_count(), " by an upper bound)");
  }
  absl::StrAppend(&text, ", the cost of ", share.node_count() - share.unknown_node_count(), " of ",
                  FormatCount(share.node_count(), "node"), " that compute");
  facts->push_back({label, text});
}

std::string ExcessText(const v1::Forecast& forecast) {
  const v1::OutOfMemory& oom = forecast.out_of_memory();
  int64_t peak = forecast.host_peak_bytes();
  if (!oom.host()) {
    for (const v1::DeviceForecast& device : forecast.devices()) {
      if (device.device() == oom.device()) peak = device.peak_bytes();
    }
  }
  const std::string budget = core::BytesText(oom.budget_bytes());
  const std::string excess = core::BytesText(peak - oom.budget_bytes());
  // The peak may be lower if waiting for another budget changed the order.
  const bool is_known = peak > oom.budget_bytes();
  if (oom.host()) {
    if (!is_known) return "the copies would need more pinned host memory than available";
    return absl::StrCat("the copies would need ", core::BytesText(peak), " of pinned host memory, ",
                        excess, " more than available");
  }
  const std::string gpu = GpuText(oom.device());
  if (!is_known && oom.fragmented()) {
    return absl::StrCat("the free part of the ", budget, " of ", gpu, " is fragmented");
  }
  if (!is_known) return absl::StrCat(gpu, " would need more than its ", budget);
  return absl::StrCat(gpu, " would need ", core::BytesText(peak), ", ", excess, " more than its ",
                      budget);
}

std::string HeadlineText(const std::string& headline, Style style) {
  std::string text = Paragraph(headline, 0, style);
  text.pop_back();  // Without its line end, so that only the heading is bold.
  return absl::StrCat(style.Heading(text), "\n");
}

}  // namespace spillway::text
