#include "client_lib/text/summary.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client_lib/text/fit_text.h"
#include "client_lib/text/forecast_parts.h"
#include "client_lib/text/forecast_text.h"
#include "client_lib/text/level_text.h"
#include "client_lib/text/memory_table.h"
#include "client_lib/text/text_table.h"
#include "client_lib/text/value_name.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/names.h"
#include "rewrite_core/base/rewrite_figures.h"

namespace spillway::text {
namespace {

std::string OutcomeText(v1::Outcome outcome) {
  switch (outcome) {
    case v1::OUTCOME_REWRITTEN:
      return "rewritten";
    case v1::OUTCOME_NOTHING_TO_DO:
      return "nothing to do, the graph is unchanged";
    case v1::OUTCOME_KEPT:
      return "kept, the graph was already rewritten by Spillway";
    case v1::OUTCOME_FOREIGN:
      return "kept, the graph was already rewritten by another program";
    case v1::OUTCOME_STRIPPED:
      return "stripped, the graph is as it was before Spillway";
    case v1::OUTCOME_DRY_RUN:
      return "dry run, the graph is unchanged";
    default:
      return "done";
  }
}

// The gain of more recomputation. Empty if nothing was found.
std::string RecomputeAdvice(const v1::RewriteReport& report, Style style) {
  if (!report.budget().has_more_recompute()) return "";
  const v1::MoreRecompute& more = report.budget().more_recompute();
  const std::string text = style.WithOptions(absl::StrCat(
      "with budget.recompute = ",
      absl::AsciiStrToUpper(NameOrNumber(core::RecomputeName(more.recompute()), more.recompute())),
      " a step takes at most ", core::DurationText(absl::Nanoseconds(more.step_time_ns()))));
  const double now_ns = static_cast<double>(core::FiguresOf(report).step_after_ns.value_or(0));
  if (more.step_time_ns() <= 0 || now_ns <= 0) return text;
  return absl::StrCat(text, absl::StrFormat(": at least %.2f times as fast",
                                            now_ns / static_cast<double>(more.step_time_ns())));
}

// The outcome, in a line and a sentence, with `advice` between them.
std::string HeadingText(const v1::RewriteReport& report, absl::string_view name,
                        const std::string& advice, Style style) {
  std::string heading =
      absl::StrCat("spillway: ", name, name.empty() ? "" : ": ", OutcomeText(report.outcome()));
  if (report.strategy() != v1::STRATEGY_UNSPECIFIED && report.outcome() != v1::OUTCOME_STRIPPED) {
    absl::StrAppend(&heading, " (strategy ",
                    NameOrNumber(core::StrategyName(report.strategy()), report.strategy()), ")");
  }
  std::string text = absl::StrCat(style.Heading(heading), "\n", MayRunOutLine(report, style));
  if (!advice.empty()) absl::StrAppend(&text, FormatFacts({{"advice", advice}}, style));
  if (!report.summary().empty()) {
    absl::StrAppend(&text, Paragraph(style.WithOptions(report.summary()), 2, style));
  }
  return text;
}

// The memory of a step before and after, and the limit. Empty if no step was simulated.
std::string MemoryTable(const v1::RewriteReport& report, Style style) {
  const core::RewriteFigures figures = core::FiguresOf(report);
  if (figures.gpus.empty()) return "";
  const bool both = report.has_forecast_after();
  std::vector<std::string> heading = {"peak memory", both ? "before" : "as it is"};
  if (both) heading.push_back("after");
  heading.push_back("limit");
  const auto cells = [both](std::optional<int64_t> before, std::optional<int64_t> after,
                            std::optional<int64_t> limit) {
    std::vector<std::optional<int64_t>> bytes = {before};
    if (both) bytes.push_back(after);
    bytes.push_back(limit);
    return bytes;
  };
  std::vector<MemoryRow> gpus;
  for (const core::GpuFigures& gpu : figures.gpus) {
    gpus.push_back(
        {gpu.device, cells(gpu.peak_before_bytes, gpu.peak_after_bytes, gpu.budget_bytes)});
  }
  std::vector<std::optional<int64_t>> host;
  if (figures.host_peak_bytes.has_value()) {
    host = cells(report.forecast_before().host_peak_bytes(), figures.host_peak_bytes,
                 report.hardware().hardware().host_memory_bytes());
  }
  return FormatMemoryTable(heading, gpus, host, style);
}

// The time of a step, its share of full speed, and every plan's lower bound. Empty if unknown.
std::string StepText(const v1::RewriteReport& report) {
  const core::RewriteFigures figures = core::FiguresOf(report);
  if (!figures.step_after_ns.has_value()) return "";
  std::vector<std::string> parts = {
      StepSpeedText(*figures.step_after_ns, figures.step_before_ns.value_or(0))};
  if (figures.swapped_tensors > 0) {
    parts.push_back(absl::StrCat(
        "copies ", KnownBytes(figures.swap_out_bytes, figures.unknown_size_tensors), " out"));
  }
  if (figures.recomputed_nodes > 0) {
    parts.push_back(absl::StrCat("recomputes ", FormatCount(figures.recomputed_nodes, "node")));
  }
  const bool joint = report.budget().has_joint_bound_ns();
  int64_t bound_ns = report.budget().joint_bound_ns();
  for (const v1::BudgetDevice& device : report.budget().devices()) {
    if (!joint) bound_ns = std::max(bound_ns, device.step_time_bound_ns());
  }
  if (bound_ns > 0) {
    parts.push_back(absl::StrCat("lower bound for ", joint ? "this op order" : "swaps alone", ": ",
                                 core::DurationText(absl::Nanoseconds(bound_ns))));
  }
  return absl::StrJoin(parts, "; ");
}

std::string DeviceTable(const v1::RewriteReport& report, Style style) {
  std::vector<std::vector<std::string>> rows = {
      {"device", "tensors", "swap-outs", "swap-ins", "out per step", "in per step"}};
  for (const v1::DeviceReport& device : report.devices()) {
    const int64_t unknown = device.unknown_size_count();
    rows.push_back({device.device().empty() ? "(none given)" : device.device(),
                    absl::StrCat(device.swapped_tensor_count()),
                    absl::StrCat(device.swap_out_count()), absl::StrCat(device.swap_in_count()),
                    KnownBytes(device.swap_out_bytes(), unknown),
                    KnownBytes(device.swap_in_bytes(), unknown)});
  }
  return FormatTable(rows, style);
}

std::string StageText(const v1::RewriteReport& report) {
  int64_t total_ns = 0;
  for (const v1::StageTiming& stage : report.stages()) total_ns += stage.duration_ns();
  return absl::StrCat(
      core::DurationText(absl::Nanoseconds(total_ns)), " (",
      absl::StrJoin(report.stages(), ", ",
                    [](std::string* out, const v1::StageTiming& stage) {
                      absl::StrAppend(
                          out, NameOrNumber(core::StageName(stage.stage()), stage.stage()), " ",
                          core::DurationText(absl::Nanoseconds(stage.duration_ns())));
                    }),
      ")");
}

std::string FirstCountsText(const google::protobuf::RepeatedPtrField<v1::NameCount>& counts) {
  constexpr int kShown = 5;
  std::vector<std::string> texts;
  for (int i = 0; i < std::min(kShown, counts.size()); ++i) {
    texts.push_back(absl::StrCat(counts[i].count(), " ", counts[i].name()));
  }
  if (counts.size() > kShown) texts.push_back("...");
  return absl::StrJoin(texts, ", ");
}

// The criteria that the strategy `scope` used.
void AddScopeFacts(const v1::ScopeReport& scope, std::vector<std::vector<std::string>>* facts) {
  facts->push_back(
      {"scope",
       absl::StrCat("n_tensors: ", scope.n_tensors() < 0 ? "all" : absl::StrCat(scope.n_tensors()),
                    ", lb: ", scope.lb(), ", ub: ", scope.ub(),
                    ", levels: ", scope.level_count())});
  if (scope.starting_ops_size() > 0) {
    const int others = scope.starting_ops_size() - 1;
    facts->push_back(
        {"start", absl::StrCat(scope.starting_ops(0),
                               others > 0 ? absl::StrCat(" and ", others, " more") : "",
                               scope.starting_ops_found() ? " (found)" : "")});
  }
  if (!scope.backward_part_found()) return;
  facts->push_back({"backward", absl::StrCat(FormatCount(scope.backward_op_count(), "op"),
                                             ", found from the graph's structure")});
  facts->push_back(
      {"", absl::StrCat("weight updates: ", scope.weight_updates().empty()
                                                ? "none"
                                                : FirstCountsText(scope.weight_updates()))});
  facts->push_back(
      {"", absl::StrCat("ops by name scope: ", FirstCountsText(scope.backward_scopes()))});
}

std::string DebugTable(const v1::ScopeReport& scope, Style style) {
  std::vector<std::vector<std::string>> rows = {{"op", "type", "order"}};
  for (const v1::DebugOp& op : scope.debug_ops()) {
    rows.push_back({op.name(), op.type(), op.has_order() ? absl::StrCat(op.order()) : "-"});
  }
  return FormatTable(rows, style);
}

void AddBits(const v1::RewriteReport& report, Style style,
             std::vector<std::vector<std::string>>* facts) {
  if (report.advice().same_bits_config_proto_text().empty()) return;
  const std::string with =
      absl::StrCat("the same with Grappler off, or with ",
                   report.advice().same_bits_config_proto_text(), " in both sessions");
  facts->push_back(
      {"bits",
       report.has_offload()
           ? "the last ones differ: the host's updates round otherwise than a GPU's"
       : report.same_bits() == v1::SAME_BITS_NO
           ? style.WithOptions(absl::StrCat(
                 "the last ones may differ, perhaps because convolutions or matrix products "
                 "are recomputed; with budget.recompute = CHEAP, ",
                 with))
           : with});
}

// Settings for the training job; `detail` also says why.
void AddAdvice(const v1::Advice& advice, bool detail,
               std::vector<std::vector<std::string>>* facts) {
  // A server of the API's release sends host_memory_variable alone.
  const std::string variables = advice.environment().empty()
                                    ? advice.host_memory_variable()
                                    : absl::StrJoin(advice.environment(), " and ");
  if (!variables.empty()) {
    facts->push_back({"advice", absl::StrCat("set ", variables, " in the training job")});
  }
  if (detail && !advice.host_memory_variable_before_1_14().empty()) {
    facts->push_back(
        {"", absl::StrCat("before TensorFlow 1.14: ", advice.host_memory_variable_before_1_14())});
  }
  if (detail && !advice.explanation().empty()) facts->push_back({"", advice.explanation()});
  if (advice.internal_fragmentation_fraction() > 0) {
    facts->push_back({"advice", absl::StrCat("create the session with gpu_options.experimental."
                                             "internal_fragmentation_fraction ",
                                             advice.internal_fragmentation_fraction(),
                                             ", as the step was simulated")});
  }
}

// The state in host memory, and the largest that cannot be there; small variables aside.
void AddState(const v1::RewriteReport& report, bool detail,
              std::vector<std::vector<std::string>>* facts) {
  if (!report.has_offload()) return;
  const v1::OffloadReport& offload = report.offload();
  facts->push_back({"state", absl::StrCat(core::BytesText(offload.bytes()), " of ",
                                          core::BytesText(offload.state_bytes()),
                                          " of variables and optimizer slots are in host memory")});
  const v1::KeptState* largest = nullptr;
  for (const v1::KeptState& kept : offload.kept()) {
    const bool is_small = kept.reason() == v1::STATE_KEPT_SIZE;
    if (!is_small && (largest == nullptr || kept.bytes() > largest->bytes())) largest = &kept;
  }
  if (!detail || largest == nullptr) return;
  facts->push_back(
      {"",
       absl::StrCat(largest->variable(), " (", core::BytesText(largest->bytes()),
                    " with its slots) cannot be: ", largest->node(), " (",
                    NameOrNumber(core::StateKeptName(largest->reason()), largest->reason()), ")")});
}

// A clone computes its output from the graph, even if a session feeds its original's output.
void AddFeeds(const v1::RewriteReport& report, std::vector<std::vector<std::string>>* facts) {
  if (report.recomputation().nodes().empty()) return;
  facts->push_back(
      {"feeds", "feed clones like their originals (recomputation.nodes in the report)"});
}

// Facts and settings for the reader, in order of importance.
std::vector<std::vector<std::string>> Remarks(const v1::RewriteReport& report, Style style) {
  std::vector<std::vector<std::string>> remarks;
  AddWarnings(report, style, &remarks);
  AddAdvice(report.advice(), /*detail=*/false, &remarks);
  AddState(report, /*detail=*/false, &remarks);
  if (report.same_bits() == v1::SAME_BITS_NO) AddBits(report, style, &remarks);
  return remarks;
}

// The rows below the devices: a label and its text.
std::vector<std::vector<std::string>> Facts(const v1::RewriteReport& report, Style style) {
  std::vector<std::vector<std::string>> facts = ForecastFacts(report);
  if (report.has_scope()) AddScopeFacts(report.scope(), &facts);
  for (std::vector<std::string>& fact : LevelFacts(report)) facts.push_back(std::move(fact));
  for (std::vector<std::string>& fact : DeviceFacts(report, style))
    facts.push_back(std::move(fact));
  if (report.has_recomputation()) {
    const v1::Recomputation& again = report.recomputation();
    facts.push_back(
        {"recomputed",
         absl::StrCat(FormatCount(again.node_count(), "node"), ", ", core::BytesText(again.bytes()),
                      ", in ", core::DurationText(absl::Nanoseconds(again.time_ns())))});
  }
  AddState(report, /*detail=*/true, &facts);
  AddFeeds(report, &facts);
  if (report.budget().has_joint_bound_ns()) {
    facts.push_back({"bound", absl::StrCat("at least ",
                                           core::DurationText(
                                               absl::Nanoseconds(report.budget().joint_bound_ns())),
                                           " with swaps and recomputation, in this op order")});
  }
  if (std::string advice = RecomputeAdvice(report, style); !advice.empty()) {
    facts.push_back({"advice", std::move(advice)});
  }
  if (report.node_count_before() > 0) {
    const int64_t added = report.node_count_after() - report.node_count_before();
    facts.push_back(
        {"nodes", absl::StrCat(report.node_count_before(), " -> ", report.node_count_after(), " (",
                               added < 0 ? "" : "+", added, ")")});
  }
  if (report.graph_bytes_before() > 0) {
    facts.push_back({"size", absl::StrCat(core::BytesText(report.graph_bytes_before()), " -> ",
                                          core::BytesText(report.graph_bytes_after()))});
  }
  AddBits(report, style, &facts);
  if (report.stages_size() > 0) facts.push_back({"time", StageText(report)});
  AddWarnings(report, style, &facts);
  AddAdvice(report.advice(), /*detail=*/true, &facts);
  return facts;
}

}  // namespace

std::string FormatKept(absl::string_view name, absl::string_view why, Style style) {
  return absl::StrCat(style.Heading(absl::StrCat("spillway: ", name, ": kept as it is")), "\n",
                      Paragraph(why, 2, style));
}

std::string FormatSummary(const v1::RewriteReport& report, absl::string_view name, Style style,
                          RecomputeChoice recompute) {
  const std::string advice =
      recompute == RecomputeChoice::kDefault ? RecomputeAdvice(report, style) : "";
  std::string text =
      absl::StrCat(HeadingText(report, name, advice, style), MemoryTable(report, style));
  int lines = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  std::vector<std::vector<std::string>> facts;
  if (std::string step = StepText(report); !step.empty()) facts.push_back({"step", step});
  AddFeeds(report, &facts);
  for (std::vector<std::string>& fact : ShortForecastFacts(report)) facts.push_back(fact);
  // The rest as far as there is room.
  int left_out = 0;
  for (const std::vector<std::string>& remark : Remarks(report, style)) {
    facts.push_back(remark);
    const std::string with = FormatFacts(facts, style);
    const int needed = static_cast<int>(std::count(with.begin(), with.end(), '\n'));
    if (lines + needed < kSummaryLines) continue;
    facts.pop_back();
    ++left_out;
  }
  if (left_out > 0) {
    facts.push_back({"more", absl::StrCat(FormatCount(left_out, "remark"), " in the details")});
  }
  return absl::StrCat(text, FormatFacts(facts, style));
}

std::string FormatDetails(const v1::RewriteReport& report, absl::string_view name, Style style) {
  std::string text = HeadingText(report, name, /*advice=*/"", style);
  if (report.devices_size() > 0) absl::StrAppend(&text, DeviceTable(report, style));
  absl::StrAppend(&text, FormatBeforeAndAfter(report, style));
  absl::StrAppend(&text, FormatDeviceFacts(report, style));
  absl::StrAppend(&text, FormatFacts(Facts(report, style), style));
  if (report.scope().debug_ops_size() > 0)
    absl::StrAppend(&text, DebugTable(report.scope(), style));
  return text;
}

}  // namespace spillway::text
