// Pictures of what simulations say: the memory of a step and what its engines do, and throughput
// against size. Messages in, a text out, SVG or HTML: no file, no network, no clock. The same
// messages give the same picture. They may come from anywhere: what makes no sense in them is left
// out, and texts from them are escaped.
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
  kSvg,   // A file of its own.
  kHtml,  // A page of its own, which tells what is under the pointer. Needs no network.
};

struct PictureOptions {
  Format format = Format::kSvg;
  Theme theme = Theme::kAuto;
  std::string title;               // Empty: what the picture shows.
  std::vector<std::string> notes;  // Sentences below it.
};

// The memory of each GPU over `step` and what its engines do, beside `before`, the step of the same
// graph before it was rewritten (null: none). INVALID_ARGUMENT (BAD_OPTION) if a report has no
// memory over time (SimulateOptions.memory); without a trace (SimulateOptions.trace) there is no
// row of engines and no swap.
absl::StatusOr<std::string> DrawStep(const v1::SimulateReport& step,
                                     const v1::SimulateReport* before,
                                     const PictureOptions& options);

// Throughput against size: without swapping and with it, and what no plan of swaps can exceed.
// INVALID_ARGUMENT (BAD_OPTION) if the report has no size that fits.
absl::StatusOr<std::string> DrawThroughput(const v1::ExploreReport& report,
                                           const PictureOptions& options);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_PICTURE_H_
