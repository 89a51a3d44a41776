#include "client_lib/cli/run_metrics.h"

#include <errno.h>
#include <fcntl.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client_lib/cli/file_error.h"
#include "client_lib/cli/run_file.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/names.h"

namespace spillway::cli {
namespace {

constexpr char kPrefix[] = "spillway_hook_";
constexpr size_t kMaxMetricsBytes = 1 << 20;
// node exporter runs as a user of its own.
constexpr mode_t kMetricsFileMode = 0644;

struct Family {
  const char* name;  // Without the prefix.
  const char* type;
  const char* help;
};

constexpr Family kRuns = {"runs_total", "counter",
                          "Runs of spillway run, by what the command got."};
constexpr Family kFailures = {"failures_total", "counter", "Failed runs, by what went wrong."};
constexpr Family kDuration = {"duration_seconds", "summary",
                              "Time of a run before its command began."};
constexpr Family kOutcomes = {"rewrite_outcomes_total", "counter",
                              "Graphs rewritten by hooks, by what became of them."};
constexpr Family kTensors = {"swapped_tensors_total", "counter",
                             "Tensors that graphs rewritten by hooks swap."};
constexpr Family kUnknown = {"unknown_size_tensors_total", "counter",
                             "Of those, the ones of unknown size, which the bytes miss."};
constexpr Family kSwapOuts = {"swap_out_nodes_total", "counter", "Swap-out nodes inserted."};
constexpr Family kSwapIns = {"swap_in_nodes_total", "counter", "Swap-in nodes inserted."};
constexpr Family kBytesOut = {
    "swap_out_bytes_per_step_total", "counter",
    "Bytes that one step of each rewritten graph copies to the host, summed over graphs."};
constexpr Family kBytesIn = {
    "swap_in_bytes_per_step_total", "counter",
    "Bytes that one step of each rewritten graph copies back, summed over graphs."};
constexpr Family kNodes = {"nodes_added_total", "counter",
                           "Nodes that rewritten graphs have more than before."};
constexpr Family kFamilies[] = {kRuns,     kFailures, kDuration, kOutcomes, kTensors, kUnknown,
                                kSwapOuts, kSwapIns,  kBytesOut, kBytesIn,  kNodes};

constexpr const char* kResults[] = {"rewritten", "cached", "unchanged", "failed_open",
                                    "failed_closed"};

// The reasons of failures: those of the exit codes, so that there are few, and all exist at zero.
const char* FailureName(ExitCode code) {
  switch (code) {
    case ExitCode::kUsage:
      return "options";
    case ExitCode::kBadGraph:
      return "graph";
    case ExitCode::kFile:
      return "file";
    case ExitCode::kServer:
      return "server";
    case ExitCode::kStopped:
      return "timeout";
    case ExitCode::kDoesNotFit:
      return "memory";
    default:
      return "internal";
  }
}

std::string OutcomeName(v1::Outcome outcome) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::Outcome_Name(outcome), "OUTCOME_"));
}

// Values by series, e.g. `spillway_hook_runs_total{result="cached"}`.
using Series = std::map<std::string, double>;

std::string NameOf(const Family& family, absl::string_view suffix = "",
                   absl::string_view label = "", absl::string_view value = "") {
  std::string name = absl::StrCat(kPrefix, family.name, suffix);
  if (!label.empty()) absl::StrAppend(&name, "{", label, "=\"", value, "\"}");
  return name;
}

// The name alone, of a series.
absl::string_view BaseOf(absl::string_view series) { return series.substr(0, series.find('{')); }

// What exists from the first run on: a counter that appears at 1 shows no increase.
Series Zeros() {
  Series series;
  for (const char* result : kResults) series[NameOf(kRuns, "", "result", result)] = 0;
  for (const ExitCode code :
       {ExitCode::kUsage, ExitCode::kBadGraph, ExitCode::kFile, ExitCode::kServer,
        ExitCode::kStopped, ExitCode::kInternal, ExitCode::kDoesNotFit}) {
    series[NameOf(kFailures, "", "reason", FailureName(code))] = 0;
  }
  for (const char* suffix : {"_count", "_sum"}) series[NameOf(kDuration, suffix)] = 0;
  for (const v1::Outcome outcome :
       {v1::OUTCOME_REWRITTEN, v1::OUTCOME_NOTHING_TO_DO, v1::OUTCOME_KEPT, v1::OUTCOME_FOREIGN}) {
    series[NameOf(kOutcomes, "", "outcome", OutcomeName(outcome))] = 0;
  }
  for (const v1::Strategy value : core::AllStrategies()) {
    // They have commands of their own.
    if (value == v1::STRATEGY_STRIP || value == v1::STRATEGY_APPLY) continue;
    for (const Family& family :
         {kTensors, kUnknown, kSwapOuts, kSwapIns, kBytesOut, kBytesIn, kNodes}) {
      series[NameOf(family, "", "strategy", core::StrategyName(value))] = 0;
    }
  }
  return series;
}

absl::Status Damaged(absl::string_view line) {
  return absl::InvalidArgumentError(
      absl::StrCat("the line ", core::Quoted(line), " is not one of spillway run"));
}

// Only what Format writes is taken. A family of a later version has no place here, and is lost.
absl::StatusOr<Series> Parse(absl::string_view text) {
  Series series;
  if (!text.empty() && text.back() != '\n') return Damaged(text.substr(text.rfind('\n') + 1));
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (line[0] == '#') continue;
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    double value = 0;
    if (!absl::StartsWith(line, kPrefix) || !absl::SimpleAtod(parts.second, &value) ||
        !std::isfinite(value) || value < 0) {
      return Damaged(line);
    }
    series[std::string(parts.first)] = value;
  }
  return series;
}

// What Format wrote begins so, whatever has become of the rest.
bool IsOurs(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "# HELP ")) absl::ConsumePrefix(&text, "# TYPE ");
  return absl::StartsWith(text, kPrefix);
}

std::string Format(const Series& series) {
  std::string text;
  for (const Family& family : kFamilies) {
    const std::string name = NameOf(family);
    absl::StrAppend(&text, "# HELP ", name, " ", family.help, "\n# TYPE ", name, " ", family.type,
                    "\n");
    const bool summary = absl::string_view(family.type) == "summary";
    for (const auto& [full_name, value] : series) {
      absl::string_view base = BaseOf(full_name);
      if (summary && !absl::ConsumeSuffix(&base, "_sum")) absl::ConsumeSuffix(&base, "_count");
      // 17 digits give every double back as it was.
      if (base == name) absl::StrAppendFormat(&text, "%s %.17g\n", full_name, value);
    }
  }
  return text;
}

void AddRewrite(const v1::RewriteReport& report, Series* series) {
  (*series)[NameOf(kOutcomes, "", "outcome", OutcomeName(report.outcome()))] += 1;
  if (report.outcome() != v1::OUTCOME_REWRITTEN) return;
  const auto add = [&](const Family& family, int64_t value) {
    (*series)[NameOf(family, "", "strategy", core::StrategyName(report.strategy()))] +=
        static_cast<double>(value);
  };
  add(kNodes, report.node_count_after() - report.node_count_before());
  for (const v1::DeviceReport& device : report.devices()) {
    add(kTensors, device.swapped_tensor_count());
    add(kUnknown, device.unknown_size_count());
    add(kSwapOuts, device.swap_out_count());
    add(kSwapIns, device.swap_in_count());
    add(kBytesOut, device.swap_out_bytes());
    add(kBytesIn, device.swap_in_bytes());
  }
}

}  // namespace

absl::StatusOr<std::string> AddToMetrics(absl::string_view old, const HookRun& run) {
  absl::StatusOr<Series> series = Parse(old);
  if (!series.ok()) return series.status();
  series->merge(Zeros());  // What is there already stays.
  (*series)[NameOf(kRuns, "", "result", kResults[static_cast<int>(run.result)])] += 1;
  (*series)[NameOf(kDuration, "_count")] += 1;
  (*series)[NameOf(kDuration, "_sum")] += absl::ToDoubleSeconds(run.duration);
  if (run.failure != ExitCode::kDone) {
    (*series)[NameOf(kFailures, "", "reason", FailureName(run.failure))] += 1;
  }
  if (run.report.outcome() != v1::OUTCOME_UNSPECIFIED) AddRewrite(run.report, &*series);
  return Format(*series);
}

absl::StatusOr<std::string> AddToMetricsFile(const std::string& path, const HookRun& run) {
  const std::filesystem::path file(path);
  const std::string name = file.filename();
  const absl::StatusOr<Folder> folder =
      OpenFolder(file.has_parent_path() ? file.parent_path().string() : ".");
  if (!folder.ok()) return folder.status();
  // Not the file itself: it is replaced. Opened for reading, which other users may.
  const std::string lock_name = name + ".lock";
  const UniqueFd lock(openat(folder->fd.get(), lock_name.c_str(),
                             O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kMetricsFileMode));
  if (lock.get() < 0) {
    return FileError(errno, "write", folder->PathOf(lock_name), "give a folder to write to");
  }
  if (absl::Status status = LockFile(lock, folder->PathOf(lock_name)); !status.ok()) return status;
  absl::StatusOr<std::string> old = ReadWholeFile(*folder, name, kMaxMetricsBytes);
  if (absl::IsNotFound(old.status())) old = "";  // The first run.
  // Metrics have a few KiB, so what is too large is not ours either.
  if (absl::IsOutOfRange(old.status()) || (old.ok() && !old->empty() && !IsOurs(*old))) {
    return core::InvalidError(v1::ERROR_REASON_BAD_OPTION,
                              absl::StrCat(core::Quoted(path),
                                           " is not a file of spillway run; give another name, or "
                                           "take it away"),
                              {{"flag", "--metrics-textfile"}});
  }
  if (!old.ok()) return old.status();
  absl::StatusOr<std::string> text = AddToMetrics(*old, run);
  std::string warning;
  if (!text.ok()) {
    warning =
        absl::StrCat(core::Quoted(path), " was damaged and begins anew: ", text.status().message());
    text = AddToMetrics("", run);
    if (!text.ok()) return text.status();
  }
  if (absl::Status status = WriteWholeFile(*folder, name, *text, kMetricsFileMode); !status.ok()) {
    return status;
  }
  return warning;
}

}  // namespace spillway::cli
