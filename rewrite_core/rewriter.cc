#include "rewrite_core/rewriter.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "rewrite_core/analysis/active_nodes.h"
#include "rewrite_core/analysis/graph_facts.h"
#include "rewrite_core/analysis/hardware.h"
#include "rewrite_core/analysis/shapes.h"
#include "rewrite_core/analysis/topology.h"
#include "rewrite_core/apply/plan_writer.h"
#include "rewrite_core/apply/verifier.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/known_fields.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/graph_edit.h"
#include "rewrite_core/graph/strip.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/report/rewrite_report.h"
#include "rewrite_core/step_judge.h"
#include "rewrite_core/step_model.h"
#include "rewrite_core/strategy/level/level_parameters.h"
#include "rewrite_core/strategy/level/level_strategy.h"
#include "rewrite_core/strategy/scope/scope_strategy.h"

namespace spillway::core {
namespace {

constexpr int64_t kMiB = 1 << 20;

absl::Status UnknownValue(absl::string_view option, int value) {
  return InvalidError(v1::ERROR_REASON_UNKNOWN_OPTION,
                      absl::StrCat(option, " is ", value,
                                   ", which this server does not know; ask "
                                   "GetCapabilities what it does, or update the server"),
                      {{"option", option}, {"value", absl::StrCat(value)}});
}

absl::Status CheckOptions(const v1::RewriteOptions& options) {
  if (absl::Status status = CheckKnownFields(options); !status.ok()) return status;
  if (!v1::AlreadyRewritten_IsValid(options.already_rewritten())) {
    return UnknownValue("already_rewritten", options.already_rewritten());
  }
  if (!v1::DecisionDetail_IsValid(options.decision_detail())) {
    return UnknownValue("decision_detail", options.decision_detail());
  }
  if (!v1::SwapEncoding_IsValid(options.swap_encoding())) {
    return UnknownValue("swap_encoding", options.swap_encoding());
  }
  // Not left to the strategy, which does not run on a graph that is kept.
  if (!v1::ScopeStrategy::CtrldStrategy_IsValid(options.scope().ctrld_strategy())) {
    return UnknownValue("ctrld_strategy", options.scope().ctrld_strategy());
  }
  if (absl::Status status = CheckLevelOptions(options.level()); !status.ok()) return status;
  if (!v1::Simulation_IsValid(options.simulation())) {
    return UnknownValue("simulation", options.simulation());
  }
  // As the devices of a graph's nodes: the result has to be a graph, too.
  const std::string& cpu = options.cpu_device();
  if (!std::all_of(cpu.begin(), cpu.end(), absl::ascii_isascii)) {
    return InvalidError(v1::ERROR_REASON_BAD_OPTION,
                        absl::StrCat("cpu_device is ", Quoted(cpu),
                                     ", which no device is called; give one like /device:CPU:0"),
                        {{"option", "cpu_device"}, {"value", cpu}});
  }
  // Not left to the simulation, which may be off.
  if (auto hardware = Hardware::FromOptions(options.step().hardware()); !hardware.ok()) {
    return hardware.status();
  }
  for (int output : options.outputs()) {
    if (!v1::Output_IsValid(output) || output == v1::OUTPUT_UNSPECIFIED) {
      return UnknownValue("outputs", output);
    }
  }
  return absl::OkStatus();
}

// One rewrite, stage by stage. Stages are timed here and nowhere else.
class Rewriter {
 public:
  Rewriter(absl::string_view input, const v1::RewriteOptions& options, const v1::Limits& limits,
           const StopToken& stop)
      : input_(input), options_(options), limits_(limits), stop_(stop) {}

  absl::StatusOr<v1::RewriteResponse> Run() {
    if (absl::Status status = CheckOptions(options_); !status.ok()) return status;
    step_ = StepOf(options_);
    if (absl::Status status = RunStages(); !status.ok()) return status;
    for (v1::Warning& warning : forecast_warnings_) *report().add_warnings() = std::move(warning);
    if (!Wants(v1::OUTPUT_REPORT)) response_.clear_report();
    return std::move(response_);
  }

 private:
  bool Wants(v1::Output output) const {
    if (options_.outputs().empty()) return output != v1::OUTPUT_PATCH;
    return std::count(options_.outputs().begin(), options_.outputs().end(), output) > 0;
  }

  v1::RewriteReport& report() { return *response_.mutable_report(); }

  // Runs one stage and notes how long it took.
  template <typename Work>
  auto Stage(v1::Stage stage, const Work& work) {
    const absl::Time begin = absl::Now();
    auto result = work();
    v1::StageTiming* timing = report().add_stages();
    timing->set_stage(stage);
    timing->set_duration_ns(absl::ToInt64Nanoseconds(absl::Now() - begin));
    return result;
  }

  absl::Status RunStages() {
    report().set_strategy(options_.has_strip() ? v1::STRATEGY_STRIP
                          : is_level()         ? v1::STRATEGY_LEVEL
                                               : v1::STRATEGY_SCOPE);
    report().set_graph_bytes_before(static_cast<int64_t>(input_.size()));
    if (absl::Status s = Stage(v1::STAGE_PARSE, [&] { return Parse(input_); }); !s.ok()) return s;
    report().set_node_count_before(graph_->num_nodes());
    if (auto targets = FindTargets(*graph_, options_.step(), stop_); !targets.ok()) {
      return targets.status();
    }
    if (options_.has_strip()) return RunStrip();

    const EarlierRewrite earlier = FindEarlierRewrite(*graph_);
    if (earlier.foreign_node != kNoNode) {
      if (absl::Status s = ForecastStep(/*plan=*/nullptr); !s.ok()) return s;
      return Unchanged(
          v1::OUTCOME_FOREIGN,
          absl::StrCat("another program (TFLMS) has rewritten this graph (node ",
                       graph_->name(earlier.foreign_node), "): it is returned as it came"));
    }
    // Plans are made on the graph as it was before any rewrite, so that one device after another
    // gives what all at once would give.
    if (earlier.ours) {
      if (absl::Status s = Stage(v1::STAGE_PARSE, [&] { return ParseStripped(); }); !s.ok())
        return s;
    }
    if (absl::Status s = Stage(v1::STAGE_ANALYSIS, [&] { return Analyse(); }); !s.ok()) return s;
    auto eligibility = Eligibility::Create(*facts_, options_);
    if (!eligibility.ok()) return eligibility.status();
    if (earlier.ours && IsRewrittenOn(*eligibility)) {
      if (options_.already_rewritten() != v1::ALREADY_REWRITTEN_REPLAN) {
        if (absl::Status s = ForecastStep(/*plan=*/nullptr); !s.ok()) return s;
        return Unchanged(v1::OUTCOME_KEPT,
                         "Spillway has rewritten this graph before: it is returned as it came "
                         "(already_rewritten = REPLAN strips it first)");
      }
      AddWarning(v1::WARNING_CODE_ALREADY_REWRITTEN,
                 "Spillway had rewritten this graph: its earlier edits, on all devices, were taken "
                 "out first",
                 &report());
      graph_ = std::move(original_);
    }
    if (original_ != nullptr) {
      // On top of records that may be gone in part: what they say must be swaps and nothing else.
      absl::Status status = VerifyRewrite(*original_, facts_->control_flow, graph_->bytes(),
                                          v1::RewriteOptions(), stop_);
      if (absl::IsInternal(status)) return BadRecords(status.message());
      if (!status.ok()) return status;
    }
    auto plan = Stage(v1::STAGE_STRATEGY,
                      [&] { return is_level() ? RunLevel(*eligibility) : RunScope(*eligibility); });
    if (!plan.ok()) return plan.status();
    if (graph_->has_functions()) {
      AddWarning(v1::WARNING_CODE_FUNCTION_BODIES,
                 "tensors inside function bodies (If, While, PartitionedCall) are never swapped",
                 &report());
    }
    if (plan->empty()) {
      const std::string why = WhyNothing();  // While there is the model that it asks.
      if (absl::Status s = ForecastStep(/*plan=*/nullptr); !s.ok()) return s;
      return Unchanged(v1::OUTCOME_NOTHING_TO_DO, why);
    }
    if (original_ == nullptr) return RunPlan(*plan, std::move(facts_->control_flow));
    // On top of an earlier rewrite of other devices: the same nodes, under the ids they have there.
    model_.reset();
    auto control_flow = Stage(v1::STAGE_ANALYSIS, [&] { return AnalyseControlFlow(); });
    if (!control_flow.ok()) return control_flow.status();
    return RunPlan(MovePlan(*plan, *original_, *graph_), *std::move(control_flow));
  }

  // The default is the strongest that exists.
  bool is_level() const { return !options_.has_scope() && !options_.has_strip(); }

  absl::StatusOr<SwapPlan> RunScope(const Eligibility& eligibility) {
    auto result = PlanScope(*facts_, eligibility, options_, limits_, stop_);
    if (!result.ok()) return result.status();
    *report().mutable_scope() = std::move(result->report);
    ReportDecisions(*facts_->graph, result->decisions, &report());
    if (!result->unmatched_scopes.empty()) {
      AddWarning(v1::WARNING_CODE_NAME_MATCHES_NOTHING,
                 absl::StrCat("optimizer_scopes that match no op: ",
                              absl::StrJoin(result->unmatched_scopes, ", ")),
                 &report());
    }
    return std::move(result->plan);
  }

  absl::StatusOr<SwapPlan> RunLevel(const Eligibility& eligibility) {
    std::unique_ptr<StepJudge> judge;
    if (NeedsJudge(options_)) {
      auto model =
          StepModel::Create(*facts_->graph, facts_->topology, facts_->shapes, step_, stop_);
      if (!model.ok()) return model.status();
      model_ = *std::move(model);
      judge = std::make_unique<StepJudge>(*model_);
    }
    auto result = PlanLevel(*facts_, eligibility, options_, limits_, judge.get(), stop_);
    if (!result.ok()) return result.status();
    *report().mutable_level() = std::move(result->report);
    for (v1::DeviceFit& fit : result->fits) *report().add_fits() = std::move(fit);
    ReportDecisions(*facts_->graph, result->decisions, &report());
    return std::move(result->plan);
  }

  // Why the plan is empty.
  std::string WhyNothing() const {
    const v1::RewriteReport& report = response_.report();
    if (!is_level()) {
      return options_.scope().has_n_tensors() && options_.scope().n_tensors() == 0
                 ? "n_tensors is 0: no tensor was to be swapped"
                 : "no tensor qualifies: the decisions say why";
    }
    const v1::DeviceFit* tightest = nullptr;
    const auto margin = [](const v1::DeviceFit& fit) {
      return fit.budget_bytes() - fit.unswapped_peak_bytes();
    };
    for (const v1::DeviceFit& fit : report.fits()) {
      if (!fit.not_needed()) return "no tensor qualifies: the decisions say why";
      if (tightest == nullptr || margin(fit) < margin(*tightest)) tightest = &fit;
    }
    if (report.fits_size() < report.level().devices_size()) {
      return "no tensor qualifies: the decisions say why";
    }
    if (tightest == nullptr) return "no node runs on a GPU: there is nothing to swap";
    const std::string of = absl::StrCat("no swapping is needed: a step takes at most ",
                                        BytesText(tightest->unswapped_peak_bytes()), " of the ",
                                        BytesText(tightest->budget_bytes()), " of a GPU (",
                                        model_->hardware().MemoryOrigin(), ")");
    if (tightest->fit() == v1::FIT_UNKNOWN) {
      return absl::StrCat(of, " as far as is known, but ", tightest->fit_unknown(0).message());
    }
    return margin(*tightest) >= 0
               ? absl::StrCat(of, ", ", BytesText(margin(*tightest)), " less than there is")
               : absl::StrCat(of, " if nothing waits for memory, and fits where it does");
  }

  absl::Status Parse(absl::string_view bytes) {
    auto graph = Graph::Parse(bytes, limits_, stop_);
    if (!graph.ok()) return graph.status();
    graph_ = std::make_unique<Graph>(*std::move(graph));
    return absl::OkStatus();
  }

  // Sets original_ to graph_ without the edits of earlier rewrites. A record that was tampered with
  // may hold anything: what it leads to must be a graph, and the same but for edits.
  absl::Status ParseStripped() {
    auto stripped = Strip(*graph_, stop_);
    if (!stripped.ok()) return stripped.status();
    stripped_ = *std::move(stripped);
    auto graph = Graph::Parse(stripped_, limits_, stop_);
    if (!graph.ok()) {
      if (!absl::IsInvalidArgument(graph.status())) return graph.status();
      return BadRecords(graph.status().message());
    }
    original_ = std::make_unique<Graph>(*std::move(graph));
    for (NodeId id = 0; id < original_->num_nodes(); ++id) {
      const NodeId edited = graph_->Find(original_->name(id));
      if (edited == kNoNode ||
          CountDataInputs(*graph_, edited) != CountDataInputs(*original_, id)) {
        return BadRecords(absl::StrCat("node ", Quoted(original_->name(id)), " is another"));
      }
    }
    return absl::OkStatus();
  }

  static absl::Status BadRecords(absl::string_view why) {
    return Error(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_BAD_UNDO_RECORD,
                 absl::StrCat("the undo records do not lead back to a graph: ", why,
                              "; start from the original graph"));
  }

  absl::Status Analyse() {
    auto facts = GraphFacts::Compute(original_ ? *original_ : *graph_, step_, stop_);
    if (!facts.ok()) return facts.status();
    facts_ = std::make_unique<GraphFacts>(*std::move(facts));
    return absl::OkStatus();
  }

  absl::StatusOr<ControlFlowAnalysis> AnalyseControlFlow() {
    auto topology = Topology::Build(*graph_, stop_);
    if (!topology.ok()) return topology.status();
    return ControlFlowAnalysis::Build(*graph_, *topology, stop_);
  }

  absl::Status RunStrip() {
    const EarlierRewrite earlier = FindEarlierRewrite(*graph_);
    if (!earlier.ours && earlier.foreign_node == kNoNode) {
      return Unchanged(v1::OUTCOME_NOTHING_TO_DO,
                       "Spillway has not rewritten this graph: there is nothing to take out");
    }
    absl::Status status = Stage(v1::STAGE_APPLY, [&] { return ParseStripped(); });
    if (!status.ok()) return status;
    report().set_outcome(v1::OUTCOME_STRIPPED);
    report().set_summary("the edits of Spillway were taken out");
    graph_ = std::move(original_);
    Finish(std::move(stripped_));
    return absl::OkStatus();
  }

  // Whether a swap of an earlier rewrite starts on a device that is to be rewritten now. Edits
  // without any swap count for every device.
  bool IsRewrittenOn(const Eligibility& eligibility) const {
    // Read once per node: a node's record may be long, and have many readers.
    std::vector<bool> added(graph_->num_nodes());
    for (NodeId id = 0; id < graph_->num_nodes(); ++id) added[id] = IsAddedNode(*graph_, id);
    bool swaps = false;
    for (NodeId id = 0; id < graph_->num_nodes(); ++id) {
      const absl::Span<const Tensor> inputs = graph_->inputs(id);
      if (inputs.empty() || !added[id] || added[inputs[0].node]) continue;
      swaps = true;  // A swap-out.
      const NodeId producer = original_->Find(graph_->name(inputs[0].node));
      if (producer != kNoNode && eligibility.IsDeviceWanted(original_->device_id(producer))) {
        return true;
      }
    }
    return !swaps;
  }

  // What a step takes, before and after `plan` (null: nothing changes).
  absl::Status Forecast(const Topology& topology, const Shapes& shapes, const SwapPlan* plan) {
    return Stage(v1::STAGE_SIMULATE, [&]() -> absl::Status {
      if (model_ == nullptr) {
        auto model = StepModel::Create(*graph_, topology, shapes, step_, stop_);
        if (!model.ok()) return NotSimulated(model.status());
        model_ = *std::move(model);
      }
      WorkloadNotes notes;
      auto before = Played(*model_, /*plan=*/nullptr, &notes);
      if (!before.ok()) return NotSimulated(before.status());
      if (plan != nullptr) {
        auto after = Played(*model_, plan, /*notes=*/nullptr);
        if (!after.ok()) return NotSimulated(after.status());
        *report().mutable_forecast_after() = *std::move(after);
      }
      *report().mutable_forecast_before() = *std::move(before);
      *report().mutable_hardware() = model_->hardware().ToReport();
      for (std::string& name : model_->TargetNames()) report().add_targets(std::move(name));
      forecast_warnings_ = model_->Warnings(notes);
      return absl::OkStatus();
    });
  }

  absl::StatusOr<v1::Forecast> Played(const StepModel& model, const SwapPlan* plan,
                                      WorkloadNotes* notes) const {
    auto workload = model.Build(plan, notes, stop_);
    if (!workload.ok()) return workload.status();
    return model.Forecast(*workload, /*no_budget=*/false, /*with_bounds=*/plan == nullptr, stop_);
  }

  // A rewrite does not fail because nothing can be said of its time. What is wrong with an option
  // is the caller's to know, though.
  absl::Status NotSimulated(const absl::Status& status) {
    const v1::ErrorReason reason = GetErrorReason(status);
    if (reason == v1::ERROR_REASON_STOPPED || reason == v1::ERROR_REASON_BAD_OPTION) return status;
    AddWarning(v1::WARNING_CODE_NOT_SIMULATED,
               absl::StrCat("there is no forecast: ", status.message()), &report());
    return absl::OkStatus();
  }

  bool WantsForecast() const {
    return Wants(v1::OUTPUT_REPORT) && options_.simulation() != v1::SIMULATION_OFF;
  }

  // Of graph_ with `plan`, which is one for it (null: nothing changes). The analyses are there if
  // it was analysed, and was not rewritten before.
  absl::Status ForecastStep(const SwapPlan* plan) {
    if (!WantsForecast()) return absl::OkStatus();
    if (original_ == nullptr && facts_ != nullptr) {
      return Forecast(facts_->topology, facts_->shapes, plan);
    }
    model_.reset();  // It is one of original_.
    auto topology = Topology::Build(*graph_, stop_);
    if (!topology.ok()) return topology.status();
    auto shapes = Shapes::Infer(*graph_, *topology, step_, stop_);
    if (!shapes.ok()) return shapes.status();
    absl::Status status = Forecast(*topology, *shapes, plan);
    model_.reset();  // It stands on these.
    return status;
  }

  absl::Status RunPlan(const SwapPlan& plan, ControlFlowAnalysis control_flow) {
    if (absl::Status s = ForecastStep(&plan); !s.ok()) return s;
    model_.reset();
    facts_.reset();  // What follows needs memory, and of these the control flow alone.
    std::vector<SwapNodeNames> names;
    int64_t added = 0;
    auto bytes = Stage(v1::STAGE_APPLY, [&] {
      GraphEdit edit(*graph_);  // Gone before the verifier needs memory of its own.
      names = WritePlan(*graph_, plan, options_.swap_encoding(), &edit);
      added = edit.num_new_nodes();
      auto edited = edit.Apply(stop_);
      if (edited.ok() && Wants(v1::OUTPUT_PATCH)) {
        *response_.mutable_patch() = MakePatch(*graph_, edit);
      }
      return edited;
    });
    if (!bytes.ok()) return bytes.status();
    absl::Status verified = Stage(v1::STAGE_VERIFY, [&] {
      return VerifyRewrite(*graph_, control_flow, *bytes, options_, stop_);
    });
    if (!verified.ok()) return verified;
    Stage(v1::STAGE_REPORT, [&] {
      ReportPlan(*graph_, plan, names, &report());
      return 0;
    });
    report().set_outcome(v1::OUTCOME_REWRITTEN);
    report().set_summary(absl::StrCat(plan.swaps.size(),
                                      " tensors will be swapped out to and in from the host; ",
                                      added, " nodes were added"));
    if (!plan.controls.empty()) {
      absl::StrAppend(report().mutable_summary(), "; ", plan.controls.size(),
                      " control edges serialize levels");
    }
    Finish(*std::move(bytes));
    report().set_node_count_after(graph_->num_nodes() + added);
    return absl::OkStatus();
  }

  absl::Status Unchanged(v1::Outcome outcome, absl::string_view summary) {
    report().set_outcome(outcome);
    report().set_summary(std::string(summary));
    Finish(std::string(graph_->bytes()));
    return absl::OkStatus();
  }

  void Finish(std::string bytes) {
    report().set_node_count_after(graph_->num_nodes());
    report().set_graph_bytes_after(static_cast<int64_t>(bytes.size()));
    if (Wants(v1::OUTPUT_GRAPH)) response_.set_graph_def(std::move(bytes));
  }

  const absl::string_view input_;
  const v1::RewriteOptions& options_;
  const v1::Limits& limits_;
  const StopToken& stop_;
  v1::Step step_;                    // Of options_, once they are checked.
  std::string stripped_;             // Outlives the graphs.
  std::unique_ptr<Graph> graph_;     // What is edited.
  std::unique_ptr<Graph> original_;  // The same before an earlier rewrite; null if there was none.
  std::unique_ptr<GraphFacts> facts_;
  std::unique_ptr<const StepModel> model_;      // Of the graph that was analysed or is forecast.
  std::vector<v1::Warning> forecast_warnings_;  // They come after those of the plan.
  v1::RewriteResponse response_;
};

}  // namespace

absl::StatusOr<v1::RewriteResponse> Rewrite(absl::string_view graph_def,
                                            const v1::RewriteOptions& options,
                                            const v1::Limits& limits, const StopToken& stop) {
  return Rewriter(graph_def, options, limits, stop).Run();
}

v1::Limits DefaultLimits() {
  v1::Limits limits;
  limits.set_max_graph_bytes(kMaxMessageBytes);
  limits.set_max_unary_bytes(64 * kMiB);
  limits.set_max_chunk_bytes(4 * kMiB);
  limits.set_max_node_count(20'000'000);
  limits.set_max_input_count(200'000'000);
  // About ten seconds of one core.
  limits.set_max_search_steps(1'000'000'000);
  limits.set_max_concurrent_requests(0);  // 0: one per core.
  limits.set_max_inflight_bytes(4096 * kMiB);
  limits.set_max_concurrent_streams(100);  // Envoy's advice for servers at an edge.
  limits.set_max_metadata_bytes(8 << 10);  // gRPC's default.
  return limits;
}

std::vector<v1::Strategy> Strategies() {
  return {v1::STRATEGY_LEVEL, v1::STRATEGY_SCOPE, v1::STRATEGY_STRIP};
}

v1::GetCapabilitiesResponse Capabilities(const v1::Limits& limits) {
  v1::GetCapabilitiesResponse response;
  response.set_version(Version());
  for (v1::Strategy strategy : Strategies()) response.add_strategies(strategy);
  *response.mutable_limits() = limits;
  for (const HardwarePreset& preset : HardwarePresets()) {
    *response.add_hardware_presets() = preset.hardware.ToReport();
  }
  return response;
}

std::string Version() { return SPILLWAY_VERSION; }

}  // namespace spillway::core
