#include "client_lib/cli/commands/stats_command.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "client_lib/cli/files/journal_reader.h"
#include "client_lib/cli/files/journal_stats.h"
#include "client_lib/cli/files/output_file.h"
#include "client_lib/cli/files/picture_file.h"
#include "client_lib/cli/flags/file_flags.h"
#include "client_lib/cli/print/progress_line.h"
#include "client_lib/cli/print/stats_text.h"
#include "client_lib/cli/print/style.h"
#include "client_lib/cli/print/text_table.h"
#include "client_lib/plot/statistics_picture.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

constexpr int kDefaultTop = 10;
constexpr int kMaxTop = 1'000'000;
// A picture with more bars would be unreadable.
constexpr size_t kMostBars = 20;
// The number of columns in the picture, each a few pixels wide.
constexpr size_t kPictureColumns = 150;
constexpr char kPlotFlag[] = "--plot";
// The grouping of the tables without --by.
constexpr const char* kUsualTables[] = {"job", "user", "model"};

struct StatsFlags {
  std::vector<std::string> journals;
  std::string by;
  int top = kDefaultTop;
  std::string since;
  std::string until;
  std::string picture;
  std::string theme = "auto";
  bool json = false;
};

// A point in time, absolute or relative to the newest line.
struct Moment {
  absl::Time time = absl::InfinitePast();
  absl::optional<absl::Duration> before_newest;
};

// RFC 3339, or a duration: `24h`, `90m`, `7d`.
absl::StatusOr<Moment> ParseMoment(const std::string& flag, const std::string& text) {
  Moment moment;
  std::string error;
  absl::Duration duration;
  int64_t days = 0;
  if (absl::ParseTime(absl::RFC3339_full, text, &moment.time, &error) &&
      moment.time != absl::InfiniteFuture() && moment.time != absl::InfinitePast()) {
    return moment;
  }
  if (absl::EndsWith(text, "d") && absl::SimpleAtoi(text.substr(0, text.size() - 1), &days)) {
    duration = absl::Hours(24) * days;
  } else if (!absl::ParseDuration(text, &duration) || duration == absl::InfiniteDuration()) {
    duration = -absl::InfiniteDuration();
  }
  if (duration < absl::ZeroDuration()) {
    return core::InvalidError(
        v1::ERROR_REASON_BAD_OPTION,
        absl::StrCat(flag, ": ", core::Quoted(text),
                     " is neither a time, e.g. 2026-11-24T08:00:00Z, nor how long before the "
                     "newest line, e.g. 90m, 24h, 7d"),
        {{"flag", flag}, {"value", text}});
  }
  moment.before_newest = duration;
  return moment;
}

// The selected period, both ends included.
struct TimeRange {
  absl::Time from = absl::InfinitePast();
  absl::Time to = absl::InfiniteFuture();
};

absl::StatusOr<TimeRange> RangeOf(const StatsFlags& flags, JournalReader* reader) {
  TimeRange range;
  std::vector<std::pair<Moment, absl::Time*>> relative;
  for (const auto& [flag, text, end] : {std::make_tuple("--since", flags.since, &range.from),
                                        std::make_tuple("--until", flags.until, &range.to)}) {
    if (text.empty()) continue;
    const absl::StatusOr<Moment> moment = ParseMoment(flag, text);
    if (!moment.ok()) return moment.status();
    *end = moment->time;
    if (moment->before_newest) relative.emplace_back(*moment, end);
  }
  if (relative.empty()) return range;
  if (absl::Status s = reader->KeepForAnotherRead(); !s.ok()) return s;
  absl::Time newest = absl::InfinitePast();
  absl::Status status =
      reader->Read([&](const JournalEntry& entry) { newest = std::max(newest, entry.time); });
  if (!status.ok()) return status;
  for (const auto& [moment, end] : relative) *end = newest - *moment.before_newest;
  return range;
}

std::vector<const JournalDimension*> DimensionsOf(const StatsFlags& flags) {
  std::vector<const JournalDimension*> dimensions;
  for (const JournalDimension& dimension : JournalDimensions()) {
    const bool usual =
        std::find_if(std::begin(kUsualTables), std::end(kUsualTables), [&](absl::string_view name) {
          return name == dimension.name;
        }) != std::end(kUsualTables);
    if (flags.by.empty() ? usual : flags.by == dimension.name) dimensions.push_back(&dimension);
  }
  return dimensions;
}

absl::StatusOr<std::string> DrawStats(const JournalStats& stats, const StatsFlags& flags,
                                      PictureForm form) {
  const JournalTimeline::Columns columns = stats.timeline().In(kPictureColumns);
  plot::Statistics statistics;
  statistics.start_s = columns.start_s;
  statistics.width_s = columns.width_s;
  for (const JournalSums& sums : columns.columns) {
    statistics.columns.push_back({sums.rewritten, sums.nothing_to_do, sums.does_not_fit,
                                  sums.failed, sums.other(), sums.swap_bytes, sums.slowdown()});
  }
  statistics.bars_of = stats.dimensions()[0]->name;
  const size_t top = std::min(static_cast<size_t>(flags.top), kMostBars);
  for (const auto& [name, sums] : stats.BySwapBytes(0)) {
    if (statistics.bars.size() >= top || sums.swap_bytes == 0) break;
    statistics.bars.push_back({name, sums.swap_bytes});
  }
  plot::PictureOptions options;
  options.format = form == PictureForm::kHtml ? plot::Format::kHtml : plot::Format::kSvg;
  // A PNG cannot adapt to the viewer's color scheme.
  options.theme = flags.theme == "dark"                                 ? plot::Theme::kDark
                  : flags.theme == "light" || form == PictureForm::kPng ? plot::Theme::kLight
                                                                        : plot::Theme::kAuto;
  absl::StatusOr<std::string> picture = plot::DrawStatistics(statistics, options);
  if (picture.ok() && form == PictureForm::kPng) return SvgToPng(*picture);
  return picture;
}

std::string DamageText(const DamagedLines& damaged) {
  if (damaged.count == 0) return "";
  return absl::StrCat(FormatCount(damaged.count, "line"),
                      " passed over, cut off or of no journal; the first is line ", damaged.line,
                      " of ", damaged.file == "-" ? "standard input" : core::Quoted(damaged.file));
}

absl::StatusOr<ExitCode> Run(const StatsFlags& flags, const Session& session) {
  absl::optional<PictureForm> form;
  if (!flags.picture.empty()) {
    const auto given = PictureFormOf(flags.picture, /*form=*/"", kPlotFlag);
    if (!given.ok()) return given.status();
    form = *given;
    if (form == PictureForm::kPng) {
      if (absl::Status s = CheckPng(kPlotFlag); !s.ok()) return s;
    }
    for (const std::string& journal : flags.journals) {
      if (journal == "-" || !SameFile(journal, flags.picture)) continue;
      return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                                absl::StrCat(kPlotFlag, " ", core::Quoted(flags.picture),
                                             " would overwrite the journal; give another name"),
                                {{"flag", kPlotFlag}});
    }
  }
  absl::StatusOr<JournalReader> reader = JournalReader::Open(flags.journals, session.cancellation);
  if (!reader.ok()) return reader.status();
  const absl::StatusOr<TimeRange> range = RangeOf(flags, &*reader);
  if (!range.ok()) return range.status();
  JournalStats stats(DimensionsOf(flags));
  int64_t entries = 0;
  absl::Status status = reader->Read([&](const JournalEntry& entry) {
    ++entries;
    if (entry.time >= range->from && entry.time <= range->to) stats.Add(entry);
  });
  if (!status.ok()) return status;
  if (entries == 0 && reader->damaged().count > 0) {
    return core::InvalidError(
        v1::ERROR_REASON_BAD_OPTION,
        absl::StrCat("this is no journal of spillwayd: ", DamageText(reader->damaged())),
        {{"argument", "JOURNAL"}});
  }
  const size_t top = static_cast<size_t>(flags.top);
  if (form) {
    const absl::StatusOr<std::string> picture = DrawStats(stats, flags, *form);
    if (!picture.ok()) return picture.status();
    const auto output = CreateOutputs({flags.picture}, session.cancellation);
    if (!output.ok()) return output.status();
    if (absl::Status s = WriteOutputs(*output, {*picture}); !s.ok()) return s;
  }
  if (flags.picture != "-") {
    std::cout << (flags.json ? StatsJson(stats, reader->damaged(), top)
                             : StatsText(stats, top, StyleOf(STDOUT_FILENO)));
  }
  std::cout.flush();
  TellNote(DamageText(reader->damaged()));
  return ExitCode::kDone;
}

}  // namespace

void AddStatsCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "stats",
      "Who swaps what, and what it costs: by job, user and model, out of a server's journal "
      "(spillwayd --journal). As tables, JSON, or a picture over time.");
  auto flags = std::make_shared<StatsFlags>();
  command
      ->add_option("JOURNAL", flags->journals,
                   "Journals: files, folders of them, or - for standard input. A line that is "
                   "damaged is passed over, and counted.")
      ->required()
      ->type_name("...");
  constexpr char kLooked[] = "What to look at";
  constexpr char kWritten[] = "What to write";
  std::vector<std::string> names;
  for (const JournalDimension& dimension : JournalDimensions()) names.push_back(dimension.name);
  command
      ->add_option("--since", flags->since,
                   "From this time on: 2026-11-24T08:00:00Z, or how long before the newest line: "
                   "90m, 24h, 7d. [default: all]")
      ->type_name("TIME")
      ->check(NotEmpty)
      ->group(kLooked);
  command->add_option("--until", flags->until, "Up to this time, given likewise. [default: all]")
      ->type_name("TIME")
      ->check(NotEmpty)
      ->group(kLooked);
  command
      ->add_option("--by", flags->by,
                   "One table, by this. The first four are what callers say of themselves. "
                   "[default: by job, user and model]")
      ->check(CLI::IsMember(names))
      ->type_name(absl::StrCat("job|user|queue|model|machine|strategy|caller"))
      ->group(kWritten);
  command
      ->add_option("--top", flags->top,
                   absl::StrCat("At most so many rows of a table, those that swap most. 1 to ",
                                kMaxTop, ". [default: ", kDefaultTop, "]"))
      ->check(CLI::Range(1, kMaxTop))
      ->type_name("N")
      ->group(kWritten);
  command->add_flag("--json", flags->json, "JSON: totals, tables, and the sums over time.")
      ->group(kWritten);
  command
      ->add_option(
          kPlotFlag, flags->picture,
          "A picture besides: requests by what became of them, swapped bytes and slow-down "
          "over time, and who swaps most. By the end of its name .svg, .html (tells what "
          "is under the pointer) or .png (by rsvg-convert; Debian: librsvg2-bin); - is SVG "
          "on standard output, in place of the tables.")
      ->check(NotEmpty)
      ->type_name("FILE")
      ->group(kWritten);
  command
      ->add_option("--theme", flags->theme,
                   "Of the picture: dark on light, or light on dark; auto is as who looks at it "
                   "prefers. [default: auto; a PNG: light]")
      ->check(CLI::IsMember({"auto", "light", "dark"}))
      ->type_name("auto|light|dark")
      ->group(kWritten);
  command->footer(
      "A request is one line of the journal. \"swapping\" counts the rewritten graphs that\n"
      "swap; \"per step\" is what one step of each copies, both ways, added up; \"speed\" that\n"
      "of their steps after against before; \"saved\" their peaks before less those after.\n"
      "Several tasks of a job that ask each count. Jobs are named by spillway run, or by\n"
      "SPILLWAY_JOB, SPILLWAY_USER, SPILLWAY_QUEUE and SPILLWAY_MODEL: claims, which\n"
      "nobody checks.\n"
      "\n"
      "Examples:\n"
      "  spillway stats /var/log/spillway\n"
      "  spillway stats /var/log/spillway --by queue --since 24h\n"
      "  spillway stats journal.jsonl --since 7d --plot week.html\n"
      "  zcat old/*.gz | spillway stats - --json | jq .totals");
  command->final_callback(
      [flags, session] { session->run = [flags, session] { return Run(*flags, *session); }; });
}

}  // namespace spillway::cli
