#include "rewrite_core/rewriter.h"

#include <cassert>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/flow/active_nodes.h"
#include "rewrite_core/apply/inlining_verifier.h"
#include "rewrite_core/apply/offload_verifier.h"
#include "rewrite_core/apply/plan_writer.h"
#include "rewrite_core/apply/verifier.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/earlier_rewrite.h"
#include "rewrite_core/graph/graph_edit.h"
#include "rewrite_core/graph/strip.h"
#include "rewrite_core/inline/inline_calls.h"
#include "rewrite_core/inline/kept_calls.h"
#include "rewrite_core/plan/clone_plan.h"
#include "rewrite_core/plan/clone_writer.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/plan/state_groups.h"
#include "rewrite_core/planned_step.h"
#include "rewrite_core/report/forecast_report.h"
#include "rewrite_core/report/plan_message.h"
#include "rewrite_core/report/rewrite_report.h"
#include "rewrite_core/request_check.h"
#include "rewrite_core/simulate/step_subject.h"
#include "rewrite_core/stage.h"
#include "rewrite_core/strategy/apply/apply_strategy.h"
#include "rewrite_core/strategy/strategies.h"

namespace spillway::core {
namespace {

// The changes to a graph. Not copied: a plan may have very many parts.
struct Edits {
  const OffloadPlan& offload;
  const ClonePlan& clones;  // On the graph with the moves,
  const SwapPlan& plan;     // and with the clones.

  bool empty() const { return offload.empty() && clones.clones.empty() && plan.empty(); }
};

// One rewrite, stage by stage.
class Rewriter {
 public:
  Rewriter(absl::string_view input, const v1::RewriteOptions& options, const v1::Limits& limits,
           const StopToken& stop, PlanReuse* reuse)
      : input_(input), options_(options), limits_(limits), stop_(stop), reuse_(reuse) {}

  absl::StatusOr<v1::RewriteResponse> Run() {
    if (absl::Status s = CheckOptions(options_, stop_); !s.ok()) return s;
    const PlanningStrategy* strategy = FindStrategy(options_);
    step_ = strategy == nullptr ? options_.step() : strategy->step(options_);
    report().set_strategy(StrategyOf(options_));
    report().set_graph_bytes_before(static_cast<int64_t>(input_.size()));
    auto subject =
        Stage(v1::STAGE_PARSE, [&] { return StepSubject::Parse(input_, step_, limits_, stop_); });
    if (!subject.ok()) return subject.status();
    report().set_node_count_before((*subject)->graph().num_nodes());
    targets_ = FindTargets((*subject)->graph(), step_, stop_).status();
    absl::Status status = strategy != nullptr ? RunStrategy(*strategy, *std::move(subject))
                          : targets_.ok()     ? RunStrip(**subject)
                                              : InStage(v1::STAGE_ANALYSIS, targets_);
    if (!status.ok()) return status;
    for (const v1::Warning& warning : last_warnings_) *report().add_warnings() = warning;
    return std::move(response_);
  }

 private:
  bool Wants(v1::Output output) const { return AsksFor(output, options_); }

  v1::RewriteReport& report() { return *response_.mutable_report(); }

  template <typename Work>
  auto Stage(v1::Stage stage, const Work& work) -> decltype(work()) {
    return RunStage(stage, &report(), work);
  }

  absl::Status RunStrip(const StepSubject& subject) {
    const auto earlier = FindEarlierRewrite(subject.graph(), stop_);
    if (!earlier.ok()) return earlier.status();
    if (!earlier->ours && earlier->foreign_node == kNoNode) {
      return Unchanged(subject.graph(), v1::OUTCOME_NOTHING_TO_DO,
                       "Spillway has not rewritten this graph: there are no edits to remove");
    }
    auto stripped = Stage(v1::STAGE_APPLY,
                          [&] { return ParseStripped(subject.graph(), step_, limits_, stop_); });
    if (!stripped.ok()) return stripped.status();
    return Unchanged((*stripped)->graph(), v1::OUTCOME_STRIPPED, "Spillway's edits were removed");
  }

  absl::Status RunStrategy(const PlanningStrategy& strategy, std::unique_ptr<StepSubject> subject) {
    const auto earlier = FindEarlierRewrite(subject->graph(), stop_);
    if (!earlier.ok()) return earlier.status();
    if (earlier->foreign_node != kNoNode) {
      if (absl::Status s = CheckGraph(strategy, subject->graph()); !s.ok()) {
        return InStage(v1::STAGE_ANALYSIS, s);
      }
      if (absl::Status s = ForecastAsItIs(subject.get()); !s.ok()) return s;
      return Unchanged(subject->graph(), v1::OUTCOME_FOREIGN,
                       absl::StrCat("another program (TFLMS) has rewritten this graph (node ",
                                    subject->graph().name(earlier->foreign_node),
                                    "): it is returned unchanged"));
    }
    if (!earlier->ours) return RunOnOriginal(strategy, std::move(subject));
    // Plans are made on the graph from before any rewrite, so that rewriting one device after
    // another gives the same as rewriting all at once.
    auto stripped = Stage(v1::STAGE_PARSE,
                          [&] { return ParseStripped(subject->graph(), step_, limits_, stop_); });
    if (!stripped.ok()) return stripped.status();
    file_ = &(*stripped)->graph();
    auto inlines = HasInlinedNodes(subject->graph(), stop_);
    if (!inlines.ok()) return InStage(v1::STAGE_PARSE, inlines.status());
    std::unique_ptr<StepSubject> inlined;
    if (*inlines) {
      auto made = Inline(**stripped);
      if (!made.ok()) return made.status();
      inlined = *std::move(made);
    }
    StepSubject* original = inlined != nullptr ? inlined.get() : stripped->get();
    auto moves = FindMoves(subject->graph(), original->graph(), stop_);
    if (!moves.ok()) return InStage(v1::STAGE_PARSE, moves.status());
    std::unique_ptr<StepSubject> moved;
    if (!moves->empty()) {
      auto made = Move(*moves, {}, *original);
      if (!made.ok()) return made.status();
      moved = *std::move(made);
      original = moved.get();
    }
    auto eligibility = Analyse(strategy, *original);
    if (!eligibility.ok()) return eligibility.status();
    auto again = IsRewrittenOn(subject->graph(), original->graph(), *eligibility, stop_);
    if (!again.ok()) return InStage(v1::STAGE_ANALYSIS, again.status());
    if (!*again) {
      absl::Status status = CheckEarlierEdits(subject->graph(), *original, stop_);
      if (!status.ok()) return InStage(v1::STAGE_VERIFY, status);
      return PlanAndWrite(strategy, *eligibility, original, subject.get());
    }
    if (options_.already_rewritten() == v1::ALREADY_REWRITTEN_REPLAN) {
      AddWarning(
          v1::WARNING_CODE_ALREADY_REWRITTEN,
          "Spillway had rewritten this graph: its earlier edits, on all devices, were removed "
          "first",
          &report());
      if (inlined == nullptr && !WantsInlining()) {
        return PlanAndWrite(strategy, *eligibility, /*original=*/nullptr, original);
      }
      report().clear_inlining();
      return RunOnOriginal(strategy, *std::move(stripped));
    }
    if (absl::Status s = ForecastAsItIs(subject.get()); !s.ok()) return s;
    return Unchanged(subject->graph(), v1::OUTCOME_KEPT,
                     "Spillway has rewritten this graph before: it is returned unchanged "
                     "(already_rewritten = REPLAN strips it first)");
  }

  // On a graph that has not been rewritten.
  absl::Status RunOnOriginal(const PlanningStrategy& strategy, std::unique_ptr<StepSubject> file) {
    file_ = &file->graph();
    std::unique_ptr<StepSubject> inlined;
    if (WantsInlining()) {
      auto made = Inline(*file);
      if (!made.ok()) return made.status();
      inlined = *std::move(made);
    }
    if (inlined != nullptr && has_loops_ && strategy.may_lose_order_behind_loops &&
        Inlining() == v1::INLINE_CALLS_AUTO) {
      auto keeps = KeepsCalls(strategy, file.get(), inlined.get());
      if (!keeps.ok()) return keeps.status();
      if (*keeps) {
        inlined.reset();
        report().clear_inlining();
      }
    }
    StepSubject* const subject = inlined != nullptr ? inlined.get() : file.get();
    is_inlined_ = inlined != nullptr;
    const std::shared_ptr<const PlannedStep> given = reuse_ == nullptr ? nullptr : reuse_->given;
    if (given != nullptr && given->node_count == subject->graph().num_nodes()) {
      const Edits edits{given->result.offload, given->result.clones, given->result.plan};
      return WritePlanned(*given, subject->graph(), edits, subject);
    }
    auto eligibility = Analyse(strategy, *subject);
    if (!eligibility.ok()) return eligibility.status();
    return PlanAndWrite(strategy, *eligibility, /*original=*/nullptr, subject);
  }

  v1::InlineCalls Inlining() const {
    if (options_.has_apply()) {
      return AppliesInlined(options_) ? v1::INLINE_CALLS_ALWAYS : v1::INLINE_CALLS_NEVER;
    }
    return options_.inline_calls() == v1::INLINE_CALLS_UNSPECIFIED ? v1::INLINE_CALLS_AUTO
                                                                   : options_.inline_calls();
  }

  bool WantsInlining() const {
    // A patch applies to a live graph, which keeps its calls.
    return Inlining() == v1::INLINE_CALLS_ALWAYS ||
           (Inlining() == v1::INLINE_CALLS_AUTO && !Wants(v1::OUTPUT_PATCH));
  }

  // `file` with its calls inlined, and verified to be that; null if no call can be inlined.
  absl::StatusOr<std::unique_ptr<StepSubject>> Inline(const StepSubject& file) {
    if (!MayHaveCalls(file.graph())) return nullptr;
    auto calls =
        Stage(v1::STAGE_PARSE, [&] { return InlineCalls(file.graph(), step_, limits_, stop_); });
    if (!calls.ok()) return calls.status();
    if (calls->summary.kept_call_count() > 0 || calls->summary.inlined_call_count() > 0) {
      *report().mutable_inlining() = std::move(calls->summary);
    }
    if (calls->too_large && Inlining() == v1::INLINE_CALLS_ALWAYS) {
      return InStage(v1::STAGE_PARSE, TooLargeToInline());
    }
    if (calls->graph_def.empty()) return nullptr;
    has_loops_ = calls->has_loops;
    auto inlined = Stage(v1::STAGE_PARSE, [&] {
      return StepSubject::ParseOwned(std::move(calls->graph_def), step_, limits_, stop_);
    });
    if (!inlined.ok()) return inlined.status();
    absl::Status status = Stage(
        v1::STAGE_VERIFY, [&] { return VerifyInlining(file.graph(), (*inlined)->graph(), stop_); });
    if (!status.ok()) return status;
    return *std::move(inlined);
  }

  // Whether more is swapped if the calls are kept.
  absl::StatusOr<bool> KeepsCalls(const PlanningStrategy& strategy, StepSubject* file,
                                  StepSubject* inlined) {
    const absl::StatusOr<int64_t> kept = PlannedBytes(strategy, file);
    const absl::StatusOr<int64_t> without = PlannedBytes(strategy, inlined);
    if (absl::Status s = stop_.status("strategy"); !s.ok()) return s;
    // Errors of a plan are reported when it is made.
    if (!kept.ok() || !without.ok() || *kept <= *without) return false;
    why_kept_ = absl::StrCat("with their calls inlined (inline_calls = ALWAYS), only ",
                             BytesText(*without), " would be swapped, not ", BytesText(*kept),
                             ", because ops behind a loop are on the levels of its body");
    return true;
  }

  absl::StatusOr<int64_t> PlannedBytes(const PlanningStrategy& strategy, StepSubject* subject) {
    auto eligibility = Analyse(strategy, *subject);
    if (!eligibility.ok()) return eligibility.status();
    auto result = Stage(v1::STAGE_STRATEGY, [&] { return Plan(strategy, *eligibility, subject); });
    if (!result.ok()) return result.status();
    return SwappedBytes(result->plan);
  }

  absl::Status TooLargeToInline() {
    std::string node;
    for (const v1::KeptCall& call : report().inlining().kept_calls()) {
      if (node.empty() && call.reason() == v1::KEPT_CALL_REASON_TOO_LARGE) node = call.node();
    }
    return Error(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_LIMIT_EXCEEDED,
                 absl::StrCat("with call ", Quoted(node),
                              " inlined, the graph would grow beyond the limits; raise them "
                              "(max_node_count, max_graph_bytes), or give inline_calls = AUTO"),
                 {{"node", node}, {"option", "inline_calls"}});
  }

  // A plan for another graph is reported first, before targets of its step that this graph does not
  // have.
  absl::Status CheckGraph(const PlanningStrategy& strategy, const Graph& graph) {
    absl::Status status = strategy.check_graph(options_, graph, stop_);
    return status.ok() ? targets_ : status;
  }

  absl::StatusOr<Eligibility> Analyse(const PlanningStrategy& strategy,
                                      const StepSubject& subject) {
    return Stage(v1::STAGE_ANALYSIS, [&]() -> absl::StatusOr<Eligibility> {
      absl::Status status = CheckGraph(strategy, *file_);
      if (!status.ok()) return status;
      return Eligibility::Create(subject.facts(), options_, stop_);
    });
  }

  // Plans on `original`, which is `subject` before an earlier rewrite of other devices, if there
  // was one, and writes into `subject`.
  absl::Status PlanAndWrite(const PlanningStrategy& strategy, const Eligibility& eligibility,
                            StepSubject* original, StepSubject* subject) {
    auto planned = std::make_shared<PlannedStep>();
    StepSubject* const planned_on = original != nullptr ? original : subject;
    planned->node_count = planned_on->graph().num_nodes();
    auto result =
        Stage(v1::STAGE_STRATEGY, [&] { return Plan(strategy, eligibility, planned_on); });
    if (!result.ok()) return result.status();
    planned->result = *std::move(result);
    assert(IsApplicable(planned->result, eligibility, planned_on));
    const StrategyResult& made = planned->result;
    absl::StatusOr<ClonePlan> moved_clones = ClonePlan();
    absl::StatusOr<SwapPlan> moved_plan = SwapPlan();
    if (original != nullptr) {
      if (!made.offload.empty()) return InStage(v1::STAGE_STRATEGY, MovesTooLate());
      // The same nodes, with their ids in that graph.
      moved_clones = MoveClones(made.clones, original->graph(), subject->graph(), stop_);
      if (!moved_clones.ok()) return InStage(v1::STAGE_STRATEGY, moved_clones.status());
      moved_plan = MovePlan(made.plan, original->graph(), subject->graph(), stop_);
      if (!moved_plan.ok()) return InStage(v1::STAGE_STRATEGY, moved_plan.status());
      original->DropSimulator();
    }
    const Edits edits = original != nullptr ? Edits{made.offload, *moved_clones, *moved_plan}
                                            : Edits{made.offload, made.clones, made.plan};
    if (absl::Status s = Forecast(edits, subject, planned.get()); !s.ok()) return s;
    // Much text, so free the simulator first, which takes the most memory.
    subject->DropSimulator();
    if (reuse_ != nullptr && original == nullptr) reuse_->made = planned;
    return WritePlanned(*planned, planned_on->graph(), edits, subject);
  }

  static absl::Status MovesTooLate() {
    return InvalidError(
        v1::ERROR_REASON_CONFLICTING_OPTIONS,
        "other devices of this graph were rewritten before, and a plan that fits keeps state in "
        "host memory (offload), which comes first; give already_rewritten = REPLAN",
        {{"option", "offload"}, {"other_option", "already_rewritten"}});
  }

  // Whether the strategy `apply` would take the plan of another one. For builds with assertions.
  bool IsApplicable(const StrategyResult& made, const Eligibility& eligibility,
                    StepSubject* subject) const {
    if (options_.has_apply()) return true;
    const Graph& graph = subject->graph();
    auto edited =
        StepSubject::WithEdits(graph, made.offload.nodes, made.clones, step_, limits_, stop_);
    if (!edited.ok()) return !absl::IsInternal(edited.status());
    v1::Plan plan;
    absl::Status s = WritePlanMessage(*file_, *edited != nullptr ? (*edited)->graph() : graph, made,
                                      stop_, &plan);
    if (!s.ok()) return true;  // It has too many names, or the work was stopped.
    v1::RewriteOptions apply;
    plan.SerializeToString(apply.mutable_apply()->mutable_plan());
    s = PlanApply({subject->facts(), eligibility, apply, limits_, nullptr, stop_}).status();
    return !absl::IsInvalidArgument(s);
  }

  // Writes `edits`, which are those of `planned` with the node ids of `subject`.
  absl::Status WritePlanned(const PlannedStep& planned, const Graph& planned_on, const Edits& edits,
                            StepSubject* subject) {
    report().MergeFrom(planned.result.report);
    const bool all_inlined = is_inlined_ && report().inlining().kept_call_count() == 0;
    if (!all_inlined) WarnOfFunctions(subject->graph(), why_kept_, &report());
    report().MergeFrom(planned.forecast);
    ReportKept();
    last_warnings_ = planned.forecast_warnings;
    absl::Status status;
    if (edits.empty()) {
      AdviseOnSession(step_.hardware().internal_fragmentation_fraction(), &report());
      status = WriteNothing(planned, *subject);
    } else {
      status = Write(edits, subject);
    }
    if (status.ok() && Wants(v1::OUTPUT_PLAN)) {
      status = MakePlan(planned, planned_on);
      if (!status.ok()) status = InStage(v1::STAGE_REPORT, status);
    }
    if (!status.ok() || !Wants(v1::OUTPUT_REPORT)) return status;
    // Much text, so not while the verifier runs, which takes the most memory.
    status = ReportDecisions(planned_on, planned.result.decisions, stop_, &report());
    return status.ok() ? status : InStage(v1::STAGE_REPORT, status);
  }

  // Reports why the memory of calls is unknown.
  void ReportKept() {
    const v1::Inlining& inlining = report().inlining();
    if (report().has_forecast_before()) {
      ReportKeptCalls(inlining, report().mutable_forecast_before());
    }
    if (report().has_forecast_after()) {
      ReportKeptCalls(inlining, report().mutable_forecast_after());
    }
  }

  // Nothing is swapped. Calls are still inlined if that was requested.
  absl::Status WriteNothing(const PlannedStep& planned, const StepSubject& subject) {
    if (!is_inlined_ || Inlining() != v1::INLINE_CALLS_ALWAYS) {
      return Unchanged(is_inlined_ ? *file_ : subject.graph(), v1::OUTCOME_NOTHING_TO_DO,
                       planned.result.why_nothing);
    }
    return Unchanged(subject.graph(), v1::OUTCOME_REWRITTEN,
                     absl::StrCat(options_.dry_run() ? "dry run: calls would be inlined; "
                                                     : "calls were inlined; ",
                                  planned.result.why_nothing));
  }

  // Copies the results of planning into the response.
  absl::Status MakePlan(const PlannedStep& planned, const Graph& planned_on) {
    v1::Plan& plan = *response_.mutable_plan();
    const StrategyResult& result = planned.result;
    auto edited = StepSubject::WithEdits(planned_on, result.offload.nodes, result.clones, step_,
                                         limits_, stop_);
    if (!edited.ok()) return edited.status();
    const Graph& named = *edited != nullptr ? (*edited)->graph() : planned_on;
    absl::Status status = WritePlanMessage(*file_, named, result, stop_, &plan);
    if (!status.ok()) return status;
    plan.set_calls_inlined(planned_on.bytes().data() != file_->bytes().data());
    *plan.mutable_step() = step_;
    plan.mutable_step()->clear_profile();
    plan.set_strategy(report().strategy());
    plan.set_version(Version());
    *plan.mutable_fits() = planned.result.report.fits();
    if (planned.forecast.has_forecast_before()) {
      *plan.mutable_forecast_before() = planned.forecast.forecast_before();
    }
    if (planned.forecast.has_forecast_after()) {
      *plan.mutable_forecast_after() = planned.forecast.forecast_after();
    }
    return absl::OkStatus();
  }

  absl::StatusOr<StrategyResult> Plan(const PlanningStrategy& strategy,
                                      const Eligibility& eligibility, StepSubject* subject) {
    StepSimulator* simulator = nullptr;
    if (strategy.needs_simulator(options_)) {
      auto made = subject->Simulator(stop_);
      if (!made.ok()) return made.status();
      simulator = *made;
    }
    auto result =
        strategy.plan({subject->facts(), eligibility, options_, limits_, simulator, stop_});
    if (!result.ok() || result->clones.clones.empty()) return result;
    absl::Status s = ReportClones(subject->facts(), result->clones, stop_, &result->report);
    if (!s.ok()) return s;
    return result;
  }

  // Adds to `planned` the forecasts for the unchanged graph and, if any, with `edits`.
  absl::Status Forecast(const Edits& edits, StepSubject* subject, PlannedStep* planned) {
    if (!Wants(v1::OUTPUT_REPORT) || options_.simulation() == v1::SIMULATION_OFF) {
      return absl::OkStatus();
    }
    const absl::Status status = Stage(v1::STAGE_SIMULATE, [&]() -> absl::Status {
      auto simulator = subject->Simulator(stop_);
      if (!simulator.ok()) return simulator.status();
      planned->forecast_warnings = ForecastWarnings(**simulator);
      if (edits.clones.clones.empty() && edits.offload.empty()) {
        return ReportForecasts(edits.plan, *simulator, stop_, &planned->forecast);
      }
      absl::Status s = ReportForecasts(SwapPlan(), *simulator, stop_, &planned->forecast);
      subject->DropSimulator();
      return s.ok() ? ForecastEdited(edits, subject->graph(), &planned->forecast) : s;
    });
    // A rewrite does not fail because its step time is unknown. Invalid options are still reported.
    const v1::ErrorReason reason = GetErrorReason(status);
    if (status.ok() || reason == v1::ERROR_REASON_STOPPED ||
        reason == v1::ERROR_REASON_BAD_OPTION) {
      return status;
    }
    AddWarning(v1::WARNING_CODE_NOT_SIMULATED,
               absl::StrCat("there is no forecast: ", status.message()), &planned->forecast);
    return absl::OkStatus();
  }

  // Adds the forecast with `edits`, some of which are moves or clones.
  absl::Status ForecastEdited(const Edits& edits, const Graph& graph, v1::RewriteReport* report) {
    auto edited =
        StepSubject::WithEdits(graph, edits.offload.nodes, edits.clones, step_, limits_, stop_);
    if (!edited.ok()) return edited.status();
    auto simulator = (*edited)->Simulator(stop_);
    if (!simulator.ok()) return simulator.status();
    auto after = MakeForecast(edits.plan, ForecastBudget::kHardware, *simulator, stop_);
    if (!after.ok()) return after.status();
    *report->mutable_forecast_after() = *std::move(after);
    return absl::OkStatus();
  }

  // For a graph that is returned unchanged.
  absl::Status ForecastAsItIs(StepSubject* subject) {
    PlannedStep none;
    const Edits no_edits{none.result.offload, none.result.clones, none.result.plan};
    if (absl::Status s = Forecast(no_edits, subject, &none); !s.ok()) return s;
    report().MergeFrom(none.forecast);
    last_warnings_ = std::move(none.forecast_warnings);
    return absl::OkStatus();
  }

  // The bytes of `graph` with the edits from `collect`; likewise the patch.
  template <typename Collect>
  absl::StatusOr<std::string> Apply(const Graph& graph, const Collect& collect, int64_t* added) {
    GraphEdit edit(graph);  // Freed before the verifier needs memory.
    if (absl::Status s = collect(&edit); !s.ok()) return s;
    *added += edit.num_new_nodes();
    auto edited = edit.Apply(stop_);
    if (!edited.ok() || !Wants(v1::OUTPUT_PATCH)) return edited;
    absl::Status s = AddToPatch(graph, edit, stop_, response_.mutable_patch());
    if (!s.ok()) return s;
    return edited;
  }

  // `subject` with these nodes on the host, and verified to be that.
  absl::StatusOr<std::unique_ptr<StepSubject>> Move(const std::vector<NodeId>& nodes,
                                                    const std::vector<NodeId>& targets,
                                                    const StepSubject& subject) {
    auto moved = Stage(v1::STAGE_APPLY, [&] {
      return StepSubject::WithMoves(subject.graph(), nodes, step_, limits_, stop_);
    });
    if (!moved.ok()) return moved;
    absl::Status status = Stage(v1::STAGE_VERIFY, [&] {
      return VerifyMoves(subject.graph(), (*moved)->graph(), step_, targets, stop_);
    });
    if (!status.ok()) return status;
    return moved;
  }

  absl::Status Write(const Edits& edits, StepSubject* subject) {
    std::vector<NodeId> targets;
    if (reuse_ == nullptr || reuse_->given == nullptr) {  // A given plan was verified with them.
      absl::Status s = subject->facts().Compute({Fact::kActiveNodes}, stop_);
      if (!s.ok()) return InStage(v1::STAGE_ANALYSIS, s);
      const ActiveNodes& active = subject->facts().active_nodes();
      // If all ends of a graph run, nodes that clones leave without readers are among them.
      if (active.source != TargetSource::kSinks) targets = active.targets;
    }
    std::unique_ptr<StepSubject> moved;
    if (!edits.offload.empty()) {
      auto made = Move(edits.offload.nodes, targets, *subject);
      if (!made.ok()) return made.status();
      moved = *std::move(made);
      subject = moved.get();
    }
    auto control_flow = subject->TakeControlFlow(stop_);
    if (!control_flow.ok()) return InStage(v1::STAGE_ANALYSIS, control_flow.status());
    std::vector<SwapNodeNames> names;
    std::vector<std::string> clone_names;
    int64_t added = 0;
    std::unique_ptr<StepSubject> cloned;
    const auto graph = [&]() -> const Graph& { return (cloned ? cloned.get() : subject)->graph(); };
    auto bytes = Stage(v1::STAGE_APPLY, [&]() -> absl::StatusOr<std::string> {
      if (!edits.clones.clones.empty()) {
        const auto write_clones = [&](GraphEdit* edit) {
          auto written = WriteClones(subject->graph(), edits.clones, stop_, edit);
          if (written.ok()) clone_names = *std::move(written);
          return written.status();
        };
        auto with_clones = Apply(subject->graph(), write_clones, &added);
        if (!with_clones.ok() || edits.plan.empty()) return with_clones;
        auto parsed = StepSubject::ParseOwned(*std::move(with_clones), step_, limits_, stop_);
        if (!parsed.ok()) return parsed.status();
        cloned = *std::move(parsed);
      }
      const auto write_plan = [&](GraphEdit* edit) {
        auto written = WritePlan(graph(), edits.plan, stop_, edit);
        if (written.ok()) names = *std::move(written);
        return written.status();
      };
      return Apply(graph(), write_plan, &added);
    });
    if (!bytes.ok()) return bytes.status();
    absl::Status status = Stage(v1::STAGE_VERIFY, [&] {
      return VerifyRewrite(subject->graph(), *control_flow, *bytes, step_, stop_, targets);
    });
    if (!status.ok()) return status;
    status = Stage(v1::STAGE_REPORT, [&] {
      absl::Status s = ReportOffload(subject->graph(), edits.offload, stop_, &report());
      if (s.ok()) s = ReportFigures(graph(), edits.clones, edits.plan, stop_, &report());
      if (!s.ok()) return s;
      ReportSameBits(subject->graph(), edits.clones, &report());
      if (!edits.offload.empty()) report().set_same_bits(v1::SAME_BITS_NO);
      AdviseOnSession(step_.hardware().internal_fragmentation_fraction(), &report());
      AdviseOnEnvironment(step_, &report());
      const Graph& without_clones = subject->graph();
      if (Wants(v1::OUTPUT_PATCH) && !clone_names.empty()) {
        s = NameOriginals(without_clones, edits.clones, clone_names, stop_,
                          response_.mutable_patch());
      }
      if (!s.ok() || !Wants(v1::OUTPUT_REPORT)) return s;
      s = ReportCloneNames(without_clones, edits.clones, clone_names, stop_, &report());
      if (!s.ok()) return s;
      return ReportSwaps(graph(), edits.plan, names, stop_, &report());
    });
    report().set_outcome(v1::OUTCOME_REWRITTEN);
    report().set_summary(
        PlanSummary(edits.offload, edits.clones, edits.plan, added, options_.dry_run()));
    Finish(*std::move(bytes), subject->graph().num_nodes() + added);
    return status;
  }

  absl::Status Unchanged(const Graph& graph, v1::Outcome outcome, absl::string_view summary) {
    report().set_outcome(outcome);
    report().set_summary(std::string(summary));
    if (outcome == v1::OUTCOME_REWRITTEN) {
      ReportSameBits(graph, {}, &report());
    } else if (outcome != v1::OUTCOME_STRIPPED) {
      report().set_same_bits(v1::SAME_BITS_ALWAYS);
    }
    Finish(std::string(graph.bytes()), graph.num_nodes());
    return absl::OkStatus();
  }

  void Finish(std::string bytes, int64_t node_count) {
    report().set_node_count_after(node_count);
    report().set_graph_bytes_after(static_cast<int64_t>(bytes.size()));
    if (options_.dry_run()) {
      if (report().outcome() == v1::OUTCOME_REWRITTEN) report().set_outcome(v1::OUTCOME_DRY_RUN);
      response_.clear_patch();
      bytes = std::string(input_);
    }
    if (Wants(v1::OUTPUT_GRAPH)) response_.set_graph_def(std::move(bytes));
  }

  const absl::string_view input_;
  const v1::RewriteOptions& options_;
  const v1::Limits& limits_;
  const StopToken& stop_;
  PlanReuse* const reuse_;                  // May be null.
  v1::Step step_;                           // In the strategy's form.
  absl::Status targets_;                    // Whether the graph has the step's targets.
  std::vector<v1::Warning> last_warnings_;  // Reported after all others.
  // The graph before any rewrite, with its calls; and whether plans are made with them inlined.
  const Graph* file_ = nullptr;
  bool is_inlined_ = false;
  bool has_loops_ = false;  // Inlining lowered a While.
  std::string why_kept_;    // Why calls were kept that can be inlined; empty if none was.
  v1::RewriteResponse response_;
};

}  // namespace

absl::StatusOr<v1::RewriteResponse> Rewrite(absl::string_view graph_def,
                                            const v1::RewriteOptions& options,
                                            const v1::Limits& limits, const StopToken& stop,
                                            PlanReuse* reuse) {
  return Rewriter(graph_def, options, limits, stop, reuse).Run();
}

}  // namespace spillway::core
