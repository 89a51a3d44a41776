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
#include "client_lib/text/forecast_text.h"
#include "client_lib/text/level_text.h"
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
    default:
      return "done";
  }
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
  facts->push_back({"backward", absl::StrCat(scope.backward_op_count(),
                                             " ops, found from the graph's structure")});
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
        {"run again", absl::StrCat(FormatCount(again.node_count(), "node"), ", which make ",
                                   core::BytesText(again.bytes()), " in ",
                                   core::DurationText(absl::Nanoseconds(again.time_ns())))});
  }
  if (report.budget().has_joint_bound_ns()) {
    facts.push_back({"bound", absl::StrCat("no plan of swaps and of such nodes takes less than ",
                                           core::DurationText(
                                               absl::Nanoseconds(report.budget().joint_bound_ns())),
                                           ", but for one in another order")});
  }
  if (report.budget().has_more_recompute()) {
    const v1::MoreRecompute& more = report.budget().more_recompute();
    const std::string text = style.WithOptions(
        absl::StrCat("with budget.recompute = ",
                     absl::AsciiStrToUpper(
                         NameOrNumber(core::RecomputeName(more.recompute()), more.recompute())),
                     " a step takes ", core::DurationText(absl::Nanoseconds(more.step_time_ns()))));
    const std::optional<int64_t> now_ns = core::FiguresOf(report).step_after_ns;
    const double now = static_cast<double>(now_ns.value_or(0));
    facts.push_back(
        {"advice",
         more.step_time_ns() > 0 && now > 0
             ? absl::StrCat(text, absl::StrFormat(" or less: %.2f times as fast",
                                                  now / static_cast<double>(more.step_time_ns())))
             : text});
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
  if (!report.advice().same_bits_config_proto_text().empty()) {
    const std::string with = absl::StrCat("the same with Grappler off, or in both sessions ",
                                          report.advice().same_bits_config_proto_text());
    facts.push_back(
        {"bits", report.same_bits() == v1::SAME_BITS_NO
                     ? style.WithOptions(absl::StrCat(
                           "the last ones may differ, for which convolutions or matrix products "
                           "that run again may be the reason; with budget.recompute = CHEAP, ",
                           with))
                     : with});
  }
  if (report.stages_size() > 0) facts.push_back({"time", StageText(report)});
  AddAssumed(report.hardware(), &facts);
  for (const v1::Warning& warning : report.warnings()) {
    facts.push_back({"warning", style.WithOptions(warning.message())});
  }
  const v1::Advice& advice = report.advice();
  if (!advice.host_memory_variable().empty()) {
    facts.push_back(
        {"advice", absl::StrCat("set ", advice.host_memory_variable(), " in the training job")});
  }
  if (!advice.host_memory_variable_before_1_14().empty()) {
    facts.push_back(
        {"", absl::StrCat("before TensorFlow 1.14: ", advice.host_memory_variable_before_1_14())});
  }
  if (!advice.explanation().empty()) facts.push_back({"", advice.explanation()});
  if (advice.internal_fragmentation_fraction() > 0) {
    facts.push_back(
        {advice.host_memory_variable().empty() ? "advice" : "",
         absl::StrCat("create the session with gpu_options.experimental."
                      "internal_fragmentation_fraction ",
                      advice.internal_fragmentation_fraction(), ", as the step was simulated")});
  }
  return facts;
}

}  // namespace

std::string FormatKept(absl::string_view name, absl::string_view why, Style style) {
  return absl::StrCat(style.Heading(absl::StrCat("spillway: ", name, ": kept as it is")), "\n",
                      Paragraph(why, 2, style));
}

std::string FormatSummary(const v1::RewriteReport& report, absl::string_view name, Style style) {
  std::string heading =
      absl::StrCat("spillway: ", name, name.empty() ? "" : ": ", OutcomeText(report.outcome()));
  if (report.strategy() != v1::STRATEGY_UNSPECIFIED && report.outcome() != v1::OUTCOME_STRIPPED) {
    absl::StrAppend(&heading, " (strategy ",
                    NameOrNumber(core::StrategyName(report.strategy()), report.strategy()), ")");
  }
  std::string text = absl::StrCat(style.Heading(heading), "\n");
  if (!report.summary().empty()) absl::StrAppend(&text, Paragraph(report.summary(), 2, style));
  if (report.devices_size() > 0) absl::StrAppend(&text, DeviceTable(report, style));
  absl::StrAppend(&text, FormatBeforeAndAfter(report, style));
  absl::StrAppend(&text, FormatDeviceFacts(report, style));
  absl::StrAppend(&text, FormatFacts(Facts(report, style), style));
  if (report.scope().debug_ops_size() > 0)
    absl::StrAppend(&text, DebugTable(report.scope(), style));
  return text;
}

}  // namespace spillway::text
