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
  return core::InvalidError(
      v1::ERROR_REASON_BAD_OPTION,
      absl::StrCat("message is not ", what, " (",
                   FormatCount(static_cast<int64_t>(content.size()), "byte"), ")"),
      {{"argument", "message"}});
}

// Returns the text that `format` makes of a message.
template <typename Message, std::string (*format)(const Message&)>
Text OfMessage(absl::string_view content) {
  Message message;
  if (content.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !message.ParseFromArray(content.data(), static_cast<int>(content.size()))) {
    return BadContent(content, absl::StrCat("a serialized ", message.GetTypeName()));
  }
  return format(message);
}

// The same with the default style.
template <typename Message, std::string (*format)(const Message&, Style)>
std::string WithDefaults(const Message& message) {
  return format(message, Style());
}

template <typename Message, std::string (*format)(const Message&, Style)>
constexpr auto kWithDefaults = OfMessage<Message, WithDefaults<Message, format>>;

template <std::string (*format)(int64_t)>
Text OfNumber(absl::string_view content) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(content, &number)) return BadContent(content, "a decimal number");
  return format(number);
}

std::string Summary(const v1::RewriteReport& report) { return FormatSummary(report); }

std::string Exploration(const v1::ExploreReport& report) {
  return FormatExploration(report, Style(), RecomputeChoice::kDefault);
}

std::string Graph(const v1::GraphSummary& summary) {
  return FormatGraphSummary(summary, kTop, Style());
}

std::string Capabilities(const v1::GetCapabilitiesResponse& response) {
  return FormatCapabilities(response, Style());
}

std::string Size(const v1::ExploredSize& size) {
  return FormatSizes({size}, /*size_is_batch=*/false, Style());
}

std::string Nanoseconds(int64_t number) { return core::DurationText(absl::Nanoseconds(number)); }

Text NearNames(absl::string_view content) {
  std::vector<absl::string_view> names = absl::StrSplit(content, '\n');
  const absl::string_view word = names[0];
  names.erase(names.begin());
  return core::DidYouMean(word, names);
}

constexpr struct {
  absl::string_view name;
  Text (*text)(absl::string_view content);
} kKinds[] = {
    {"RewriteReport", OfMessage<v1::RewriteReport, Summary>},
    {"RewriteReport line", OfMessage<v1::RewriteReport, ReportLine>},
    {"Forecast", kWithDefaults<v1::Forecast, FormatForecast>},
    {"SimulateReport", kWithDefaults<v1::SimulateReport, FormatSimulation>},
    {"ExploreReport", OfMessage<v1::ExploreReport, Exploration>},
    {"ExploredSize", OfMessage<v1::ExploredSize, Size>},
    {"GraphSummary", OfMessage<v1::GraphSummary, Graph>},
    {"GraphDiff", kWithDefaults<v1::GraphDiff, FormatGraphDiff>},
    {"RunCheck", kWithDefaults<v1::RunCheck, FormatCheck>},
    {"GetCapabilitiesResponse", OfMessage<v1::GetCapabilitiesResponse, Capabilities>},
    {"bytes", OfNumber<core::BytesText>},
    {"nanoseconds", OfNumber<Nanoseconds>},
    {"near names", NearNames},
};

}  // namespace

Text TextOf(absl::string_view name, absl::string_view content) {
  std::string known;
  for (const auto& kind : kKinds) {
    if (kind.name == name) return kind.text(content);
    absl::StrAppend(&known, known.empty() ? "" : ", ", kind.name);
  }
  return core::InvalidError(v1::ERROR_REASON_BAD_OPTION,
                            absl::StrCat("name is ", core::Quoted(name), "; give one of ", known),
                            {{"argument", "name"}});
}

}  // namespace spillway::text
