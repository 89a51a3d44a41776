#include "spillway/remote_connection.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client_lib/internal/addresses.h"
#include "client_lib/internal/call_headers.h"
#include "client_lib/internal/graph_questions.h"
#include "client_lib/internal/health_check.h"
#include "client_lib/internal/hedge.h"
#include "client_lib/internal/job_names.h"
#include "client_lib/internal/progress_reporter.h"
#include "client_lib/internal/remote_call.h"
#include "client_lib/internal/replicas.h"
#include "client_lib/internal/retry.h"
#include "client_lib/internal/status_conversion.h"
#include "client_lib/internal/stream_rewrite.h"
#include "rewrite_core/base/error.h"
#include "spillway/v1/rewrite_service.grpc.pb.h"

namespace spillway {
namespace {

using internal::Link;

// The parts of an attempt that are the same for every method.
struct AttemptContext {
  const internal::CallLimits& limits;
  const internal::CallHeaders& headers;
  internal::Pushback* pushback;
  internal::Tour* tour;
};

// Whether the server refused the message and not the graph: its limit for one message is lower than
// ours. gRPC itself refuses without a reason.
bool IsTooLargeForUnary(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) return false;
  const v1::ErrorReason reason = core::GetErrorReason(status);
  return reason == v1::ERROR_REASON_UNSPECIFIED || reason == v1::ERROR_REASON_LIMIT_EXCEEDED;
}

class RemoteConnection : public Connection {
  using Stub = v1::RewriteService::StubInterface;

 public:
  explicit RemoteConnection(RemoteOptions options)
      : options_(std::move(options)),
        addresses_(internal::SplitTarget(options_.target)),
        job_names_(internal::JobNamesFromEnvironment()),
        replicas_(options_, addresses_.ok() ? *addresses_ : std::vector<std::string>{""}) {}

  absl::StatusOr<v1::RewriteResponse> Rewrite(absl::string_view graph_def,
                                              const v1::RewriteOptions& options,
                                              const CallOptions& call) override {
    if (call.keep_best) {
      return core::InvalidError(
          v1::ERROR_REASON_CONFLICTING_OPTIONS,
          "keep_best is for searches in this process, and a server's answer is "
          "whole or none; leave out keep_best or the server",
          {{"option", "keep_best"}});
    }
    const auto rewrite = [&](const Link& link, const CallOptions& progress_of,
                             const AttemptContext& context) {
      return RewriteOn(link, graph_def, options, progress_of, context);
    };
    return WithRetries<v1::RewriteResponse>(
        call, [&](const Link& link, const AttemptContext& context) {
          if (options_.hedge_after == absl::InfiniteDuration()) return rewrite(link, call, context);
          const auto first = [&](const internal::CallLimits& limits) {
            return rewrite(link, call, {limits, context.headers, context.pushback, context.tour});
          };
          // The second attempt reports no progress: the first one does.
          const auto second = [&](const internal::CallLimits& limits) {
            const std::shared_ptr<const Link> other = replicas_.Beside(context.tour);
            if (!other->status.ok()) {
              // An unusable file is not an answer: the first attempt continues.
              return absl::StatusOr<v1::RewriteResponse>(
                  absl::UnavailableError(other->status.message()));
            }
            internal::Pushback ignored;
            auto response =
                rewrite(*other, CallOptions(), {limits, context.headers, &ignored, context.tour});
            if (absl::IsUnavailable(response.status())) replicas_.Drop(other);
            return response;
          };
          return internal::Hedge(options_.hedge_after, context.limits, first, second);
        });
  }

  absl::StatusOr<v1::GraphSummary> Inspect(absl::string_view graph_def,
                                           const v1::InspectOptions& options,
                                           const TensorsCallback& on_tensors,
                                           const CallOptions& call) override {
    internal::Delivered delivered;
    return InChunks<v1::GraphSummary>(
        "Inspect", call, [&](Stub* stub, const internal::Attempt& attempt) {
          return internal::Inspect(stub, graph_def, options, on_tensors, attempt, &delivered);
        });
  }

  absl::StatusOr<v1::SimulateReport> Simulate(absl::string_view graph_def,
                                              const v1::SimulateOptions& options,
                                              const CallOptions& call) override {
    return InChunks<v1::SimulateReport>(
        "Simulate", call, [&](Stub* stub, const internal::Attempt& attempt) {
          return internal::Simulate(stub, graph_def, options, attempt);
        });
  }

  absl::StatusOr<v1::ExploreReport> Explore(absl::string_view graph_def,
                                            const v1::ExploreOptions& options,
                                            const SizeCallback& on_size,
                                            const CallOptions& call) override {
    internal::Delivered delivered;
    return InChunks<v1::ExploreReport>(
        "Explore", call, [&](Stub* stub, const internal::Attempt& attempt) {
          return internal::Explore(stub, graph_def, options, on_size, attempt, &delivered);
        });
  }

  absl::StatusOr<v1::GraphDiff> Diff(absl::string_view graph_a, absl::string_view graph_b,
                                     const CallOptions& call) override {
    return InChunks<v1::GraphDiff>("Diff", call, [&](Stub* stub, const internal::Attempt& attempt) {
      return internal::Diff(stub, graph_a, graph_b, attempt);
    });
  }

  absl::StatusOr<v1::GetCapabilitiesResponse> GetCapabilities(const CallOptions& call) override {
    return WithRetries<v1::GetCapabilitiesResponse>(
        call,
        [&](const Link& link,
            const AttemptContext& context) -> absl::StatusOr<v1::GetCapabilitiesResponse> {
          internal::RemoteCall remote_call(context.limits, context.headers);
          v1::GetCapabilitiesResponse response;
          const grpc::Status status = link.stub->GetCapabilities(
              remote_call.context(), v1::GetCapabilitiesRequest(), &response);
          *context.pushback = remote_call.pushback();
          if (!status.ok()) return internal::FromGrpc(status, link.address);
          return response;
        });
  }

  absl::StatusOr<ServingStatus> CheckHealth(absl::string_view service,
                                            const CallOptions& call) override {
    const internal::CallLimits limits(call);
    if (absl::Status status = limits.CheckStart(); !status.ok()) return status;
    const auto headers = HeadersOf(call);
    if (!headers.ok()) return headers.status();
    absl::StatusOr<ServingStatus> answer;
    for (const std::shared_ptr<const Link>& link : replicas_.Probes()) {
      if (!link->status.ok()) return link->status;
      auto health = internal::CheckHealth(link->channel, service, link->address, limits, *headers);
      if (absl::IsUnavailable(health.status())) replicas_.Drop(link);
      // A server that reports that it does not serve is a better answer than a silent one.
      if (health.ok() || !answer.ok()) answer = health;
      if (answer.ok() && *answer == ServingStatus::kServing) break;
    }
    return answer;
  }

 private:
  absl::StatusOr<internal::CallHeaders> HeadersOf(const CallOptions& call) const {
    if (!addresses_.ok()) return addresses_.status();
    return internal::MakeCallHeaders(options_, *addresses_, call, job_names_);
  }

  // Makes attempts until one succeeds or no other may follow. `attempt(link, context)` starts from
  // the beginning each time.
  template <typename Response, typename Attempt>
  absl::StatusOr<Response> WithRetries(const CallOptions& call, const Attempt& attempt) {
    const internal::CallLimits limits(call);
    if (absl::Status status = limits.CheckStart(); !status.ok()) return status;
    const auto headers = HeadersOf(call);
    if (!headers.ok()) return headers.status();
    internal::RetryLoop retry(options_.retry, limits);
    internal::Tour tour;
    while (true) {
      const std::shared_ptr<const Link> link = replicas_.Next(&tour);
      if (!link->status.ok()) return link->status;
      internal::Pushback pushback;
      absl::StatusOr<Response> response =
          attempt(*link, AttemptContext{limits, *headers, &pushback, &tour});
      if (response.ok()) return response;
      absl::Status status = response.status();
      // Even if this call gives up, so that the next one does not fail for the same reason.
      if (absl::IsUnavailable(status)) replicas_.Drop(link);
      if (tour.HasOther() && pushback.value_or(absl::ZeroDuration()) >= absl::ZeroDuration()) {
        if (absl::IsUnavailable(status)) continue;
        // The pushback came from the full server and does not apply to the other one.
        if (pushback.has_value()) pushback = absl::ZeroDuration();
      }
      if (!retry.PauseAfter(&status, pushback)) return status;
    }
  }

  // A call that sends graphs of any size in chunks: `ask(stub, attempt)` is one attempt.
  template <typename Response, typename Ask>
  absl::StatusOr<Response> InChunks(absl::string_view method, const CallOptions& call,
                                    const Ask& ask) {
    return WithRetries<Response>(
        call, [&](const Link& link, const AttemptContext& context) -> absl::StatusOr<Response> {
          internal::ProgressReporter progress(call);
          auto response = ask(link.stub.get(), ChunkedAttempt(link, context, &progress));
          if (!internal::IsUnknownMethod(response.status())) return response;
          // A server that reports capabilities and a version, but lacks the method, is older.
          internal::RemoteCall remote_call(context.limits, context.headers);
          v1::GetCapabilitiesResponse server;
          if (!link.stub->GetCapabilities(remote_call.context(), {}, &server).ok()) return response;
          return internal::TooOldFor(method, link.address, server.version());
        });
  }

  internal::Attempt ChunkedAttempt(const Link& link, const AttemptContext& context,
                                   internal::ProgressReporter* progress) const {
    return {context.limits,       context.headers, link.address,
            options_.chunk_bytes, progress,        context.pushback};
  }

  absl::StatusOr<v1::RewriteResponse> RewriteOn(const Link& link, absl::string_view graph_def,
                                                const v1::RewriteOptions& options,
                                                const CallOptions& progress_of,
                                                const AttemptContext& context) const {
    if (static_cast<int64_t>(graph_def.size()) <= options_.unary_max_bytes) {
      // A separate reporter, because a stream that follows starts again from the first stage.
      internal::ProgressReporter(progress_of).Report(Stage::kRewriting);
      auto response = UnaryRewrite(link, graph_def, options, context);
      if (!IsTooLargeForUnary(response.status())) return response;
    }
    internal::ProgressReporter progress(progress_of);
    return internal::StreamRewrite(link.stub.get(), graph_def, options,
                                   ChunkedAttempt(link, context, &progress));
  }

  static absl::StatusOr<v1::RewriteResponse> UnaryRewrite(const Link& link,
                                                          absl::string_view graph_def,
                                                          const v1::RewriteOptions& options,
                                                          const AttemptContext& context) {
    internal::RemoteCall call(context.limits, context.headers);
    v1::RewriteRequest request;
    request.mutable_graph_def()->assign(graph_def.data(), graph_def.size());
    *request.mutable_options() = options;
    v1::RewriteResponse response;
    const grpc::Status status = link.stub->Rewrite(call.context(), request, &response);
    *context.pushback = call.pushback();
    if (!status.ok()) return internal::FromGrpc(status, link.address);
    return response;
  }

  const RemoteOptions options_;
  const absl::StatusOr<std::vector<std::string>> addresses_;  // No call is made without.
  const internal::CallHeaders job_names_;
  internal::Replicas replicas_;
};

}  // namespace

std::shared_ptr<Connection> MakeRemoteConnection(const RemoteOptions& options) {
  return std::make_shared<RemoteConnection>(options);
}

}  // namespace spillway
