#include "spillway/local_connection.h"

#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "client_lib/internal/call_limits.h"
#include "client_lib/internal/progress_reporter.h"
#include "client_lib/internal/service_names.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/inspect/explore.h"
#include "rewrite_core/inspect/graph_diff.h"
#include "rewrite_core/inspect/inspect.h"
#include "rewrite_core/inspect/simulate_graph.h"
#include "rewrite_core/request_check.h"
#include "rewrite_core/rewriter.h"

namespace spillway {
namespace {

class LocalConnection : public Connection {
 public:
  explicit LocalConnection(v1::Limits limits) : limits_(std::move(limits)) {}

  absl::StatusOr<v1::RewriteResponse> Rewrite(absl::string_view graph_def,
                                              const v1::RewriteOptions& options,
                                              const CallOptions& call) override {
    const auto rewrite = [&](const core::StopToken& stop) {
      auto response = core::Rewrite(graph_def, options, limits_, stop);
      if (response.ok() && !core::AsksFor(v1::OUTPUT_REPORT, options)) response->clear_report();
      return response;
    };
    if (!call.keep_best) return Run(call, rewrite);
    // Limits of the call end only its search.
    const internal::CallLimits limits(call);
    CallOptions unlimited = call;
    unlimited.timeout = absl::InfiniteDuration();
    unlimited.cancellation = {};
    if (absl::Status status = limits.CheckStart(); !status.ok()) return status;
    auto response = Run(unlimited, [&](const core::StopToken& never) {
      core::StopToken stop(never);
      stop.set_search_end(limits.deadline(), limits.cancellation().flag());
      return rewrite(stop);
    });
    // Without a plan to keep, it is a call that was stopped.
    if (core::GetErrorReason(response.status()) != v1::ERROR_REASON_SEARCH_TOO_LONG)
      return response;
    absl::Status stopped = limits.CheckStart();
    return stopped.ok() ? std::move(response) : std::move(stopped);
  }

  absl::StatusOr<v1::GraphSummary> Inspect(absl::string_view graph_def,
                                           const v1::InspectOptions& options,
                                           const TensorsCallback& on_tensors,
                                           const CallOptions& call) override {
    return Run(call, [&](const core::StopToken& stop) -> absl::StatusOr<v1::GraphSummary> {
      v1::GraphSummary summary;
      const auto take = [&](v1::InspectResponse&& part) {
        if (part.has_summary()) summary.Swap(part.mutable_summary());
        if (part.has_tensors() && on_tensors) on_tensors(part.tensors());
        return true;
      };
      absl::Status status = core::Inspect(graph_def, options, limits_, stop, take);
      if (!status.ok()) return status;
      return summary;
    });
  }

  absl::StatusOr<v1::SimulateReport> Simulate(absl::string_view graph_def,
                                              const v1::SimulateOptions& options,
                                              const CallOptions& call) override {
    return Run(call, [&](const core::StopToken& stop) {
      return core::SimulateGraph(graph_def, options, limits_, stop);
    });
  }

  absl::StatusOr<v1::ExploreReport> Explore(absl::string_view graph_def,
                                            const v1::ExploreOptions& options,
                                            const SizeCallback& on_size,
                                            const CallOptions& call) override {
    return Run(call, [&](const core::StopToken& stop) {
      return core::Explore(graph_def, options, limits_, stop, on_size);
    });
  }

  absl::StatusOr<v1::GraphDiff> Diff(absl::string_view graph_a, absl::string_view graph_b,
                                     const CallOptions& call) override {
    return Run(call, [&](const core::StopToken& stop) {
      return core::DiffGraphs(graph_a, graph_b, limits_, stop);
    });
  }

  absl::StatusOr<v1::GetCapabilitiesResponse> GetCapabilities(const CallOptions& call) override {
    if (absl::Status status = internal::CallLimits(call).CheckStart(); !status.ok()) return status;
    v1::GetCapabilitiesResponse response = core::Capabilities(limits_);
    v1::Limits& limits = *response.mutable_limits();
    // Limits that only servers have: absent, since a figure here would not be enforced.
    limits.clear_max_unary_bytes();
    limits.clear_max_chunk_bytes();
    limits.clear_max_concurrent_requests();
    limits.clear_max_inflight_bytes();
    limits.clear_max_concurrent_streams();
    limits.clear_max_metadata_bytes();
    limits.clear_max_option_bytes();
    return response;
  }

  absl::StatusOr<ServingStatus> CheckHealth(absl::string_view service,
                                            const CallOptions& call) override {
    if (absl::Status status = internal::CallLimits(call).CheckStart(); !status.ok()) return status;
    return service.empty() || service == internal::kRewriteService ? ServingStatus::kServing
                                                                   : ServingStatus::kServiceUnknown;
  }

 private:
  // The common part of every call with a graph; `work` gets the call's StopToken.
  template <typename Work>
  static auto Run(const CallOptions& call, const Work& work) -> decltype(work(core::StopToken())) {
    const internal::CallLimits limits(call);
    if (absl::Status status = limits.CheckStart(); !status.ok()) return status;
    internal::ProgressReporter(call).Report(Stage::kRewriting);
    core::StopToken stop = limits.MakeStopToken();
    std::mutex mutex;
    int64_t tried = 0, best_ns = 0;  // Guarded by the mutex.
    const core::PlanListener listener = [&](int64_t step_time_ns) {
      std::lock_guard<std::mutex> lock(mutex);
      if (step_time_ns > 0 && (best_ns == 0 || step_time_ns < best_ns)) best_ns = step_time_ns;
      call.on_plan(++tried, best_ns);
    };
    if (call.on_plan) stop.set_plan_listener(&listener);
    return work(stop);
  }

  const v1::Limits limits_;
};

}  // namespace

std::shared_ptr<Connection> MakeLocalConnection() {
  return MakeLocalConnection(core::DefaultLimits());
}

std::shared_ptr<Connection> MakeLocalConnection(const v1::Limits& limits) {
  return std::make_shared<LocalConnection>(limits);
}

}  // namespace spillway
