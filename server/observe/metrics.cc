#include "server/observe/metrics.h"

#include <algorithm>

#include "rewrite_core/base/names.h"
#include "rewrite_core/rewriter.h"
#include "rewrite_core/strategy/strategies.h"
#include "server/base/error_fault.h"
#include "server/base/status_to_grpc.h"

namespace spillway::server {
namespace {

// The codes that RewriteService documents, in the order of the label's index; the last one also
// stands for all others, which would be a bug.
constexpr absl::StatusCode kCodes[] = {
    absl::StatusCode::kOk,
    absl::StatusCode::kInvalidArgument,
    absl::StatusCode::kFailedPrecondition,
    absl::StatusCode::kOutOfRange,
    absl::StatusCode::kResourceExhausted,
    absl::StatusCode::kUnauthenticated,
    absl::StatusCode::kCancelled,
    absl::StatusCode::kDeadlineExceeded,
    absl::StatusCode::kUnavailable,
    absl::StatusCode::kInternal,
    absl::StatusCode::kUnknown,
};

int CodeIndex(absl::StatusCode code) {
  const auto* found = std::find(std::begin(kCodes), std::end(kCodes) - 1, code);
  return static_cast<int>(found - std::begin(kCodes));
}

// By value of their enums.
constexpr std::array<const char*, kMethodCount> kMethods = {"Rewrite",  "StreamRewrite", "Inspect",
                                                            "Simulate", "Explore",       "Diff"};
constexpr std::array<const char*, kQuotaKindCount> kQuotas = {
    "requests_per_second", "requests_in_flight", "graph_bytes_per_second",
    "cpu_seconds_per_second"};
constexpr std::array<const char*, kRejectReasonCount> kRejectReasons = {
    "inflight_bytes", "queue_full", "draining",     "memory",   "queue_wait",
    "unknown_caller", "quota",      "caller_bytes", "half_open"};

// Seconds, at most three steps per decade: from a small graph's rewrite to the longest useful
// deadline.
const prometheus::Histogram::BucketBoundaries kRequestBuckets = {
    0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300};
// Stages of a small graph take tens of microseconds.
const prometheus::Histogram::BucketBoundaries kStageBuckets = {
    0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100};

prometheus::Family<prometheus::Counter>& CounterFamily(prometheus::Registry& registry,
                                                       const std::string& name,
                                                       const std::string& help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

prometheus::Family<prometheus::Histogram>& HistogramFamily(prometheus::Registry& registry,
                                                           const std::string& name,
                                                           const std::string& help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

bool Rewrites(Method method) {
  return method == Method::kRewrite || method == Method::kStreamRewrite;
}

// Returns all strategies that the label `strategy` of a rewrite may have.
std::vector<v1::Strategy> LabelledStrategies() {
  std::vector<v1::Strategy> strategies = core::AllStrategies();
  strategies.push_back(v1::STRATEGY_UNSPECIFIED);
  return strategies;
}

}  // namespace

const char* MethodName(Method method) { return kMethods[static_cast<int>(method)]; }
const char* QuotaName(QuotaKind kind) { return kQuotas[static_cast<int>(kind)]; }

std::string StrategyLabel(Method method, v1::Strategy strategy) {
  if (strategy != v1::STRATEGY_UNSPECIFIED) return core::StrategyName(strategy);
  return Rewrites(method) ? "unknown" : "none";
}

v1::Strategy StrategyOf(const v1::RewriteOptions& options) {
  // Fields that this build does not know may be a newer client's strategy.
  const bool unknown = options.strategy_case() == v1::RewriteOptions::STRATEGY_NOT_SET &&
                       !options.GetReflection()->GetUnknownFields(options).empty();
  return unknown ? v1::STRATEGY_UNSPECIFIED : core::StrategyOf(options);
}

Metrics::Metrics(prometheus::Registry& registry, const std::string& version) : rewrites_(registry) {
  prometheus::BuildGauge()
      .Name("spillway_build_info")
      .Help("Always 1; the label is the version of this build.")
      .Register(registry)
      .Add({{"version", version}})
      .Set(1);
  BuildRequestMetrics(registry);
  BuildRewriteMetrics(registry);
  BuildErrorMetrics(registry);
}

void Metrics::BuildRequestMetrics(prometheus::Registry& registry) {
  auto& requests = CounterFamily(registry, "spillway_requests_total",
                                 "Requests that ended, by method, strategy and gRPC status code.");
  auto& durations =
      HistogramFamily(registry, "spillway_request_duration_seconds",
                      "Time from a request's first message to the end of its answer.");
  auto& input = CounterFamily(registry, "spillway_input_bytes_total", "Bytes of graphs received.");
  auto& output = CounterFamily(
      registry, "spillway_output_bytes_total",
      "Bytes sent: of rewritten graphs, and of the answers of methods that do not rewrite.");
  for (int m = 0; m < kMethodCount; ++m) {
    const auto which = static_cast<Method>(m);
    const std::string method(MethodName(which));
    const auto strategies = Rewrites(which) ? LabelledStrategies()
                                            : std::vector<v1::Strategy>{v1::STRATEGY_UNSPECIFIED};
    for (const v1::Strategy s : strategies) {
      const std::string strategy = StrategyLabel(which, s);
      for (int c = 0; c < kCodeCount; ++c) {
        requests_[m][s][c] = &requests.Add(
            {{"method", method}, {"strategy", strategy}, {"code", CodeName(kCodes[c])}});
      }
    }
    durations_[m] = &durations.Add({{"method", method}}, kRequestBuckets);
    input_bytes_[m] = &input.Add({{"method", method}});
    output_bytes_[m] = &output.Add({{"method", method}});
  }
  auto& rejected = CounterFamily(
      registry, "spillway_rejected_requests_total",
      "Requests rejected before any work, or for lack of memory during it, by reason.");
  for (int r = 0; r < kRejectReasonCount; ++r) {
    rejected_[r] = &rejected.Add({{"reason", kRejectReasons[r]}});
  }
  caller_requests_ =
      &CounterFamily(registry, "spillway_caller_requests_total", "Requests admitted, by caller.");
  caller_graph_bytes_ = &CounterFamily(registry, "spillway_caller_graph_bytes_total",
                                       "Bytes of graphs charged to a quota, by caller.");
  caller_cpu_seconds_ = &CounterFamily(registry, "spillway_caller_cpu_seconds_total",
                                       "CPU time charged to a quota, by caller.");
  caller_rejected_ =
      &CounterFamily(registry, "spillway_caller_rejected_requests_total",
                     "Requests rejected because a quota was used up, by caller and quota.");
  shared_ = &CounterFamily(registry, "spillway_shared_rewrites_total",
                           "Rewrites answered with the result of a concurrent request.")
                 .Add({});
  cached_ = &CounterFamily(registry, "spillway_cached_rewrites_total",
                           "Rewrites answered with the result of an earlier request.")
                 .Add({});
  reused_plans_ =
      &CounterFamily(registry, "spillway_reused_plans_total",
                     "Rewrites made with the plan of another request for the same graph.")
           .Add({});
  refused_connections_ =
      &CounterFamily(
           registry, "spillway_refused_connections_total",
           "Connections closed on arrival because as many were open as --max-connections, or of "
           "their address as --max-host-connections, allows.")
           .Add({});
  accept_failures_ =
      &CounterFamily(
           registry, "spillway_accept_failures_total",
           "Times that no connection could be accepted, for lack of descriptors or memory.")
           .Add({});
  queue_wait_ = &HistogramFamily(registry, "spillway_queue_wait_seconds",
                                 "Time that requests waited for a worker.")
                     .Add({}, kStageBuckets);
}

void Metrics::BuildRewriteMetrics(prometheus::Registry& registry) {
  auto& stages = HistogramFamily(registry, "spillway_stage_duration_seconds",
                                 "Time spent in each stage of a rewrite.");
  for (const v1::Stage stage : core::AllStages()) {
    stages_[stage] = &stages.Add({{"stage", core::StageName(stage)}}, kStageBuckets);
  }
  auto& outcomes = CounterFamily(
      registry, "spillway_rewrite_outcomes_total",
      "Graphs answered, or rejected because they do not fit, by outcome and strategy.");
  for (const v1::Outcome outcome :
       {v1::OUTCOME_REWRITTEN, v1::OUTCOME_NOTHING_TO_DO, v1::OUTCOME_KEPT, v1::OUTCOME_FOREIGN,
        v1::OUTCOME_STRIPPED, v1::OUTCOME_DRY_RUN, /*does not fit*/ v1::OUTCOME_UNSPECIFIED}) {
    for (const v1::Strategy s : LabelledStrategies()) {
      const std::string strategy = StrategyLabel(Method::kRewrite, s);
      outcomes_[outcome][s] =
          &outcomes.Add({{"outcome", OutcomeName(outcome)}, {"strategy", strategy}});
    }
  }
  swapped_tensors_ = CountersPerStrategy(registry, "spillway_swapped_tensors_total",
                                         "Tensors that rewritten graphs swap.");
  unknown_size_tensors_ =
      CountersPerStrategy(registry, "spillway_unknown_size_tensors_total",
                          "Swapped tensors of unknown size, which the byte counters miss.");
  swap_out_nodes_ = CountersPerStrategy(registry, "spillway_swap_out_nodes_total",
                                        "Swap-out nodes inserted into graphs.");
  swap_in_nodes_ = CountersPerStrategy(registry, "spillway_swap_in_nodes_total",
                                       "Swap-in nodes inserted into graphs.");
  swap_out_bytes_ = CountersPerStrategy(registry, "spillway_swap_out_bytes_per_step_total",
                                        "Bytes that one training step of each rewritten graph "
                                        "copies to the host, summed over graphs.");
  swap_in_bytes_ = CountersPerStrategy(
      registry, "spillway_swap_in_bytes_per_step_total",
      "Bytes that one training step of each rewritten graph copies back, summed over graphs.");
  recomputed_nodes_ = CountersPerStrategy(registry, "spillway_recomputed_nodes_total",
                                          "Nodes that rewritten graphs recompute.");
  recomputed_bytes_ =
      CountersPerStrategy(registry, "spillway_recomputed_bytes_per_step_total",
                          "Bytes that one training step of each rewritten graph recomputes instead "
                          "of keeping them, summed over graphs.");
  recompute_seconds_ =
      CountersPerStrategy(registry, "spillway_recompute_seconds_per_step_total",
                          "Time that one training step of each rewritten graph spends recomputing, "
                          "summed over graphs.");
  nodes_added_ = CountersPerStrategy(registry, "spillway_nodes_added_total",
                                     "Nodes added to rewritten graphs.");
}

void Metrics::BuildErrorMetrics(prometheus::Registry& registry) {
  auto& errors = CounterFamily(registry, "spillway_request_errors_total",
                               "Requests that failed, by reason and by who is responsible.");
  for (const v1::ErrorReason reason : AllErrorReasons()) {
    const ErrorFault fault = FaultOf(reason).value_or(ErrorFault::kServer);
    errors_[reason] = &errors.Add({{"reason", ReasonLabel(reason)}, {"fault", FaultName(fault)}});
  }
  journal_lines_ =
      &CounterFamily(registry, "spillway_journal_lines_total", "Lines written to the journal.")
           .Add({});
  lost_journal_lines_ =
      &CounterFamily(registry, "spillway_journal_lost_lines_total",
                     "Journal lines lost because they could not be written, or not fast enough.")
           .Add({});
}

Metrics::CounterPerStrategy Metrics::CountersPerStrategy(prometheus::Registry& registry,
                                                         const std::string& name,
                                                         const std::string& help) {
  auto& family = CounterFamily(registry, name, help);
  CounterPerStrategy counters = {};
  for (const v1::Strategy s : LabelledStrategies()) {
    const std::string strategy = StrategyLabel(Method::kRewrite, s);
    counters[s] = &family.Add({{"strategy", strategy}});
  }
  return counters;
}

void Metrics::CountRequest(Method method, v1::Strategy strategy, absl::StatusCode code,
                           absl::Duration duration) {
  const int m = static_cast<int>(method);
  requests_[m][strategy][CodeIndex(code)]->Increment();
  durations_[m]->Observe(absl::ToDoubleSeconds(duration));
}

void Metrics::CountError(v1::ErrorReason reason) {
  const auto found = errors_.find(reason);
  (found != errors_.end() ? found->second : errors_.at(v1::ERROR_REASON_UNSPECIFIED))->Increment();
}

CallerCounters Metrics::OfCaller(const std::string& name) {
  CallerCounters counters = {&caller_requests_->Add({{"caller", name}}),
                             &caller_graph_bytes_->Add({{"caller", name}}),
                             &caller_cpu_seconds_->Add({{"caller", name}}),
                             {}};
  for (int k = 0; k < kQuotaKindCount; ++k) {
    counters.rejected[k] =
        &caller_rejected_->Add({{"caller", name}, {"quota", QuotaName(static_cast<QuotaKind>(k))}});
  }
  return counters;
}

void Metrics::AddInputBytes(Method method, int64_t bytes) {
  input_bytes_[static_cast<int>(method)]->Increment(static_cast<double>(bytes));
}

void Metrics::AddOutputBytes(Method method, int64_t bytes) {
  output_bytes_[static_cast<int>(method)]->Increment(static_cast<double>(bytes));
}

void Metrics::CountStages(const v1::RewriteReport& report) {
  for (const v1::StageTiming& timing : report.stages()) {
    if (const auto stage = stages_.find(timing.stage()); stage != stages_.end()) {
      stage->second->Observe(absl::ToDoubleSeconds(absl::Nanoseconds(timing.duration_ns())));
    }
  }
}

void Metrics::CountReport(v1::Strategy strategy, const v1::RewriteReport& report) {
  const int s = strategy;
  const auto outcome = outcomes_.find(report.outcome());
  if (outcome != outcomes_.end() && report.outcome() != v1::OUTCOME_UNSPECIFIED) {
    outcome->second[s]->Increment();
  }
  // The report of an unchanged graph may list its existing swaps; those were counted when they were
  // made.
  if (report.outcome() != v1::OUTCOME_REWRITTEN) return;
  for (const v1::DeviceReport& device : report.devices()) {
    swapped_tensors_[s]->Increment(static_cast<double>(device.swapped_tensor_count()));
    unknown_size_tensors_[s]->Increment(static_cast<double>(device.unknown_size_count()));
    swap_out_nodes_[s]->Increment(static_cast<double>(device.swap_out_count()));
    swap_in_nodes_[s]->Increment(static_cast<double>(device.swap_in_count()));
    swap_out_bytes_[s]->Increment(static_cast<double>(device.swap_out_bytes()));
    swap_in_bytes_[s]->Increment(static_cast<double>(device.swap_in_bytes()));
  }
  const v1::Recomputation& again = report.recomputation();
  recomputed_nodes_[s]->Increment(static_cast<double>(again.node_count()));
  recomputed_bytes_[s]->Increment(static_cast<double>(again.bytes()));
  recompute_seconds_[s]->Increment(absl::ToDoubleSeconds(absl::Nanoseconds(again.time_ns())));
  const int64_t added = report.node_count_after() - report.node_count_before();
  nodes_added_[s]->Increment(static_cast<double>(std::max<int64_t>(added, 0)));
}

void Metrics::CountRewrite(v1::Strategy strategy, const RewriteRecord& record) {
  if (record.does_not_fit()) outcomes_.at(v1::OUTCOME_UNSPECIFIED)[strategy]->Increment();
  rewrites_.Count(strategy, record);
}

}  // namespace spillway::server
