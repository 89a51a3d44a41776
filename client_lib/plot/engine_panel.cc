#include "client_lib/plot/engine_panel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client_lib/plot/text.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::plot {
namespace {

constexpr double kTripHeight = 13;
// Letters of a swapped tensor's name beside its arrow.
constexpr size_t kTripName = 27;
constexpr double kTripNameGap = 20;
constexpr double kEngineHeight = 18;
constexpr double kEngineGap = 5;
constexpr double kWaitHeight = 4;
// Narrower spans are merged with their neighbours, up to this many pixels.
constexpr double kSeenPixels = 1;
constexpr double kTogetherPixels = 2;
constexpr double kGapPixels = 0.5;
// Shapes and similar small tensors go to the host and back in every graph: those are not swaps. The
// smallest swaps seen in plans are some 1/10,000 of the peak.
constexpr int64_t kMinShare = 100'000;

using core::BytesText;

double StartOf(const v1::TraceSpan& span) { return static_cast<double>(span.start_ns()); }
double EndOf(const v1::TraceSpan& span) {
  return StartOf(span) + static_cast<double>(span.duration_ns());
}

bool IsOf(const v1::TraceSpan& span, int gpu, v1::Engine engine) {
  if (span.engine() != engine || span.start_ns() < 0 || span.duration_ns() < 0) return false;
  return engine == v1::ENGINE_HOST || (span.has_device() && span.device() == gpu);
}

std::vector<const v1::TraceSpan*> SpansOf(const GpuStep& step, v1::Engine engine) {
  std::vector<const v1::TraceSpan*> spans;
  if (step.report == nullptr) return spans;
  for (const v1::TraceSpan& span : step.report->trace().spans()) {
    if (IsOf(span, step.gpu, engine)) spans.push_back(&span);
  }
  return spans;
}

std::string TipOf(const v1::TraceSpan& span) {
  return absl::StrCat(
      span.node(), ": ", span.bytes() > 0 ? absl::StrCat(BytesText(span.bytes()), ", ") : "",
      core::DurationText(absl::Nanoseconds(span.duration_ns())), " from ",
      core::DurationText(absl::Nanoseconds(StartOf(span))),
      span.waited_ns() > 0
          ? absl::StrCat(", waited ", core::DurationText(absl::Nanoseconds(span.waited_ns())),
                         " for memory")
          : "");
}

// Spans that are too short to be distinguished.
class Together {
 public:
  Together(const PlotArea& area, double y, const std::string& style, Svg* svg)
      : area_(area), y_(y), row_style_(style), svg_(svg) {}

  void Add(const v1::TraceSpan& span) {
    const double from = area_.X(StartOf(span)), to = area_.X(EndOf(span));
    const std::string style = RunsAgain(span) ? kAgainStyle : row_style_;
    if (to - from >= kSeenPixels) {
      Flush();
      svg_->Rect({from, y_}, to - from, kEngineHeight, style, {TipOf(span), ""});
      return;
    }
    const bool is_apart = from - to_ > kGapPixels || to - from_ > kTogetherPixels;
    if (count_ > 0 && (is_apart || style != style_)) Flush();
    if (count_ == 0) {
      style_ = style;
      from_ = to_ = from;
      longest_ = &span;
    }
    ++count_;
    to_ = std::max(to_, to);
    if (span.duration_ns() > longest_->duration_ns()) longest_ = &span;
  }

  void Flush() {
    if (count_ > 0) {
      svg_->Rect({from_, y_}, std::max(to_ - from_, kGapPixels), kEngineHeight, style_,
                 {count_ == 1 ? TipOf(*longest_)
                              : absl::StrCat(count_, " operations, the longest ", TipOf(*longest_)),
                  ""});
    }
    count_ = 0;
  }

 private:
  const PlotArea& area_;
  const double y_;
  const std::string& row_style_;
  Svg* const svg_;
  std::string style_;  // Of those so far.
  int count_ = 0;
  double from_ = 0, to_ = 0;
  const v1::TraceSpan* longest_ = nullptr;
};

// Draws waits for memory as a strip along the row.
void DrawWaits(const PlotArea& area, const EngineRow& row, double y, Svg* svg) {
  double drawn_to = area.left;
  for (const v1::TraceSpan* span : row.spans) {
    if (span->waited_ns() <= 0) continue;
    const double given = static_cast<double>(span->given_ns());
    const double from = std::max(drawn_to, area.X(given - static_cast<double>(span->waited_ns())));
    const double to = area.X(given);
    if (to - from < kGapPixels) continue;
    svg->Rect({from, y + kEngineHeight - kWaitHeight}, to - from, kWaitHeight, "wait",
              {TipOf(*span), ""});
    drawn_to = to;
  }
}

}  // namespace

bool RunsAgain(const v1::TraceSpan& span) {
  return span.engine() == v1::ENGINE_COMPUTE && core::IsCloneName(span.node());
}

std::vector<SwapTrip> SwapTrips(const GpuStep& step) {
  std::vector<SwapTrip> trips;
  if (step.report == nullptr) return trips;
  const v1::StepTrace& trace = step.report->trace();
  const int64_t least = step.has_memory() ? step.memory().peak_bytes() / kMinShare : 0;
  for (const v1::TraceSpan& in : trace.spans()) {
    if (!IsOf(in, step.gpu, v1::ENGINE_COPY_IN) || !in.has_copied_out()) continue;
    if (in.copied_out() < 0 || in.copied_out() >= trace.spans_size()) continue;
    const v1::TraceSpan& out = trace.spans(in.copied_out());
    if (!IsOf(out, step.gpu, v1::ENGINE_COPY_OUT) || out.start_ns() > in.start_ns()) continue;
    if (out.bytes() >= least) trips.push_back({&out, &in});
  }
  std::stable_sort(trips.begin(), trips.end(), [](const SwapTrip& a, const SwapTrip& b) {
    return a.out->bytes() > b.out->bytes();
  });
  return trips;
}

double SwapsHeight(size_t trips) {
  return kTripHeight * static_cast<double>(std::min(trips, kMaxTrips)) + kTripHeight;
}

void DrawSwaps(const PlotArea& area, const std::vector<SwapTrip>& trips, double names_width,
               Svg* svg) {
  DrawXGrid(area, svg);
  svg->Rect({area.left, area.top}, area.width, area.height, "frame");
  svg->Text({area.left - 6, area.top + 14}, Svg::Anchor::kEnd, "swaps", "text",
            {"the largest, from when the tensor leaves to when it is back", ""});
  if (trips.size() > kMaxTrips) {
    svg->Text({area.left - 6, area.top + 28}, Svg::Anchor::kEnd,
              absl::StrCat(kMaxTrips, " of ", trips.size()), "note");
  }
  // From the top, in the order of departure.
  std::vector<SwapTrip> shown(trips.begin(), trips.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                 trips.size(), kMaxTrips)));
  std::stable_sort(shown.begin(), shown.end(), [](const SwapTrip& a, const SwapTrip& b) {
    return a.out->start_ns() < b.out->start_ns();
  });
  for (size_t i = 0; i < shown.size(); ++i) {
    const double y = area.top + kTripHeight * static_cast<double>(i + 1);
    const SwapTrip& trip = shown[i];
    const std::string tip =
        absl::StrCat("swap of ", trip.out->node(), ": ", BytesText(trip.out->bytes()), ", out at ",
                     core::DurationText(absl::Nanoseconds(StartOf(*trip.out))), ", back at ",
                     core::DurationText(absl::Nanoseconds(EndOf(*trip.in))));
    svg->Arrow(
        {area.X(StartOf(*trip.out)), y}, {area.X(EndOf(*trip.in)), y}, "swap",
        {tip, absl::StrCat(Data("out-ns", trip.out->start_ns()), Data("in-ns", trip.in->start_ns()),
                           Data("bytes", trip.out->bytes()))});
    const double left = area.right() + kTripNameGap;
    svg->Text({left, y + 4}, Svg::Anchor::kStart, Shortened(trip.out->node(), kTripName), "note",
              {tip, ""});
    svg->Text({left + names_width, y + 4}, Svg::Anchor::kEnd, BytesText(trip.out->bytes()), "note");
  }
}

std::vector<EngineRow> EngineRows(const GpuStep& step, const GpuStep& before) {
  std::vector<EngineRow> rows;
  if (step.report == nullptr || !step.report->has_trace()) return rows;
  const bool both = before.report != nullptr && before.report->has_trace();
  if (both) rows.push_back({"before: compute", "compute", SpansOf(before, v1::ENGINE_COMPUTE)});
  rows.push_back(
      {both ? "after: compute" : "compute", "compute", SpansOf(step, v1::ENGINE_COMPUTE)});
  rows.push_back({"copy out", "copy-out", SpansOf(step, v1::ENGINE_COPY_OUT)});
  rows.push_back({"copy in", "copy-in", SpansOf(step, v1::ENGINE_COPY_IN)});
  // All GPUs share one host.
  EngineRow host{"host", "host", SpansOf(step, v1::ENGINE_HOST)};
  if (step.gpu == 0 && !host.spans.empty()) rows.push_back(std::move(host));
  return rows;
}

double EnginesHeight(size_t rows) {
  return kEngineGap + (kEngineHeight + kEngineGap) * static_cast<double>(rows);
}

void DrawEngines(const PlotArea& area, const std::vector<EngineRow>& rows, Svg* svg) {
  DrawXGrid(area, svg);
  svg->Rect({area.left, area.top}, area.width, area.height, "frame");
  for (size_t i = 0; i < rows.size(); ++i) {
    const double y = area.top + kEngineGap + (kEngineHeight + kEngineGap) * static_cast<double>(i);
    svg->Text({area.left - 6, y + 13}, Svg::Anchor::kEnd, rows[i].label);
    Together together(area, y, rows[i].style, svg);
    for (const v1::TraceSpan* span : rows[i].spans) together.Add(*span);
    together.Flush();
    DrawWaits(area, rows[i], y, svg);
  }
}

}  // namespace spillway::plot
