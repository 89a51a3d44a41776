// How good the strategies' plans are, not how fast they are made: on the graphs of tests/graphs, on
// several machines, with a share of the memory that a step takes unswapped (all of it the plan's:
// allocator_reserve 0). Prints for each case the speed of a step as a ratio: its time with memory
// without end, by its time within the budget, both launched ahead; 1 is full speed. Beside it the
// bound: the ratio that no plan of swaps can beat (rewrite_core/simulate/lower_bounds.h), and what
// share of it the plan reaches. Then a summary of each strategy.
//
//   build/tests/benchmarks/plan_quality [--graphs NAME,...] [--presets NAME,...]
//       [--shares PERCENT,...] [--strategies NAME,...] [--effort low|medium|high] [--reserve R]
//       [--no-kernel-memory] [--table FILE] [--against FILE] [--quick]
//
// Progress goes to stderr. --table writes the ratios, tab-separated, as in plan_quality.tsv.
// --against compares with such a file: exit code 1 if a plan is lost, or is slower by more than 2
// %.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/names.h"
#include "rewrite_core/inspect/simulate_graph.h"
#include "rewrite_core/rewriter.h"
#include "tests/benchmarks/floor.h"
#include "tests/testing/files.h"
#include "tests/testing/graph_meta.h"

namespace spillway::core {
namespace {

// The target of budget: plans below this share of the bound are counted.
constexpr double kAim = 0.85;
// Step times that differ by less are taken for equal.
constexpr double kTie = 1.001;
// Memory that nothing lacks, in bytes.
constexpr int64_t kAmple = int64_t{1} << 50;
// Of so few buffers of unknown size a forecast says enough; each counts as 0 bytes.
constexpr int64_t kFewUnknown = 10;
constexpr int kFloorRuns = 9;

struct Flags {
  std::vector<std::string> graphs;
  std::vector<std::string> presets = {"p100_pcie", "v100_nvlink2", "a100_40gb_pcie4"};
  std::vector<double> shares = {75, 50, 35};
  std::vector<std::string> strategies = {"scope", "level", "budget"};
  std::string effort = "medium";
  double reserve = 0;
  bool kernel_memory = true;
  std::string table, against;
  bool quick = false;
};

// The cases of --quick, with `budget` alone: a tenth of all cases. The graphs are those whose plans
// differ most between searches: residual and plain networks, attention, few large buffers, several
// GPUs.
constexpr const char* kQuickGraphs[] = {"bert_tiny",     "horovod_like",          "resnet50_2tower",
                                        "resnet50_free", "resnet50_tf1",          "tfcnn_googlenet",
                                        "unet3d",        "tfcnn_resnet50_nhwc_b2"};
constexpr const char* kQuickPresets[] = {"p100_pcie", "v100_nvlink2"};
// --against fails if a plan has less than this part of its speed in the file.
constexpr double kAsFast = 0.98;

// One strategy's answer to one case.
struct Planned {
  bool has_plan = false;
  bool may_run_out = false;   // The report warns of that.
  double ratio = 0;           // Full speed's time by the step's.
  double bound = 0;           // Of the plan's own order; 0: that of the graph's.
  int64_t swapped_bytes = 0;  // Out and in.
  double floors = 0;          // Time of the rewrite, refusals included.
  std::string refusal;        // Without a plan.
};

struct Case {
  std::string graph, preset;
  double share = 0;  // Percent of the unswapped peak.
  int64_t memory_bytes = 0;
  double bound = 0;                        // 0: no plan fits, as some node alone takes more.
  std::map<std::string, Planned> planned;  // By strategy.
};

struct Results {
  std::vector<Case> cases;
  // Unknown facts about the steps of a graph, in words: of graphs that have cases all the same, and
  // of graphs without cases.
  std::map<std::string, std::string> unknown, left_out;
};

[[noreturn]] void Fail(absl::string_view why) {
  std::fprintf(stderr, "plan_quality: %s\n", std::string(why).c_str());
  std::exit(1);
}

// `reserve`: the GPU's further memory, as a part of its memory.
v1::Step StepOn(const v1::Step& fed, const std::string& preset, int64_t memory_bytes,
                double reserve = 0) {
  v1::Step step = fed;
  step.mutable_hardware()->set_preset(preset);
  step.mutable_hardware()->set_gpu_memory_bytes(
      reserve > 0
          ? static_cast<int64_t>(std::ceil(static_cast<double>(memory_bytes) / (1 - reserve)))
          : memory_bytes);
  step.mutable_hardware()->set_allocator_reserve(reserve);
  return step;
}

v1::Forecast Simulated(const std::string& bytes, const v1::Step& step) {
  v1::SimulateOptions options;
  *options.mutable_step() = step;
  auto report = SimulateGraph(bytes, options, DefaultLimits(), StopToken());
  if (!report.ok()) Fail(report.status().message());
  return report->forecast();
}

v1::RewriteOptions OptionsOf(const std::string& strategy, const std::string& effort) {
  v1::RewriteOptions options;
  options.set_decision_detail(v1::DECISION_DETAIL_NONE);
  if (strategy == "scope") {
    options.mutable_scope();
  } else if (strategy == "level") {
    options.mutable_level();
  } else if (strategy == "budget" || strategy == "budget+cheap" || strategy == "budget+all") {
    options.mutable_budget()->set_recompute(strategy == "budget"         ? v1::RECOMPUTE_OFF
                                            : strategy == "budget+cheap" ? v1::RECOMPUTE_CHEAP
                                                                         : v1::RECOMPUTE_ALL);
    v1::PlanningEffort value = v1::PLANNING_EFFORT_UNSPECIFIED;
    const std::string name = absl::StrCat("PLANNING_EFFORT_", absl::AsciiStrToUpper(effort));
    if (!v1::PlanningEffort_Parse(name, &value)) Fail(absl::StrCat("no effort is named ", effort));
    options.mutable_budget()->set_planning_effort(value);
  } else {
    Fail(absl::StrCat("no strategy is named ", strategy));
  }
  return options;
}

Planned Plan(const std::string& bytes, v1::RewriteOptions options, const v1::Step& step,
             int64_t full_speed_ns, double floor_seconds) {
  *options.mutable_step() = step;
  const auto begin = benchmarks::Clock::now();
  const auto response = Rewrite(bytes, options, DefaultLimits(), StopToken());
  Planned planned;
  planned.floors = benchmarks::SecondsSince(begin) / floor_seconds;
  if (!response.ok()) {
    planned.refusal = v1::ErrorReason_Name(GetErrorReason(response.status()));
    planned.refusal.erase(0, std::string("ERROR_REASON_").size());
    if (absl::IsInternal(response.status())) std::cerr << response.status().message() << "\n";
    return planned;
  }
  const v1::RewriteReport& report = response->report();
  const v1::Forecast& forecast =
      report.has_forecast_after() ? report.forecast_after() : report.forecast_before();
  planned.has_plan = forecast.fit() != v1::FIT_DOES_NOT_FIT;
  if (!planned.has_plan) {
    planned.refusal = "DOES_NOT_FIT";  // `scope` does not look.
    return planned;
  }
  for (const v1::Warning& warning : report.warnings()) {
    planned.may_run_out |= warning.code() == v1::WARNING_CODE_MAY_RUN_OUT;
  }
  planned.ratio = static_cast<double>(full_speed_ns) / static_cast<double>(forecast.step_time_ns());
  int64_t bound_ns = 0;
  for (const v1::BudgetDevice& device : report.budget().devices()) {
    bound_ns = std::max(bound_ns, device.step_time_bound_ns());
  }
  if (bound_ns > 0) {
    planned.bound =
        static_cast<double>(full_speed_ns) / static_cast<double>(std::max(bound_ns, full_speed_ns));
  }
  for (const v1::DeviceReport& device : report.devices()) {
    planned.swapped_bytes += device.swap_out_bytes() + device.swap_in_bytes();
  }
  return planned;
}

// Of all GPUs the one that bounds the step most. 0: one of them has too little for some node.
double GraphBound(const v1::Forecast& forecast, int64_t memory_bytes, int64_t full_speed_ns) {
  int64_t step_time_ns = full_speed_ns;
  for (const v1::DeviceForecast& device : forecast.devices()) {
    if (device.bounds().memory_bytes() > memory_bytes) return 0;
    step_time_ns = std::max(step_time_ns, device.bounds().step_time_ns());
  }
  return static_cast<double>(full_speed_ns) / static_cast<double>(step_time_ns);
}

double FloorOf(const std::string& bytes) {
  std::vector<double> seconds;
  for (int i = 0; i < kFloorRuns; ++i) seconds.push_back(benchmarks::FloorSeconds(bytes));
  std::nth_element(seconds.begin(), seconds.begin() + kFloorRuns / 2, seconds.end());
  return seconds[kFloorRuns / 2];
}

std::string RatioText(double ratio) { return absl::StrFormat("%.3f", ratio); }

// The bound on plans, as far as swaps go: in the plan's own order, if that is known.
double BoundOf(const Planned& planned, double bound) {
  return planned.bound > 0 ? planned.bound : bound;
}

// "0.941, 1.20 GiB swapped, 0.98 of the bound", or the refusal.
std::string PlannedText(const Planned& planned, double of_the_graph) {
  const double bound = BoundOf(planned, of_the_graph);
  if (!planned.has_plan) return absl::StrCat("no plan (", planned.refusal, ")");
  std::string text =
      absl::StrCat(RatioText(planned.ratio), ", ", BytesText(planned.swapped_bytes), " swapped");
  if (bound > 0) absl::StrAppendFormat(&text, ", %.2f of the bound", planned.ratio / bound);
  if (planned.may_run_out) absl::StrAppend(&text, ", may run out");
  return text;
}

void RunGraph(const std::string& graph, const Flags& flags, Results* results) {
  const std::string bytes = testing::ReadTestGraph(graph + "/graph.pb");
  v1::Step fed = testing::RecordedStep(graph, testing::RecordedBatch::kPlanned);
  if (!flags.kernel_memory) fed.set_kernel_memory(v1::KERNEL_MEMORY_OFF);
  const double floor_seconds = FloorOf(bytes);
  for (const std::string& preset : flags.presets) {
    const v1::Forecast free = Simulated(bytes, StepOn(fed, preset, kAmple));
    for (const v1::FitUnknown& unknown : free.fit_unknown()) {
      const bool is_little =
          unknown.cause() == v1::FIT_UNKNOWN_CAUSE_SIZES && unknown.count() <= kFewUnknown;
      const std::string why = unknown.message().substr(0, unknown.message().find(';'));
      (is_little ? results->unknown : results->left_out)[graph] = why;
    }
    if (results->left_out.count(graph) > 0) {
      results->unknown.erase(graph);
      return;
    }
    if (free.fit() == v1::FIT_DOES_NOT_FIT) Fail(absl::StrCat(graph, " does not fit anywhere"));
    int64_t peak_bytes = 0;
    for (const v1::DeviceForecast& device : free.devices()) {
      peak_bytes = std::max(peak_bytes, device.peak_bytes());
    }
    const int64_t full_speed_ns = free.step_time_ns();
    for (double share : flags.shares) {
      Case result;
      result.graph = graph;
      result.preset = preset;
      result.share = share;
      result.memory_bytes = static_cast<int64_t>(share / 100 * static_cast<double>(peak_bytes));
      result.bound = GraphBound(Simulated(bytes, StepOn(fed, preset, result.memory_bytes)),
                                result.memory_bytes, full_speed_ns);
      const v1::Step step = StepOn(fed, preset, result.memory_bytes, flags.reserve);
      for (const std::string& strategy : flags.strategies) {
        const Planned& planned = result.planned[strategy] =
            Plan(bytes, OptionsOf(strategy, flags.effort), step, full_speed_ns, floor_seconds);
        std::fprintf(stderr, "%s, %s, %.0f %%, %s: %s (%.1f s)\n", graph.c_str(), preset.c_str(),
                     share, strategy.c_str(), PlannedText(planned, result.bound).c_str(),
                     planned.floors * floor_seconds);
      }
      results->cases.push_back(std::move(result));
    }
  }
}

// The summary of one strategy's plans.
struct Summary {
  int cases = 0;  // Whose bound does not say that there is no plan.
  int plans = 0;
  double sum = 0, least = 0;  // Of shares of the bound.
  std::string least_case;
  int below_aim = 0;
  int may_run_out = 0;
  // Cases where another strategy's plan is faster, or it alone has one.
  std::map<std::string, int> behind;
  double swapped_bytes = 0;
  std::vector<double> floors;
};

bool IsBehind(const Planned& planned, const Planned& other) {
  return other.has_plan && (!planned.has_plan || other.ratio > planned.ratio * kTie);
}

Summary Summarize(const std::vector<Case>& cases, const std::string& strategy) {
  Summary summary;
  for (const Case& one : cases) {
    const Planned& planned = one.planned.at(strategy);
    summary.floors.push_back(planned.floors);
    for (const auto& [name, other] : one.planned) {
      if (name != strategy) summary.behind[name] += IsBehind(planned, other);
    }
    if (one.bound == 0) continue;
    ++summary.cases;
    if (!planned.has_plan) continue;
    // Above the bound may be a plan whose order of ops is another one.
    const double share = std::min(1.0, planned.ratio / BoundOf(planned, one.bound));
    if (summary.plans == 0 || share < summary.least) {
      summary.least = share;
      summary.least_case = absl::StrFormat("%s, %s, %.0f %%", one.graph, one.preset, one.share);
    }
    ++summary.plans;
    summary.may_run_out += planned.may_run_out;
    summary.sum += share;
    summary.below_aim += share < kAim;
    summary.swapped_bytes += static_cast<double>(planned.swapped_bytes);
  }
  std::sort(summary.floors.begin(), summary.floors.end());
  return summary;
}

// Cells of a table, row by row, the first one its head.
using Table = std::vector<std::vector<std::string>>;

Table SummaryTable(const Results& results, const Flags& flags) {
  Table table = {{"strategy", "plans", "share of the bound: mean", "least",
                  absl::StrFormat("below %.2f", kAim), "behind", "rewrite: median", "most"}};
  if (flags.reserve > 0) table[0].push_back("may run out");
  for (const std::string& strategy : flags.strategies) {
    const Summary summary = Summarize(results.cases, strategy);
    std::vector<std::string> behind;
    for (const std::string& other : flags.strategies) {
      if (other == strategy) continue;
      behind.push_back(absl::StrCat(other, " ", summary.behind.at(other)));
    }
    const auto floors = [&summary](size_t i) {
      return absl::StrFormat("%.1f floors", summary.floors[i]);
    };
    table.push_back({strategy, absl::StrCat(summary.plans, " of ", summary.cases),
                     summary.plans == 0 ? "-" : RatioText(summary.sum / summary.plans),
                     summary.plans == 0
                         ? "-"
                         : absl::StrCat(RatioText(summary.least), " (", summary.least_case, ")"),
                     absl::StrCat(summary.below_aim), absl::StrJoin(behind, ", "),
                     floors(summary.floors.size() / 2), floors(summary.floors.size() - 1)});
    if (flags.reserve > 0) table.back().push_back(absl::StrCat(summary.may_run_out));
  }
  return table;
}

// One row for each graph and share: by preset the ratio of each
// strategy, and the bound.
Table RatioTable(const Results& results, const Flags& flags) {
  // `scope` gets no memory limit, and seldom keeps to one: in the summary alone.
  std::vector<std::string> strategies;
  for (const std::string& strategy : flags.strategies) {
    if (strategy != "scope") strategies.push_back(strategy);
  }
  Table table = {{"graph", "share"}};
  for (const std::string& preset : flags.presets) {
    for (const std::string& strategy : strategies) {
      table[0].push_back(absl::StrCat(preset, " ", strategy));
    }
    table[0].push_back(absl::StrCat(preset, " bound"));
  }
  std::map<std::tuple<std::string, double, std::string>, const Case*> by_key;
  std::vector<std::pair<std::string, double>> rows;
  for (const Case& one : results.cases) {
    by_key[{one.graph, one.share, one.preset}] = &one;
    if (one.preset == flags.presets[0]) rows.push_back({one.graph, one.share});
  }
  for (const auto& [graph, share] : rows) {
    std::vector<std::string> row = {graph, absl::StrFormat("%.0f %%", share)};
    for (const std::string& preset : flags.presets) {
      const Case& one = *by_key.at({graph, share, preset});
      for (const std::string& strategy : strategies) {
        const Planned& planned = one.planned.at(strategy);
        row.push_back(planned.has_plan ? RatioText(planned.ratio) : "no plan");
      }
      row.push_back(one.bound > 0 ? RatioText(one.bound) : "none fits");
    }
    table.push_back(std::move(row));
  }
  return table;
}

std::string PlainOf(const Table& table) {
  std::vector<size_t> widths(table[0].size());
  for (const auto& row : table) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : table) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      absl::StrAppend(&line, row[i], std::string(widths[i] - row[i].size() + 2, ' '));
    }
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return text;
}

std::string Text(const Results& results, const Flags& flags) {
  Table table = {{"graph", "preset", "share", "memory", "bound"}};
  for (const std::string& strategy : flags.strategies) table[0].push_back(strategy);
  for (const Case& one : results.cases) {
    std::vector<std::string> row = {one.graph, one.preset, absl::StrFormat("%.0f %%", one.share),
                                    BytesText(one.memory_bytes),
                                    one.bound > 0 ? RatioText(one.bound) : "none fits"};
    for (const std::string& strategy : flags.strategies) {
      row.push_back(PlannedText(one.planned.at(strategy), one.bound));
    }
    table.push_back(std::move(row));
  }
  std::string text = absl::StrCat(PlainOf(table), "\n", PlainOf(SummaryTable(results, flags)));
  for (const auto& [graph, why] : results.unknown) {
    absl::StrAppend(&text, graph, ": ", why, "\n");
  }
  for (const auto& [graph, why] : results.left_out) {
    absl::StrAppend(&text, graph, " is left out: ", why, "\n");
  }
  return text;
}

void WriteTable(const std::string& path, const Table& table) {
  std::ofstream file(path, std::ios::binary);
  for (const auto& row : table) file << absl::StrJoin(row, "\t") << "\n";
  if (!file.flush()) Fail(absl::StrCat("cannot write ", path));
}

// By column of a table, its header included: the cells of a row by the row's graph and share.
using RatioCells = std::map<std::tuple<std::string, std::string, std::string>, std::string>;

RatioCells CellsOf(const Table& table) {
  RatioCells cells;
  for (const auto& row : table) {
    for (size_t i = 2; i < row.size() && i < table[0].size(); ++i) {
      cells[{row[0], row[1], table[0][i]}] = row[i];
    }
  }
  return cells;
}

// Prints plans worse than in the file, and returns whether none is. A case that the file does not
// have fails, too, so that no misspelt name passes for a good plan.
bool IsAsGoodAs(const std::string& path, const Table& table) {
  std::ifstream file(path, std::ios::binary);
  Table before;
  for (std::string line; std::getline(file, line);) before.push_back(absl::StrSplit(line, '\t'));
  if (before.empty()) Fail(absl::StrCat("cannot read ", path));
  const RatioCells old = CellsOf(before);
  int worse = 0, compared = 0;
  for (const auto& [key, cell] : CellsOf(table)) {
    const auto& [graph, share, column] = key;
    if (graph == "graph" || absl::EndsWith(column, "bound")) continue;
    const auto was = old.find(key);
    double old_ratio = 0, ratio = 0;
    const bool had_plan = was != old.end() && absl::SimpleAtod(was->second, &old_ratio);
    const bool has_plan = absl::SimpleAtod(cell, &ratio);
    ++compared;
    if (was != old.end() && (!had_plan || (has_plan && ratio >= kAsFast * old_ratio))) continue;
    ++worse;
    std::printf("worse: %s, %s, %s: %s, in %s %s\n", graph.c_str(), share.c_str(), column.c_str(),
                cell.c_str(), path.c_str(), was == old.end() ? "missing" : was->second.c_str());
  }
  std::printf("%d of %d plans are worse than in %s\n", worse, compared, path.c_str());
  return worse == 0;
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("How good the strategies' plans are, beside what no plan can beat.");
  const auto list = [&app](const char* name, auto& values, const char* what) {
    app.add_option(name, values, what)->delimiter(',')->capture_default_str();
  };
  list("--graphs", flags.graphs, "Of tests/graphs; default: all");
  list("--presets", flags.presets, "Machines");
  list("--shares", flags.shares, "Memory, in percent of the unswapped peak");
  list("--strategies", flags.strategies,
       "Of scope, level, budget, and with recomputation budget+cheap, budget+all");
  app.add_option("--effort", flags.effort, "Of budget: low, medium, high")->capture_default_str();
  app.add_option("--reserve", flags.reserve,
                 "GPUs have that part of their memory besides: plans of budget then have to fit in "
                 "variations of the step, too")
      ->check(CLI::Range(0.0, 0.9))
      ->capture_default_str();
  app.add_flag("!--no-kernel-memory", flags.kernel_memory,
               "Neither what kernels take beside their outputs nor Grappler's layouts count");
  app.add_option("--table", flags.table, "A file that gets the ratios, tab-separated");
  app.add_option("--against", flags.against,
                 "A file that --table wrote: fail if a plan is lost, or slower by more than 2 %");
  app.add_flag("--quick", flags.quick, "Eight graphs on two machines, with budget");
  CLI11_PARSE(app, argc, argv);
  if (flags.quick) {
    flags.graphs.assign(std::begin(kQuickGraphs), std::end(kQuickGraphs));
    flags.presets.assign(std::begin(kQuickPresets), std::end(kQuickPresets));
    flags.strategies = {"budget"};
  }
  if (flags.graphs.empty()) flags.graphs = testing::TestGraphNames();
  // Before anything takes minutes.
  for (const std::string& strategy : flags.strategies) OptionsOf(strategy, flags.effort);

  Results results;
  for (const std::string& graph : flags.graphs) RunGraph(graph, flags, &results);
  if (results.cases.empty()) Fail("nothing was planned");
  std::fputs(Text(results, flags).c_str(), stdout);
  const Table ratios = RatioTable(results, flags);
  if (!flags.table.empty()) WriteTable(flags.table, ratios);
  return flags.against.empty() || IsAsGoodAs(flags.against, ratios) ? 0 : 1;
}

}  // namespace
}  // namespace spillway::core

int main(int argc, char** argv) { return spillway::core::Main(argc, argv); }
