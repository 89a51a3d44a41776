#include "client_lib/cli/run/run_metrics.h"

#include <errno.h>
#include <fcntl.h>

#include <filesystem>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "client_lib/cli/base/file_error.h"
#include "client_lib/cli/files/folder.h"
#include "nlohmann/json.hpp"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/names.h"
#include "rewrite_core/base/rewrite_figures.h"
#include "spillway/local_connection.h"

namespace spillway::cli {
namespace {

// The counts: of each family its HELP and TYPE, and its values by the rest of their series' names:
//   {"spillway_hook_runs_total": {"help": "...", "type": "counter",
//                                 "series": {"{result=\"cached\"}": 3.0}}}
// So a version of spillway keeps the families that only another one has.
using CountsJson = nlohmann::json;

constexpr char kPrefix[] = "spillway_hook_";
constexpr char kStateBegin[] = "{\"spillway_hook_";
constexpr char kTextBegin[] = "# HELP spillway_hook_";
// Both files have about 20 KiB.
constexpr size_t kMaxMetricsBytes = 1 << 20;
// The node exporter runs as another user.
constexpr mode_t kMetricsFileMode = 0644;

struct Family {
  const char* name;  // Without the prefix.
  const char* help;
};

constexpr Family kRuns = {"runs_total", "Runs of spillway run, by the graph that the command got."};
constexpr Family kFailures = {"failures_total", "Failed runs, by reason."};
constexpr Family kOutcomes = {"rewrite_outcomes_total", "Rewrites that hooks made, by outcome."};
constexpr Family kMachines = {"rewrites_by_machine_total",
                              "Graphs that commands got, by the machine they were planned for."};
constexpr Family kTensors = {"swapped_tensors_total",
                             "Tensors that graphs rewritten by hooks swap."};
constexpr Family kUnknown = {"unknown_size_tensors_total",
                             "Swapped tensors of unknown size, which the bytes do not include."};
constexpr Family kSwapOuts = {"swap_out_nodes_total", "Swap-out nodes added."};
constexpr Family kSwapIns = {"swap_in_nodes_total", "Swap-in nodes added."};
constexpr Family kBytesOut = {
    "swap_out_bytes_per_step_total",
    "Bytes that one step of each rewritten graph copies to the host, summed over graphs."};
constexpr Family kBytesIn = {
    "swap_in_bytes_per_step_total",
    "Bytes that one step of each rewritten graph copies back, summed over graphs."};
constexpr Family kNodes = {"nodes_added_total", "Nodes that rewrites added to graphs."};
constexpr Family kByStrategy[] = {kTensors,  kUnknown, kSwapOuts, kSwapIns,
                                  kBytesOut, kBytesIn, kNodes};

// Sums and counts of these, which Prometheus calls a summary.
constexpr Family kDuration = {"duration_seconds", "Time of a run before its command began."};
constexpr Family kSlowdown = {"rewrite_slowdown_ratio",
                              "Forecast step time of the returned graph / of the original one with "
                              "unlimited memory."};
constexpr Family kPeakBefore = {"rewrite_peak_before_bytes",
                                "Forecast peak of the fullest GPU with the original graph."};
constexpr Family kPeakAfter = {"rewrite_peak_after_bytes",
                               "Forecast peak of the fullest GPU with the returned graph."};
constexpr Family kHostMemory = {"rewrite_host_memory_bytes",
                                "Peak of the pinned host memory that swaps of a step use."};
constexpr Family kSwapBytes = {"rewrite_swap_bytes_per_step",
                               "Bytes that a step copies, both ways, of graphs that swap."};
constexpr Family kNeed = {"rewrite_need_ratio",
                          "Memory that the fullest GPU needs / its budget; for does_not_fit, the "
                          "smallest sufficient budget / its budget."};

constexpr Family kByOutcome[] = {kSlowdown,   kPeakBefore, kPeakAfter,
                                 kHostMemory, kSwapBytes,  kNeed};

constexpr char kNoMachine[] = "none";
// A run that fails because nothing fits has no report.
constexpr char kTooLarge[] = "does_not_fit";
constexpr const char* kOutcomeNames[] = {"rewritten", "nothing_to_do", "kept",
                                         "foreign",   "dry_run",       kTooLarge};
constexpr const char* kResults[] = {"rewritten", "cached", "unchanged", "failed_open",
                                    "failed_closed"};
// The exit codes of failures.
constexpr std::pair<ExitCode, const char*> kReasons[] = {
    {ExitCode::kUsage, "options"},    {ExitCode::kBadGraph, "graph"},
    {ExitCode::kFile, "file"},        {ExitCode::kServer, "server"},
    {ExitCode::kStopped, "timeout"},  {ExitCode::kDoesNotFit, "memory"},
    {ExitCode::kInternal, "internal"}};

std::string OutcomeName(v1::Outcome outcome) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::Outcome_Name(outcome), "OUTCOME_"));
}

std::string Label(absl::string_view name, absl::string_view value) {
  return absl::StrCat("{", name, "=\"", value, "\"}");
}

std::string Labels(absl::string_view strategy, absl::string_view outcome) {
  return absl::StrCat("{strategy=\"", strategy, "\",outcome=\"", outcome, "\"}");
}

// A label limited to these names is bounded, for any server's machine name.
std::vector<std::string> Machines() {
  std::vector<std::string> names = {kNoMachine, core::kCustomMachine.data()};
  const auto capabilities = Client(MakeLocalConnection()).GetCapabilities();
  if (!capabilities.ok()) return names;
  for (const v1::HardwareReport& preset : capabilities->hardware_presets()) {
    names.push_back(preset.hardware().preset());
  }
  return names;
}

bool IsPrintable(const std::string& text) { return absl::c_all_of(text, absl::ascii_isprint); }

// Whether the text file can be written from `state`.
bool IsState(const CountsJson& state) {
  if (!state.is_object()) return false;
  for (const auto& [name, family] : state.items()) {
    if (!absl::StartsWith(name, kPrefix) || !IsPrintable(name) || !family.is_object()) return false;
    for (const char* key : {"help", "type"}) {
      const auto text = family.find(key);
      if (text == family.end() || !text->is_string() || !IsPrintable(*text)) return false;
    }
    const auto series = family.find("series");
    if (series == family.end() || !series->is_object()) return false;
    for (const auto& [labels, value] : series->items()) {
      if (!IsPrintable(labels) || !value.is_number() || value.get<double>() < 0) return false;
    }
  }
  return true;
}

class Counts {
 public:
  // `state`: what State returned before, or an empty object.
  explicit Counts(CountsJson state) : state_(std::move(state)) { AddZeros(); }

  void Add(const Family& family, const std::string& labels, double value) {
    CountsJson& entry = state_[absl::StrCat(kPrefix, family.name)];
    entry["help"] = family.help;
    entry["type"] = absl::EndsWith(family.name, "_total") ? "counter" : "summary";
    CountsJson& sum = entry["series"][labels];
    sum = (sum.is_null() ? 0 : sum.get<double>()) + value;
  }

  void Observe(const Family& family, const std::string& labels, double value, double count = 1) {
    Add(family, "_sum" + labels, value);
    Add(family, "_count" + labels, count);
  }

  void AddMachine(const std::string& machine) {
    const std::vector<std::string> known = Machines();
    Add(kMachines,
        Label("machine", absl::c_linear_search(known, machine) ? machine : core::kCustomMachine),
        1);
  }

  std::string State() const { return state_.dump() + "\n"; }

  std::string Text() const {
    std::string text;
    for (const auto& [name, family] : state_.items()) {
      absl::StrAppend(&text, "# HELP ", name, " ", std::string(family["help"]), "\n# TYPE ", name,
                      " ", std::string(family["type"]), "\n");
      for (const auto& [labels, value] : family["series"].items()) {
        absl::StrAppendFormat(&text, "%s%s %.17g\n", name, labels, value.get<double>());
      }
    }
    return text;
  }

 private:
  // Series exist from the first run: a counter that first appears at 1 shows no increase.
  void AddZeros() {
    for (const char* result : kResults) Add(kRuns, Label("result", result), 0);
    for (const auto& [code, reason] : kReasons) Add(kFailures, Label("reason", reason), 0);
    for (const char* outcome : kOutcomeNames) Add(kOutcomes, Label("outcome", outcome), 0);
    Observe(kDuration, "", 0, 0);
    for (const v1::Strategy value : core::AllStrategies()) {
      // They have separate commands.
      if (value == v1::STRATEGY_STRIP || value == v1::STRATEGY_APPLY) continue;
      const std::string strategy = core::StrategyName(value);
      for (const Family& family : kByStrategy) Add(family, Label("strategy", strategy), 0);
      for (const Family& family : kByOutcome) {
        for (const char* outcome : kOutcomeNames) Observe(family, Labels(strategy, outcome), 0, 0);
      }
    }
    for (const std::string& machine : Machines()) Add(kMachines, Label("machine", machine), 0);
  }

  CountsJson state_;
};

void ObserveFigures(const v1::RewriteReport& report, const std::string& strategy, Counts* counts) {
  const core::RewriteFigures figures = core::FiguresOf(report);
  const std::string outcome = OutcomeName(report.outcome());
  const auto observe = [&](const Family& family, double value) {
    counts->Observe(family, Labels(strategy, outcome), value);
  };
  const auto bytes = [](int64_t value) { return static_cast<double>(value); };
  // Of a graph that was rewritten before, the step without swaps is unknown.
  const bool is_new = outcome != "kept" && outcome != "foreign";
  if (is_new && figures.slowdown().has_value()) observe(kSlowdown, *figures.slowdown());
  if (const core::GpuFigures* const gpu = figures.fullest(); gpu != nullptr) {
    observe(kPeakBefore, bytes(gpu->peak_before_bytes));
    if (gpu->peak_after_bytes.has_value()) observe(kPeakAfter, bytes(*gpu->peak_after_bytes));
    if (gpu->used_bytes().has_value() && gpu->budget_bytes.value_or(0) > 0) {
      observe(kNeed, bytes(*gpu->used_bytes()) / bytes(*gpu->budget_bytes));
    }
  }
  if (is_new && figures.swapped_tensors > 0) {
    if (figures.host_peak_bytes.has_value()) observe(kHostMemory, bytes(*figures.host_peak_bytes));
    observe(kSwapBytes, bytes(figures.swap_out_bytes) + bytes(figures.swap_in_bytes));
  }
  counts->AddMachine(figures.machine.empty() ? kNoMachine : figures.machine);
}

void AddRewrite(const v1::RewriteReport& report, const std::string& strategy, Counts* counts) {
  counts->Add(kOutcomes, Label("outcome", OutcomeName(report.outcome())), 1);
  if (report.outcome() != v1::OUTCOME_REWRITTEN) return;
  const auto add = [&](const Family& family, int64_t value) {
    counts->Add(family, Label("strategy", strategy), static_cast<double>(value));
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

// Reads a file that this module writes, or nothing if it does not exist. BAD_OPTION if it begins
// unlike `begin`: then it is another program's.
absl::StatusOr<std::string> ReadOwn(const Folder& folder, const std::string& name,
                                    const char* begin) {
  absl::StatusOr<std::string> bytes = ReadWholeFile(folder, name, kMaxMetricsBytes);
  if (absl::IsNotFound(bytes.status())) return "";  // The first run.
  if (absl::IsOutOfRange(bytes.status()) ||
      (bytes.ok() && !bytes->empty() && !absl::StartsWith(*bytes, begin))) {
    return core::InvalidError(v1::ERROR_REASON_BAD_OPTION,
                              absl::StrCat(core::Quoted(folder.PathOf(name)),
                                           " is not a file of spillway run; give another name, or "
                                           "remove it"),
                              {{"flag", "--metrics-textfile"}});
  }
  return bytes;
}

}  // namespace

HookMetrics AddToMetrics(absl::string_view old, const HookRun& run) {
  HookMetrics metrics;
  CountsJson state = CountsJson::object();
  if (!old.empty()) {
    state = CountsJson::parse(old.begin(), old.end(), nullptr, /*allow_exceptions=*/false);
    metrics.was_damaged = !IsState(state);
    if (metrics.was_damaged) state = CountsJson::object();
  }
  Counts counts(std::move(state));
  counts.Add(kRuns, Label("result", kResults[static_cast<int>(run.result)]), 1);
  counts.Observe(kDuration, "", absl::ToDoubleSeconds(run.duration));
  const std::string strategy = core::StrategyName(
      run.report.strategy() != v1::STRATEGY_UNSPECIFIED ? run.report.strategy() : run.strategy);
  if (run.failure != ExitCode::kDone) {
    const auto* found =
        absl::c_find_if(kReasons, [&](const auto& reason) { return reason.first == run.failure; });
    const bool is_known = found != std::end(kReasons);
    counts.Add(kFailures, Label("reason", is_known ? found->second : "internal"), 1);
  }
  if (run.failure == ExitCode::kDoesNotFit) {
    counts.Add(kOutcomes, Label("outcome", kTooLarge), 1);
    if (run.need_ratio.has_value()) {
      counts.Observe(kNeed, Labels(strategy, kTooLarge), *run.need_ratio);
    }
  }
  if (run.report.outcome() != v1::OUTCOME_UNSPECIFIED) {
    // A cached rewrite slows the job just as much.
    ObserveFigures(run.report, strategy, &counts);
    if (run.result != HookRun::Result::kCached) AddRewrite(run.report, strategy, &counts);
  }
  metrics.state = counts.State();
  metrics.text = counts.Text();
  return metrics;
}

absl::StatusOr<std::string> AddToMetricsFile(const std::string& path, const HookRun& run) {
  const std::filesystem::path file(path);
  const std::string name = file.filename();
  const std::string state_name = name + ".state";
  const absl::StatusOr<Folder> folder =
      OpenFolder(file.has_parent_path() ? file.parent_path().string() : ".");
  if (!folder.ok()) return folder.status();
  // Not the files themselves, since they are replaced. Opened for reading, which other users may
  // do.
  const std::string lock_name = name + ".lock";
  const UniqueFd lock(openat(folder->fd.get(), lock_name.c_str(),
                             O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kMetricsFileMode));
  if (lock.get() < 0) {
    return FileError(errno, "write", folder->PathOf(lock_name), "give a folder to write to");
  }
  if (absl::Status status = LockFile(lock, folder->PathOf(lock_name)); !status.ok()) return status;
  const absl::StatusOr<std::string> text = ReadOwn(*folder, name, kTextBegin);
  if (!text.ok()) return text.status();
  const absl::StatusOr<std::string> state = ReadOwn(*folder, state_name, kStateBegin);
  if (!state.ok()) return state.status();
  const HookMetrics metrics = AddToMetrics(*state, run);
  for (const auto& [file_name, bytes] :
       {std::make_pair(state_name, metrics.state), std::make_pair(name, metrics.text)}) {
    const absl::Status status = WriteWholeFile(*folder, file_name, bytes, kMetricsFileMode);
    if (!status.ok()) return status;
  }
  if (!metrics.was_damaged && (text->empty() || !state->empty())) return "";
  return absl::StrCat(core::Quoted(folder->PathOf(state_name)), " was ",
                      metrics.was_damaged ? "damaged" : "missing",
                      ": the counts start again from zero");
}

}  // namespace spillway::cli
