#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client_lib/cli/commands/add_commands.h"
#include "client_lib/cli/files/journal_reader.h"
#include "client_lib/cli/flags/file_flags.h"
#include "client_lib/cli/print/progress_line.h"
#include "client_lib/text/style.h"
#include "client_lib/text/text_table.h"
#include "nlohmann/json.hpp"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/journal_fields.h"

namespace spillway::cli {
namespace {

namespace fields = core::journal;
using nlohmann::ordered_json;

constexpr int kMaxTop = 1'000'000;
// With names of 128 bytes, about 40 MB.
constexpr size_t kMaxJournalNames = 100'000;

// A column if there were some.
constexpr char kDryRuns[] = "dry_runs";
// The columns of the table: a member of the JSON, and its heading.
constexpr std::pair<const char*, const char*> kColumns[] = {{"requests", "requests"},
                                                            {kDryRuns, "dry"},
                                                            {"swapping", "swapping"},
                                                            {"swap_bytes_per_step", "per step"},
                                                            {"slowdown", "slow-down"},
                                                            {"saved_bytes", "saved"},
                                                            {"max_host_bytes", "host memory"},
                                                            {"does_not_fit", "no fit"},
                                                            {"failed", "failed"}};

struct StatsFlags {
  std::vector<std::string> journals;
  std::string by = fields::kJob;
  std::string since, until;
  int top = 10;
  bool json = false;
};

// Sums over some lines. Bytes and times are those of one step of each request that swaps, or as a
// dry run would have, as far as the lines have them; absent if none has.
struct JournalSums {
  int64_t requests = 0, dry_runs = 0, swapping = 0, does_not_fit = 0, failed = 0;
  absl::optional<int64_t> swap_bytes, saved_bytes, max_host_bytes;
  absl::optional<int64_t> before_ns, after_ns;  // Of requests that have both.

  void Add(const JournalEntry& entry);
};

// Saturates: the sums of a forged journal may overflow.
void AddTo(absl::optional<int64_t>* sum, absl::optional<int64_t> value) {
  if (!value) return;
  int64_t result = 0;
  const bool overflows = __builtin_add_overflow(sum->value_or(0), *value, &result);
  *sum = !overflows ? result : *value > 0 ? INT64_MAX : INT64_MIN;
}

void JournalSums::Add(const JournalEntry& entry) {
  const std::string outcome = entry.Text(fields::kOutcome);
  const bool is_too_large = absl::EqualsIgnoreCase(outcome, "does_not_fit") ||
                            absl::EqualsIgnoreCase(entry.Text(fields::kReason), "does_not_fit");
  const bool is_ok = !is_too_large && absl::EqualsIgnoreCase(entry.Text(fields::kCode), "ok");
  requests += 1;
  does_not_fit += is_too_large;
  failed += !is_too_large && !is_ok;
  const bool is_dry_run = is_ok && outcome == "dry_run";
  dry_runs += is_dry_run;
  const bool is_planned = is_dry_run || (is_ok && outcome == "rewritten");
  if (!is_planned || entry.Number(fields::kSwappedTensors).value_or(0) == 0) return;
  ++swapping;
  AddTo(&swap_bytes, entry.Number(fields::kSwapOutBytes));
  AddTo(&swap_bytes, entry.Number(fields::kSwapInBytes));
  const auto peak = entry.Number(fields::kPeakBeforeBytes);
  const auto peak_after = entry.Number(fields::kPeakAfterBytes);
  if (peak && peak_after) AddTo(&saved_bytes, *peak - *peak_after);
  max_host_bytes = std::max(max_host_bytes, entry.Number(fields::kHostPeakBytes));
  const auto before = entry.Number(fields::kStepBeforeNs);
  const auto after = entry.Number(fields::kStepAfterNs);
  if (before.value_or(0) == 0 || after.value_or(0) == 0) return;
  AddTo(&before_ns, before);
  AddTo(&after_ns, after);
}

ordered_json Row(const std::string& name, const JournalSums& sums) {
  const auto or_null = [](const auto& sum) { return sum ? ordered_json(*sum) : ordered_json(); };
  absl::optional<double> slowdown;
  if (sums.before_ns)
    slowdown = static_cast<double>(*sums.after_ns) / static_cast<double>(*sums.before_ns);
  return {{"name", name},
          {"requests", sums.requests},
          {kDryRuns, sums.dry_runs},
          {"swapping", sums.swapping},
          {"swap_bytes_per_step", or_null(sums.swap_bytes)},
          {"slowdown", or_null(slowdown)},
          {"saved_bytes", or_null(sums.saved_bytes)},
          {"max_host_bytes", or_null(sums.max_host_bytes)},
          {"does_not_fit", sums.does_not_fit},
          {"failed", sums.failed}};
}

std::vector<std::string> Cells(const ordered_json& row, bool with_dry_runs) {
  std::vector<std::string> cells = {row["name"]};
  for (const auto& [key, heading] : kColumns) {
    if (!with_dry_runs && key == kDryRuns) continue;
    const ordered_json& value = row[key];
    cells.push_back(value.is_null()                   ? "-"
                    : value.is_number_float()         ? absl::StrFormat("%.2f", value.get<double>())
                    : absl::StrContains(key, "bytes") ? core::BytesText(value.get<int64_t>())
                                                      : value.dump());
  }
  return cells;
}

// Sums by a field of the lines, in memory that is bounded by the number of names.
class JournalStats {
 public:
  explicit JournalStats(std::string by) : by_(std::move(by)) {}

  void Add(const JournalEntry& entry) {
    totals_.Add(entry);
    first_ = std::min(first_, entry.time);
    last_ = std::max(last_, entry.time);
    std::string name = entry.Text(by_);
    // A server writes no name with a space or a parenthesis.
    if (name.empty()) name = "(not given)";
    if (sums_.size() >= kMaxJournalNames && sums_.count(name) == 0) name = "(all others)";
    sums_[name].Add(entry);
  }

  // Returns the totals and the `top` names with most swapped bytes; ties by name.
  ordered_json Json(size_t top, int64_t damaged_lines) const {
    std::vector<std::pair<std::string, JournalSums>> sorted(sums_.begin(), sums_.end());
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return a.second.swap_bytes > b.second.swap_bytes;
    });
    ordered_json rows = ordered_json::array();
    for (const auto& [name, sums] : sorted) {
      if (rows.size() < top) rows.push_back(Row(name, sums));
    }
    const auto time = [this](absl::Time of) -> ordered_json {
      if (sums_.empty()) return nullptr;
      return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", of, absl::UTCTimeZone());
    };
    return {{"damaged_lines", damaged_lines},
            {"first", time(first_)},
            {"last", time(last_)},
            {"by", by_},
            {"names", sums_.size()},
            {"rows", rows},
            {"totals", Row("all", totals_)}};
  }

 private:
  const std::string by_;
  std::map<std::string, JournalSums> sums_;
  JournalSums totals_;
  absl::Time first_ = absl::InfiniteFuture(), last_ = absl::InfinitePast();
};

std::string StatsText(const ordered_json& stats, text::Style style) {
  const size_t names = stats["names"], shown = stats["rows"].size();
  if (names == 0) return "the journal has no request of that time\n";
  std::vector<std::vector<std::string>> cells = {{stats["by"]}};
  const bool with_dry_runs = stats["totals"][kDryRuns] > 0;
  for (const auto& [key, heading] : kColumns) {
    if (with_dry_runs || key != kDryRuns) cells[0].push_back(heading);
  }
  for (const ordered_json& row : stats["rows"]) cells.push_back(Cells(row, with_dry_runs));
  cells.push_back(Cells(stats["totals"], with_dry_runs));
  const std::string first = stats["first"], last = stats["last"];
  return absl::StrCat(
      style.Heading(absl::StrCat(first, " to ", last)), "\n", text::FormatTable(cells, style),
      names > shown ? absl::StrCat("  and ", names - shown, " more (--top)\n") : "");
}

// Sets `time` to that of `text`, unless it is empty: RFC 3339, or a duration before `newest`:
// `24h`, `90m`, `7d`.
absl::Status ParseMoment(const char* flag, const std::string& text, absl::Time newest,
                         absl::Time* time) {
  std::string error;
  absl::Duration before;
  int64_t days = 0;
  if (text.empty()) return absl::OkStatus();
  if (absl::ParseTime(absl::RFC3339_full, text, time, &error) && *time != absl::InfiniteFuture() &&
      *time != absl::InfinitePast()) {
    return absl::OkStatus();
  }
  if (absl::EndsWith(text, "d") && absl::SimpleAtoi(text.substr(0, text.size() - 1), &days)) {
    before = absl::Hours(24) * days;
  } else if (!absl::ParseDuration(text, &before)) {
    before = absl::InfiniteDuration();
  }
  *time = newest - before;
  if (before >= absl::ZeroDuration() && before < absl::InfiniteDuration()) return absl::OkStatus();
  return core::InvalidError(
      v1::ERROR_REASON_BAD_OPTION,
      absl::StrCat(flag, ": ", core::Quoted(text),
                   " is neither a time, e.g. 2026-11-24T08:00:00Z, nor how long before the newest "
                   "line, e.g. 90m, 24h, 7d"),
      {{"flag", flag}, {"value", text}});
}

absl::StatusOr<ExitCode> Run(const StatsFlags& flags, const Session& session) {
  absl::StatusOr<JournalReader> reader = JournalReader::Open(flags.journals, session.cancellation);
  if (!reader.ok()) return reader.status();
  absl::Time newest = absl::InfinitePast(), from = newest, to = absl::InfiniteFuture();
  if (!flags.since.empty() || !flags.until.empty()) {
    const auto take = [&](const JournalEntry& entry) { newest = std::max(newest, entry.time); };
    if (absl::Status s = reader->Read(take); !s.ok()) return s;
  }
  if (absl::Status s = ParseMoment("--since", flags.since, newest, &from); !s.ok()) return s;
  if (absl::Status s = ParseMoment("--until", flags.until, newest, &to); !s.ok()) return s;
  JournalStats stats(flags.by);
  int64_t entries = 0;
  absl::Status status = reader->Read([&](const JournalEntry& entry) {
    ++entries;
    if (entry.time >= from && entry.time <= to) stats.Add(entry);
  });
  if (!status.ok()) return status;
  const auto& [damaged, first] = reader->damage();
  const std::string note =
      absl::StrCat(text::FormatCount(damaged, "line"),
                   " skipped, damaged or not of a journal; the first is ", first);
  if (entries == 0 && damaged > 0) {
    return core::InvalidError(v1::ERROR_REASON_BAD_OPTION,
                              absl::StrCat("this is no journal of spillwayd: ", note),
                              {{"argument", "JOURNAL"}});
  }
  const ordered_json result = stats.Json(static_cast<size_t>(flags.top), damaged);
  // A truncated name may end in the middle of a character.
  std::cout << (flags.json ? result.dump(2, ' ', /*ensure_ascii=*/true,
                                         ordered_json::error_handler_t::replace) +
                                 "\n"
                           : StatsText(result, StyleOf(STDOUT_FILENO)))
            << std::flush;
  if (damaged > 0) PrintNote(note);
  return ExitCode::kDone;
}

}  // namespace

void AddStatsCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "stats", "Prints who swaps how much, and at what cost, from a server's journal.");
  auto flags = std::make_shared<StatsFlags>();
  const auto add = [&](const char* name, auto* value, const char* type, const std::string& help) {
    return command->add_option(name, *value, help)->type_name(type);
  };
  add("JOURNAL", &flags->journals, "...",
      "Journals (spillwayd --journal): files, folders, or - for standard input. Damaged lines are "
      "skipped and counted.")
      ->required();
  add("--by", &flags->by, "job|user|queue|model|machine|strategy|caller",
      "Groups requests by this. Callers state the first four themselves. [default: job]")
      ->check(CLI::IsMember({"job", "user", "queue", "model", "machine", "strategy", "caller"}));
  add("--since", &flags->since, "TIME",
      "From this time on: 2026-11-24T08:00:00Z, or how long before the newest line: 90m, 24h, 7d. "
      "[default: all]")
      ->check(NotEmpty);
  add("--until", &flags->until, "TIME", "Up to this time, as for --since. [default: all]")
      ->check(NotEmpty);
  add("--top", &flags->top, "N",
      absl::StrCat("Prints at most N rows, those that swap most. 1 to ", kMaxTop,
                   ". [default: 10]"))
      ->check(CLI::Range(1, kMaxTop));
  command->add_flag("--json", flags->json, "Prints JSON.");
  command->footer(
      "A request is one line of the journal. \"swapping\" counts the rewritten graphs\n"
      "that swap, with dry runs (\"dry\") as if they did; \"per step\" sums the copies of one\n"
      "step of each, both ways; \"slow-down\" is the time of their steps with\n"
      "swaps divided by that without; \"saved\" sums their peaks before less those after;\n"
      "\"host memory\" is the most of one. A dash (JSON: null) means that none is known.\n"
      "\n"
      "Examples:\n"
      "  spillway stats /var/log/spillway --by queue --since 24h\n"
      "  zcat old/*.gz | spillway stats - --json | jq .totals");
  command->final_callback(
      [flags, session] { session->run = [flags, session] { return Run(*flags, *session); }; });
}

}  // namespace spillway::cli
