#include "client_lib/cli/print/stats_text.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client_lib/text/text_table.h"
#include "nlohmann/json.hpp"
#include "rewrite_core/base/byte_text.h"

namespace spillway::cli {
namespace {

using nlohmann::ordered_json;

// The maximum number of columns of the timeline in JSON: a day in intervals of ten minutes.
constexpr size_t kJsonColumns = 150;

std::string ShownName(std::string name) {
  for (char& c : name) {
    if (!absl::ascii_isprint(c)) c = '?';
  }
  return name;
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", time, absl::UTCTimeZone());
}

std::string TotalsText(const JournalStats& stats, text::Style style) {
  const JournalSums& totals = stats.totals();
  std::vector<std::string> parts = {absl::StrCat(totals.rewritten, " rewritten"),
                                    absl::StrCat(totals.nothing_to_do, " with nothing to do"),
                                    absl::StrCat(totals.does_not_fit, " that did not fit"),
                                    absl::StrCat(totals.failed, " failed"),
                                    absl::StrCat(totals.other(), " others")};
  std::vector<std::vector<std::string>> rows = {
      {"time", absl::StrCat(TimeText(stats.first()), " to ", TimeText(stats.last()), " UTC")},
      {"requests", absl::StrCat(totals.requests, ": ", absl::StrJoin(parts, ", "))}};
  if (totals.swapping == 0) {
    rows.push_back({"swapping", "no graph"});
  } else {
    rows.push_back({"swapping", absl::StrCat(text::FormatCount(totals.swapping, "graph"),
                                             ", together ", core::BytesText(totals.swap_bytes),
                                             " a step both ways, ", SlowdownText(totals))});
    rows.push_back({"saved", absl::StrCat(core::BytesText(totals.saved_bytes),
                                          " of GPU memory, the peaks of these graphs before and "
                                          "after")});
    rows.push_back({"host memory", absl::StrCat("at most ", core::BytesText(totals.most_host_bytes),
                                                " of a graph")});
  }
  return absl::StrCat(style.Heading("all"), "\n", text::FormatFacts(rows, style));
}

// Reports the omitted rows.
std::string Rest(size_t count, size_t top) {
  if (count <= top) return "";
  return absl::StrCat("  and ", count - top, " more (--top)\n");
}

std::string NamesTable(const std::vector<NamedSums>& names, const char* what, size_t top,
                       text::Style style) {
  std::vector<std::vector<std::string>> rows = {{what, "requests", "swapping", "per step", "speed",
                                                 "saved", "host memory", "no fit", "failed"}};
  for (const auto& [name, sums] : names) {
    if (rows.size() > top) break;
    const bool swaps = sums.swapping > 0;
    rows.push_back({ShownName(name), absl::StrCat(sums.requests), absl::StrCat(sums.swapping),
                    swaps ? core::BytesText(sums.swap_bytes) : "-", SlowdownText(sums),
                    swaps ? core::BytesText(sums.saved_bytes) : "-",
                    swaps ? core::BytesText(sums.most_host_bytes) : "-",
                    absl::StrCat(sums.does_not_fit), absl::StrCat(sums.failed)});
  }
  return text::FormatTable(rows, style) + Rest(names.size(), top);
}

std::string DoesNotFitTable(const std::vector<NamedSums>& names, const char* what, size_t top,
                            text::Style style) {
  if (names.empty()) return "";
  std::vector<std::vector<std::string>> rows = {{what, "did not fit", "needs", "of a budget of"}};
  for (const auto& [name, sums] : names) {
    if (rows.size() > top) break;
    rows.push_back({ShownName(name), absl::StrCat(sums.does_not_fit),
                    sums.need_bytes ? core::BytesText(*sums.need_bytes) : "-",
                    sums.need_budget_bytes ? core::BytesText(*sums.need_budget_bytes) : "-"});
  }
  return absl::StrCat("\n", style.Heading("what does not fit"), "\n",
                      text::FormatTable(rows, style), Rest(names.size(), top));
}

ordered_json SumsJson(const JournalSums& sums) {
  ordered_json object = {{"requests", sums.requests},
                         {"rewritten", sums.rewritten},
                         {"nothing_to_do", sums.nothing_to_do},
                         {"does_not_fit", sums.does_not_fit},
                         {"failed", sums.failed},
                         {"swapping", sums.swapping},
                         {"swap_bytes_per_step", sums.swap_bytes},
                         {"saved_bytes", sums.saved_bytes},
                         {"most_host_bytes", sums.most_host_bytes}};
  if (sums.slowdown()) {
    object["step_before_ns"] = sums.step_before_ns;
    object["step_after_ns"] = sums.step_after_ns;
    object["slowdown"] = *sums.slowdown();
  }
  if (sums.need_bytes) object["need_bytes"] = *sums.need_bytes;
  if (sums.need_budget_bytes) object["need_budget_bytes"] = *sums.need_budget_bytes;
  return object;
}

std::string JsonTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

}  // namespace

std::string SlowdownText(const JournalSums& sums) {
  const absl::optional<double> slowdown = sums.slowdown();
  if (!slowdown) return "-";
  if (*slowdown >= 2) return absl::StrFormat("%.1f times as long", *slowdown);
  const double percent = std::round((*slowdown - 1) * 100);
  if (percent == 0) return "as fast";
  return absl::StrFormat("%.0f %% %s", std::abs(percent), percent > 0 ? "slower" : "faster");
}

std::string StatsText(const JournalStats& stats, size_t top, text::Style style) {
  if (stats.totals().requests == 0) return "the journal has no request of that time\n";
  std::string text = TotalsText(stats, style);
  for (size_t i = 0; i < stats.dimensions().size(); ++i) {
    const char* const what = stats.dimensions()[i]->name;
    absl::StrAppend(&text, "\n", style.Heading(absl::StrCat("by ", what)), "\n",
                    NamesTable(stats.BySwapBytes(i), what, top, style));
  }
  if (!stats.dimensions().empty()) {
    absl::StrAppend(
        &text, DoesNotFitTable(stats.ByDoesNotFit(0), stats.dimensions()[0]->name, top, style));
  }
  return text;
}

std::string StatsJson(const JournalStats& stats, const DamagedLines& damaged, size_t top) {
  ordered_json object = {{"damaged_lines", damaged.count}};
  if (stats.totals().requests > 0) {
    object["first"] = JsonTime(stats.first());
    object["last"] = JsonTime(stats.last());
  }
  object["totals"] = SumsJson(stats.totals());
  for (size_t i = 0; i < stats.dimensions().size(); ++i) {
    ordered_json rows = ordered_json::array();
    for (const auto& [name, sums] : stats.BySwapBytes(i)) {
      if (rows.size() >= top) break;
      ordered_json row = {{"name", name}};
      row.update(SumsJson(sums));
      rows.push_back(std::move(row));
    }
    object["by"][stats.dimensions()[i]->name] = std::move(rows);
  }
  const JournalTimeline::Columns columns = stats.timeline().In(kJsonColumns);
  ordered_json over_time = ordered_json::array();
  for (size_t i = 0; i < columns.columns.size(); ++i) {
    if (columns.columns[i].requests == 0) continue;
    const int64_t at = columns.start_s + static_cast<int64_t>(i) * columns.width_s;
    ordered_json row = {{"time", JsonTime(absl::FromUnixSeconds(at))}};
    row.update(SumsJson(columns.columns[i]));
    over_time.push_back(std::move(row));
  }
  object["seconds_per_column"] = columns.width_s;
  object["over_time"] = std::move(over_time);
  // A truncated name may end in the middle of a character.
  return object.dump(2, ' ', /*ensure_ascii=*/true, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace spillway::cli
