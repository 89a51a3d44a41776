#include "client_lib/cli/commands/plot_report.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/json_util.h"
#include "nlohmann/json.hpp"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

using nlohmann::json;

absl::Status BadReport(const std::string& path, absl::string_view what) {
  const std::string name = path == "-" ? "standard input" : core::Quoted(path);
  return core::InvalidError(v1::ERROR_REASON_BAD_OPTION, absl::StrCat(name, " ", what),
                            {{"file", path}});
}

// Lists its field names without their contents: a report may be large.
json Fields(absl::string_view text) {
  return json::parse(
      text.begin(), text.end(), [](int depth, json::parse_event_t, json&) { return depth <= 1; },
      /*allow_exceptions=*/false);
}

template <typename Report>
absl::StatusOr<PlotReport> ReadAs(absl::string_view text, const std::string& path) {
  // A report from a newer program may have more fields.
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  Report report;
  const auto parsed =
      google::protobuf::util::JsonStringToMessage({text.data(), text.size()}, &report, options);
  if (parsed.ok()) return PlotReport(std::move(report));
  return BadReport(path, absl::StrCat("is not a ", Report::descriptor()->name(), ": ",
                                      parsed.message().as_string()));
}

}  // namespace

absl::StatusOr<PlotReport> ReadReport(absl::string_view text, const std::string& path) {
  const json fields = Fields(text);
  if (!fields.is_object()) {
    return BadReport(path, "is damaged: no JSON; write it again with --json");
  }
  if (fields.contains("meta_graphs")) {
    return BadReport(path,
                     "has a report for each MetaGraph of a SavedModel; cut one out, as with jq "
                     "'.meta_graphs[0].simulation', or plot the model itself");
  }
  if (fields.contains("forecast_before") || fields.contains("outcome")) {
    return BadReport(path,
                     "is the report of a rewrite, which has no memory over time; plot the graphs "
                     "before and after instead: spillway plot IN OUT -o FILE.svg");
  }
  if (fields.contains("forecast") && !fields.contains("memory")) {
    return BadReport(path,
                     "has no memory over time; make it with spillway simulate GRAPH --trace "
                     "STEP.json --json, or plot the graph itself");
  }
  if (fields.contains("forecast")) return ReadAs<v1::SimulateReport>(text, path);
  if (fields.contains("sizes")) return ReadAs<v1::ExploreReport>(text, path);
  return BadReport(path,
                   "is no report of simulate, inspect --memory or explore, and no graph; write one "
                   "with --json");
}

}  // namespace spillway::cli
