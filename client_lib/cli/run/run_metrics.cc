#include "client_lib/cli/run/run_metrics.h"

#include <errno.h>
#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "client_lib/cli/base/file_error.h"
#include "client_lib/cli/files/folder.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/names.h"
#include "rewrite_core/base/rewrite_figures.h"
#include "spillway/local_connection.h"

namespace spillway::cli {
namespace {

constexpr char kPrefix[] = "spillway_hook_";
constexpr size_t kMaxMetricsBytes = 1 << 20;
// The node exporter runs as another user.
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
constexpr Family kMachines = {"rewrites_by_machine_total", "counter",
                              "Graphs that commands got, by the machine they were planned for."};
constexpr Family kSlowdown = {"rewrite_slowdown_ratio", "histogram",
                              "Time of a step after the rewrite / before."};
constexpr Family kPeakBefore = {"rewrite_peak_before_bytes", "histogram",
                                "Peak of the fullest GPU as the graph came."};
constexpr Family kPeakAfter = {"rewrite_peak_after_bytes", "histogram",
                               "Peak of the fullest GPU as the graph was returned."};
constexpr Family kHostMemory = {"rewrite_host_memory_bytes", "histogram",
                                "Pinned host memory that swaps take at once."};
constexpr Family kSwapBytes = {"rewrite_swap_bytes_per_step", "histogram",
                               "Bytes that a step swaps, both ways, of graphs that swap."};
constexpr Family kNeed = {"rewrite_need_ratio", "histogram",
                          "What the fullest GPU needs / its budget; of does_not_fit, the smallest "
                          "budget that would do."};
constexpr Family kFamilies[] = {kRuns,       kFailures,  kDuration, kOutcomes,   kTensors,
                                kUnknown,    kSwapOuts,  kSwapIns,  kBytesOut,   kBytesIn,
                                kNodes,      kMachines,  kSlowdown, kPeakBefore, kPeakAfter,
                                kHostMemory, kSwapBytes, kNeed};

// As an outcome. A run that fails for this reason has no report.
constexpr char kDoesNotFitOutcome[] = "does_not_fit";
constexpr char kNoMachine[] = "none";

// Upper bounds, the same as those of the server's histograms.
constexpr double kMiB = 1 << 20, kGiB = 1 << 30;
constexpr double kSlowdownBounds[] = {1, 1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10};
constexpr double kNeedBounds[] = {0.1, 0.25, 0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5, 2, 4};
constexpr double kByteBounds[] = {kMiB,      4 * kMiB,  16 * kMiB,  64 * kMiB, 256 * kMiB,
                                  kGiB,      2 * kGiB,  4 * kGiB,   8 * kGiB,  16 * kGiB,
                                  32 * kGiB, 64 * kGiB, 128 * kGiB, 256 * kGiB};

// A histogram, and the outcomes for which it has values. Others are omitted, since each has a
// bucket for every bound and strategy.
struct Histogram {
  const Family& family;
  absl::Span<const double> bounds;
  std::vector<std::string> outcomes;
};

std::vector<Histogram> Histograms() {
  return {
      {kSlowdown, kSlowdownBounds, {"rewritten", "nothing_to_do"}},
      {kPeakBefore, kByteBounds, {"rewritten", "nothing_to_do", "kept", "foreign"}},
      {kPeakAfter, kByteBounds, {"rewritten", "nothing_to_do", "kept", "foreign"}},
      {kHostMemory, kByteBounds, {"rewritten"}},
      {kSwapBytes, kByteBounds, {"rewritten"}},
      {kNeed, kNeedBounds, {"rewritten", "nothing_to_do", "kept", "foreign", kDoesNotFitOutcome}}};
}

constexpr const char* kResults[] = {"rewritten", "cached", "unchanged", "failed_open",
                                    "failed_closed"};

// The reasons of failures are those of the exit codes: they are few, and all start at zero.
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

// The name of a series without labels.
absl::string_view BaseOf(absl::string_view series) { return series.substr(0, series.find('{')); }

constexpr char kBound[] = "le=\"";

std::string BoundText(double bound) {
  // Integers are printed as such, without loss of digits or a decimal point.
  return bound == std::floor(bound) ? absl::StrCat(static_cast<int64_t>(bound))
                                    : absl::StrCat(bound);
}

// One series of a histogram: `suffix` is `_sum` or `_count`; otherwise it is the bucket of `bound`.
std::string HistogramName(const Family& family, absl::string_view suffix, absl::string_view bound,
                          absl::string_view strategy, absl::string_view outcome) {
  const bool bucket = suffix.empty();
  return absl::StrCat(kPrefix, family.name, bucket ? "_bucket" : suffix, "{strategy=\"", strategy,
                      "\",outcome=\"", outcome, bucket ? absl::StrCat("\",", kBound, bound) : "",
                      "\"}");
}

std::vector<std::string> HistogramNames(const Histogram& histogram, absl::string_view strategy,
                                        absl::string_view outcome) {
  std::vector<std::string> names;
  for (const double bound : histogram.bounds) {
    names.push_back(HistogramName(histogram.family, "", BoundText(bound), strategy, outcome));
  }
  names.push_back(HistogramName(histogram.family, "", "+Inf", strategy, outcome));
  for (const char* suffix : {"_sum", "_count"}) {
    names.push_back(HistogramName(histogram.family, suffix, "", strategy, outcome));
  }
  return names;
}

// The order of a series within its family: buckets by their bounds, which would sort differently as
// text, before sum and count.
std::tuple<std::string, double, std::string> PlaceOf(const std::string& series) {
  const size_t bound = series.rfind(kBound);
  if (bound == series.npos) {
    const absl::string_view base = BaseOf(series);
    return {series.substr(base.size()), std::numeric_limits<double>::infinity(),
            absl::EndsWith(base, "_count") ? "2" : "1"};
  }
  double value = std::numeric_limits<double>::infinity();
  const size_t begin = bound + sizeof(kBound) - 1;
  (void)absl::SimpleAtod(series.substr(begin, series.find('"', begin) - begin), &value);
  // `{strategy="s",outcome="o",le="1"}` beside `{strategy="s",outcome="o"}`.
  const size_t labels = series.find('{');
  return {absl::StrCat(series.substr(labels, bound - labels - 1), "}"), value, "0"};
}

// A label limited to these names is bounded, whatever a server calls its machine.
std::vector<std::string> Machines() {
  std::vector<std::string> names = {kNoMachine, core::kCustomMachine.data()};
  const auto capabilities = Client(MakeLocalConnection()).GetCapabilities();
  if (!capabilities.ok()) return names;
  for (const v1::HardwareReport& preset : capabilities->hardware_presets()) {
    names.push_back(preset.hardware().preset());
  }
  return names;
}

// Series that exist from the first run: a counter that first appears at 1 shows no increase.
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
  series[NameOf(kOutcomes, "", "outcome", kDoesNotFitOutcome)] = 0;
  for (const v1::Strategy value : core::AllStrategies()) {
    // They have separate commands.
    if (value == v1::STRATEGY_STRIP || value == v1::STRATEGY_APPLY) continue;
    for (const Family& family :
         {kTensors, kUnknown, kSwapOuts, kSwapIns, kBytesOut, kBytesIn, kNodes}) {
      series[NameOf(family, "", "strategy", core::StrategyName(value))] = 0;
    }
    for (const Histogram& histogram : Histograms()) {
      for (const std::string& outcome : histogram.outcomes) {
        for (const std::string& name :
             HistogramNames(histogram, core::StrategyName(value), outcome)) {
          series[name] = 0;
        }
      }
    }
  }
  for (const std::string& machine : Machines()) {
    series[NameOf(kMachines, "", "machine", machine)] = 0;
  }
  return series;
}

// The family of a series or of a name in a comment, if this version has it.
const Family* FindFamily(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, kPrefix)) return nullptr;
  for (const Family& family : kFamilies) {
    absl::string_view rest = name;
    if (!absl::ConsumePrefix(&rest, family.name)) continue;
    const absl::string_view type = family.type;
    if (rest.empty() || (type != "counter" && (rest == "_sum" || rest == "_count")) ||
        (type == "histogram" && rest == "_bucket")) {
      return &family;
    }
  }
  return nullptr;
}

// The contents of a file: its series, and the lines of families that this version does not have,
// which are kept unchanged.
struct Contents {
  Series series;
  std::string others;
};

absl::Status Damaged(absl::string_view line) {
  return absl::InvalidArgumentError(
      absl::StrCat("the line ", core::Quoted(line), " is not one of spillway run"));
}

// Only lines in the form that Format writes are accepted.
absl::StatusOr<Contents> Parse(absl::string_view text) {
  Contents contents;
  if (!text.empty() && text.back() != '\n') return Damaged(text.substr(text.rfind('\n') + 1));
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (line[0] == '#') {
      const std::vector<absl::string_view> words = absl::StrSplit(line, absl::MaxSplits(' ', 3));
      if (words.size() > 3 && absl::StartsWith(words[2], kPrefix) &&
          FindFamily(words[2]) == nullptr) {
        absl::StrAppend(&contents.others, line, "\n");
      }
      continue;
    }
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    double value = 0;
    if (!absl::StartsWith(line, kPrefix) || !absl::SimpleAtod(parts.second, &value) ||
        !std::isfinite(value) || value < 0) {
      return Damaged(line);
    }
    if (FindFamily(BaseOf(parts.first)) == nullptr) {
      absl::StrAppend(&contents.others, line, "\n");
    } else {
      contents.series[std::string(parts.first)] = value;
    }
  }
  return contents;
}

// Whether the text begins like one that Format wrote; the rest may be damaged.
bool IsOurs(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "# HELP ")) absl::ConsumePrefix(&text, "# TYPE ");
  return absl::StartsWith(text, kPrefix);
}

std::string Format(const Contents& contents) {
  std::map<absl::string_view, std::vector<std::string>> by_family;
  for (const auto& [name, value] : contents.series) {
    by_family[FindFamily(BaseOf(name))->name].push_back(name);
  }
  std::string text;
  for (const Family& family : kFamilies) {
    const std::string name = NameOf(family);
    absl::StrAppend(&text, "# HELP ", name, " ", family.help, "\n# TYPE ", name, " ", family.type,
                    "\n");
    std::vector<std::string>& names = by_family[family.name];
    if (absl::string_view(family.type) == "histogram") {
      std::sort(names.begin(), names.end(),
                [](const std::string& a, const std::string& b) { return PlaceOf(a) < PlaceOf(b); });
    }
    for (const std::string& series : names) {
      // 17 digits restore every double exactly.
      absl::StrAppendFormat(&text, "%s %.17g\n", series, contents.series.at(series));
    }
  }
  return text + contents.others;
}

void Observe(const Family& family, double value, absl::string_view strategy,
             absl::string_view outcome, Series* series) {
  for (const Histogram& histogram : Histograms()) {
    if (&histogram.family != &family ||
        !absl::c_linear_search(histogram.outcomes, std::string(outcome))) {
      continue;
    }
    for (const double bound : histogram.bounds) {
      if (value > bound) continue;
      (*series)[HistogramName(family, "", BoundText(bound), strategy, outcome)] += 1;
    }
    (*series)[HistogramName(family, "", "+Inf", strategy, outcome)] += 1;
    (*series)[HistogramName(family, "_sum", "", strategy, outcome)] += value;
    (*series)[HistogramName(family, "_count", "", strategy, outcome)] += 1;
  }
}

void ObserveFigures(const v1::RewriteReport& report, absl::string_view strategy, Series* series) {
  const core::RewriteFigures figures = core::FiguresOf(report);
  const std::string outcome = OutcomeName(report.outcome());
  const auto observe = [&](const Family& family, double value) {
    Observe(family, value, strategy, outcome, series);
  };
  const auto bytes = [](int64_t value) { return static_cast<double>(value); };
  if (figures.slowdown().has_value()) observe(kSlowdown, *figures.slowdown());
  if (const core::GpuFigures* const gpu = figures.fullest(); gpu != nullptr) {
    observe(kPeakBefore, bytes(gpu->peak_before_bytes));
    if (gpu->peak_after_bytes.has_value()) observe(kPeakAfter, bytes(*gpu->peak_after_bytes));
    if (gpu->used_bytes().has_value() && gpu->budget_bytes.value_or(0) > 0) {
      observe(kNeed, bytes(*gpu->used_bytes()) / bytes(*gpu->budget_bytes));
    }
  }
  if (figures.swapped_tensors > 0) {
    if (figures.host_peak_bytes.has_value()) observe(kHostMemory, bytes(*figures.host_peak_bytes));
    observe(kSwapBytes, bytes(figures.swap_out_bytes + figures.swap_in_bytes));
  }
  const std::string machine = figures.machine.empty() ? kNoMachine : figures.machine;
  const std::string name = NameOf(kMachines, "", "machine", machine);
  const bool known = series->count(name) > 0;
  (*series)[known ? name : NameOf(kMachines, "", "machine", core::kCustomMachine)] += 1;
}

void AddRewrite(const v1::RewriteReport& report, absl::string_view strategy, Series* series) {
  (*series)[NameOf(kOutcomes, "", "outcome", OutcomeName(report.outcome()))] += 1;
  if (report.outcome() != v1::OUTCOME_REWRITTEN) return;
  const auto add = [&](const Family& family, int64_t value) {
    (*series)[NameOf(family, "", "strategy", strategy)] += static_cast<double>(value);
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
  absl::StatusOr<Contents> contents = Parse(old);
  if (!contents.ok()) return contents.status();
  Series& series = contents->series;
  series.merge(Zeros());  // Keeps existing values.
  series[NameOf(kRuns, "", "result", kResults[static_cast<int>(run.result)])] += 1;
  series[NameOf(kDuration, "_count")] += 1;
  series[NameOf(kDuration, "_sum")] += absl::ToDoubleSeconds(run.duration);
  const std::string strategy = core::StrategyName(
      run.report.strategy() != v1::STRATEGY_UNSPECIFIED ? run.report.strategy() : run.strategy);
  if (run.failure != ExitCode::kDone) {
    series[NameOf(kFailures, "", "reason", FailureName(run.failure))] += 1;
  }
  if (run.failure == ExitCode::kDoesNotFit) {
    series[NameOf(kOutcomes, "", "outcome", kDoesNotFitOutcome)] += 1;
    if (run.need_ratio.has_value()) {
      Observe(kNeed, *run.need_ratio, strategy, kDoesNotFitOutcome, &series);
    }
  }
  if (run.report.outcome() == v1::OUTCOME_UNSPECIFIED) return Format(*contents);
  // A cached rewrite slows the job just as much.
  ObserveFigures(run.report, strategy, &series);
  if (run.result != HookRun::Result::kCached) AddRewrite(run.report, strategy, &series);
  return Format(*contents);
}

absl::StatusOr<std::string> AddToMetricsFile(const std::string& path, const HookRun& run) {
  const std::filesystem::path file(path);
  const std::string name = file.filename();
  const absl::StatusOr<Folder> folder =
      OpenFolder(file.has_parent_path() ? file.parent_path().string() : ".");
  if (!folder.ok()) return folder.status();
  // Not the file itself, since it is replaced. Opened for reading, which other users may do.
  const std::string lock_name = name + ".lock";
  const UniqueFd lock(openat(folder->fd.get(), lock_name.c_str(),
                             O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kMetricsFileMode));
  if (lock.get() < 0) {
    return FileError(errno, "write", folder->PathOf(lock_name), "give a folder to write to");
  }
  if (absl::Status status = LockFile(lock, folder->PathOf(lock_name)); !status.ok()) return status;
  absl::StatusOr<std::string> old = ReadWholeFile(*folder, name, kMaxMetricsBytes);
  if (absl::IsNotFound(old.status())) old = "";  // The first run.
  // Metrics have about 100 KiB, so a larger file is not one of these.
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
