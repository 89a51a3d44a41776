// Pictures of simulations: the memory of a step and the activity of its engines, and throughput
// against size. Messages in, text out, SVG or HTML: no file, no network, no clock. Deterministic.
// Messages are untrusted: invalid parts are left out, and their texts are escaped.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_CLIENT_LIB_PLOT_PICTURE_H_
#define SPILLWAY_CLIENT_LIB_PLOT_PICTURE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client_lib/plot/style.h"
#include "spillway/v1/simulate.pb.h"

namespace spillway::plot {

enum class Format {
  kSvg,   // A stand-alone file.
  kHtml,  // A stand-alone page, which describes the element under the pointer. Needs no network.
};

struct PictureOptions {
  Format format = Format::kSvg;
  Theme theme = Theme::kAuto;
  std::string title;               // Empty: a default that describes the picture.
  std::vector<std::string> notes;  // Sentences below it.
};

// Draws the memory of each GPU over `step` and the activity of its engines, beside `before`, the
// step of the same graph before the rewrite (null: none). INVALID_ARGUMENT (BAD_OPTION) if a report
// has no memory over time (SimulateOptions.memory); without a trace (SimulateOptions.trace), there
// are no engine rows and no swaps.
absl::StatusOr<std::string> DrawStep(const v1::SimulateReport& step,
                                     const v1::SimulateReport* before,
                                     const PictureOptions& options);

// Draws throughput against size: without and with swapping, and the upper bound for any plan.
// INVALID_ARGUMENT (BAD_OPTION) if the report has no size that fits.
absl::StatusOr<std::string> DrawThroughput(const v1::ExploreReport& report,
                                           const PictureOptions& options);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_PICTURE_H_
