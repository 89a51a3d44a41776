#include "client_lib/text/message_text.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "client_lib/text/capabilities_text.h"
#include "client_lib/text/check_text.h"
#include "client_lib/text/cost_text.h"
#include "client_lib/text/diff_text.h"
#include "client_lib/text/forecast_text.h"
#include "client_lib/text/inspect_text.h"
#include "client_lib/text/summary.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/near_names.h"

namespace spillway::text {
namespace {

using Text = absl::StatusOr<std::string>;

// Rows of the tables of a graph; as many as `spillway inspect` shows.
constexpr int kTop = 10;

Text BadContent(absl::string_view content, absl::string_view what) {
  return core::InvalidError(v1::ERROR_REASON_BAD_OPTION,
                            absl::StrCat("message is not ", what, " (", content.size(), " bytes)"),
                            {{"argument", "message"}});
}

template <typename Message, typename Format>
Text OfMessage(absl::string_view content, const Format& format) {
  Message message;
  if (content.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !message.ParseFromArray(content.data(), static_cast<int>(content.size()))) {
    return BadContent(content, absl::StrCat("a serialized ", message.GetTypeName()));
  }
  return format(message);
}

template <typename Format>
Text OfNumber(absl::string_view content, const Format& format) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(content, &number)) return BadContent(content, "a decimal number");
  return format(number);
}

struct Kind {
  absl::string_view name;
  Text (*text)(absl::string_view content);
};

constexpr Kind kKinds[] = {
    {"RewriteReport",
     [](absl::string_view content) {
       return OfMessage<v1::RewriteReport>(content, [](const auto& m) { return FormatSummary(m); });
     }},
    {"RewriteReport line",
     [](absl::string_view content) { return OfMessage<v1::RewriteReport>(content, ReportLine); }},
    {"Forecast",
     [](absl::string_view content) {
       return OfMessage<v1::Forecast>(content,
                                      [](const auto& m) { return FormatForecast(m, Style()); });
     }},
    {"SimulateReport",
     [](absl::string_view content) {
       return OfMessage<v1::SimulateReport>(
           content, [](const auto& m) { return FormatSimulation(m, Style()); });
     }},
    {"ExploreReport",
     [](absl::string_view content) {
       return OfMessage<v1::ExploreReport>(
           content, [](const auto& m) { return FormatExploration(m, Style()); });
     }},
    {"ExploredSize",
     [](absl::string_view content) {
       return OfMessage<v1::ExploredSize>(content, [](const auto& m) {
         const bool swapping = m.has_swapped() || m.has_full_speed_sizes_per_s();
         return ExplorationText({/*size_is_batch=*/false, swapping}, Style()).Row(m);
       });
     }},
    {"GraphSummary",
     [](absl::string_view content) {
       return OfMessage<v1::GraphSummary>(
           content, [](const auto& m) { return FormatGraphSummary(m, kTop, Style()); });
     }},
    {"GraphDiff",
     [](absl::string_view content) {
       return OfMessage<v1::GraphDiff>(content,
                                       [](const auto& m) { return FormatGraphDiff(m, Style()); });
     }},
    {"RunCheck",
     [](absl::string_view content) {
       return OfMessage<v1::RunCheck>(content,
                                      [](const auto& m) { return FormatCheck(m, Style()); });
     }},
    {"GetCapabilitiesResponse",
     [](absl::string_view content) {
       return OfMessage<v1::GetCapabilitiesResponse>(
           content, [](const auto& m) { return FormatCapabilities(m, Style()); });
     }},
    {"bytes", [](absl::string_view content) { return OfNumber(content, core::BytesText); }},
    {"nanoseconds",
     [](absl::string_view content) {
       return OfNumber(content,
                       [](int64_t ns) { return core::DurationText(absl::Nanoseconds(ns)); });
     }},
    {"near names",
     [](absl::string_view content) -> Text {
       std::vector<absl::string_view> names = absl::StrSplit(content, '\n');
       const absl::string_view word = names[0];
       names.erase(names.begin());
       return core::DidYouMean(word, names);
     }},
};

}  // namespace

Text TextOf(absl::string_view name, absl::string_view content) {
  std::string known;
  for (const Kind& kind : kKinds) {
    if (kind.name == name) return kind.text(content);
    absl::StrAppend(&known, known.empty() ? "" : ", ", kind.name);
  }
  return core::InvalidError(v1::ERROR_REASON_BAD_OPTION,
                            absl::StrCat("name is ", core::Quoted(name), "; give one of ", known),
                            {{"argument", "name"}});
}

}  // namespace spillway::text
