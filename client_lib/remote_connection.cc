#include "spillway/remote_connection.h"

#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "client_lib/internal/channel.h"
#include "client_lib/internal/graph_questions.h"
#include "client_lib/internal/health_check.h"
#include "client_lib/internal/progress_reporter.h"
#include "client_lib/internal/remote_call.h"
#include "client_lib/internal/retry.h"
#include "client_lib/internal/status_conversion.h"
#include "client_lib/internal/stream_rewrite.h"
#include "rewrite_core/base/error.h"
#include "spillway/v1/rewrite_service.grpc.pb.h"

namespace spillway {
namespace {

// Whether the server refused the message and not the graph: its limit for one message is lower than
// ours. gRPC itself refuses without a reason.
bool IsTooLargeForUnary(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) return false;
  const v1::ErrorReason reason = core::GetErrorReason(status);
  return reason == v1::ERROR_REASON_UNSPECIFIED || reason == v1::ERROR_REASON_LIMIT_EXCEEDED;
}

// A channel, and what makes calls on it; or why there is none.
struct Link {
  explicit Link(const RemoteOptions& options) {
    absl::StatusOr<std::shared_ptr<grpc::Channel>> made = internal::MakeChannel(options);
    status = made.status();
    if (!status.ok()) return;
    channel = *std::move(made);
    stub = v1::RewriteService::NewStub(channel);
  }

  absl::Status status;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::RewriteService::Stub> stub;
};

class RemoteConnection : public Connection {
  using Stub = v1::RewriteService::StubInterface;

 public:
  explicit RemoteConnection(RemoteOptions options) : options_(std::move(options)) {}

  absl::StatusOr<v1::RewriteResponse> Rewrite(absl::string_view graph_def,
                                              const v1::RewriteOptions& options,
                                              const CallOptions& call) override {
    return WithRetries<v1::RewriteResponse>(
        call,
        [&](const Link& link, const internal::CallLimits& limits,
            internal::Pushback* pushback) -> absl::StatusOr<v1::RewriteResponse> {
          if (static_cast<int64_t>(graph_def.size()) <= options_.unary_max_bytes) {
            // Its own reporter: the stream that may follow starts from the first stage again.
            internal::ProgressReporter(call).Report(Stage::kRewriting);
            auto response = UnaryRewrite(link, graph_def, options, limits, pushback);
            if (!IsTooLargeForUnary(response.status())) return response;
          }
          internal::ProgressReporter progress(call);
          return internal::StreamRewrite(
              link.stub.get(), graph_def, options,
              {limits, options_.target, options_.chunk_bytes, &progress, pushback});
        });
  }

  absl::StatusOr<v1::GraphSummary> Inspect(absl::string_view graph_def,
                                           const v1::InspectOptions& options,
                                           const TensorsCallback& on_tensors,
                                           const CallOptions& call) override {
    internal::Told told;
    return InChunks<v1::GraphSummary>(call, [&](Stub* stub, const internal::Attempt& attempt) {
      return internal::Inspect(stub, graph_def, options, on_tensors, attempt, &told);
    });
  }

  absl::StatusOr<v1::SimulateReport> Simulate(absl::string_view graph_def,
                                              const v1::SimulateOptions& options,
                                              const CallOptions& call) override {
    return InChunks<v1::SimulateReport>(call, [&](Stub* stub, const internal::Attempt& attempt) {
      return internal::Simulate(stub, graph_def, options, attempt);
    });
  }

  absl::StatusOr<v1::ExploreReport> Explore(absl::string_view graph_def,
                                            const v1::ExploreOptions& options,
                                            const SizeCallback& on_size,
                                            const CallOptions& call) override {
    internal::Told told;
    return InChunks<v1::ExploreReport>(call, [&](Stub* stub, const internal::Attempt& attempt) {
      return internal::Explore(stub, graph_def, options, on_size, attempt, &told);
    });
  }

  absl::StatusOr<v1::GraphDiff> Diff(absl::string_view graph_a, absl::string_view graph_b,
                                     const CallOptions& call) override {
    return InChunks<v1::GraphDiff>(call, [&](Stub* stub, const internal::Attempt& attempt) {
      return internal::Diff(stub, graph_a, graph_b, attempt);
    });
  }

  absl::StatusOr<v1::GetCapabilitiesResponse> GetCapabilities(const CallOptions& call) override {
    return WithRetries<v1::GetCapabilitiesResponse>(
        call,
        [&](const Link& link, const internal::CallLimits& limits,
            internal::Pushback* pushback) -> absl::StatusOr<v1::GetCapabilitiesResponse> {
          internal::RemoteCall remote_call(limits);
          v1::GetCapabilitiesResponse response;
          const grpc::Status status = link.stub->GetCapabilities(
              remote_call.context(), v1::GetCapabilitiesRequest(), &response);
          *pushback = remote_call.pushback();
          if (!status.ok()) return internal::FromGrpc(status, options_.target);
          return response;
        });
  }

  absl::StatusOr<ServingStatus> CheckHealth(absl::string_view service,
                                            const CallOptions& call) override {
    const internal::CallLimits limits(call);
    if (absl::Status status = limits.CheckStart(); !status.ok()) return status;
    const std::shared_ptr<const Link> link = CurrentLink();
    if (!link->status.ok()) return link->status;
    auto health = internal::CheckHealth(link->channel, service, options_.target, limits);
    if (absl::IsUnavailable(health.status())) Drop(link);
    return health;
  }

 private:
  // Makes attempts until one succeeds or no other may follow. `attempt(link, limits, &pushback)`
  // starts from the beginning each time.
  template <typename Response, typename Attempt>
  absl::StatusOr<Response> WithRetries(const CallOptions& call, const Attempt& attempt) {
    const internal::CallLimits limits(call);
    if (absl::Status status = limits.CheckStart(); !status.ok()) return status;
    internal::RetryLoop retry(options_.retry, limits);
    while (true) {
      const std::shared_ptr<const Link> link = CurrentLink();
      if (!link->status.ok()) return link->status;
      internal::Pushback pushback;
      absl::StatusOr<Response> response = attempt(*link, limits, &pushback);
      if (response.ok()) return response;
      absl::Status status = response.status();
      // Also where this call gives up: the next one shall not fail of what this one found.
      if (absl::IsUnavailable(status)) Drop(link);
      if (!retry.PauseAfter(&status, pushback)) return status;
    }
  }

  // A call whose graphs go in chunks, whatever their size: `ask(stub, attempt)` is one attempt.
  template <typename Response, typename Ask>
  absl::StatusOr<Response> InChunks(const CallOptions& call, const Ask& ask) {
    return WithRetries<Response>(
        call,
        [&](const Link& link, const internal::CallLimits& limits,
            internal::Pushback* pushback) -> absl::StatusOr<Response> {
          internal::ProgressReporter progress(call);
          return ask(link.stub.get(),
                     {limits, options_.target, options_.chunk_bytes, &progress, pushback});
        });
  }

  absl::StatusOr<v1::RewriteResponse> UnaryRewrite(const Link& link, absl::string_view graph_def,
                                                   const v1::RewriteOptions& options,
                                                   const internal::CallLimits& limits,
                                                   internal::Pushback* pushback) {
    internal::RemoteCall call(limits);
    v1::RewriteRequest request;
    request.mutable_graph_def()->assign(graph_def.data(), graph_def.size());
    *request.mutable_options() = options;
    v1::RewriteResponse response;
    const grpc::Status status = link.stub->Rewrite(call.context(), request, &response);
    *pushback = call.pushback();
    if (!status.ok()) return internal::FromGrpc(status, options_.target);
    return response;
  }

  // A link that could not be made is made again: its files may be there by now.
  std::shared_ptr<const Link> CurrentLink() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (link_ == nullptr || !link_->status.ok()) link_ = std::make_shared<Link>(options_);
    return link_;
  }

  // Takes no more calls on a channel that failed: one that could not connect refuses calls for a
  // while (gRPC's own backoff) without trying, and keeps the certificates that it was made with.
  // Unless another thread has done so.
  void Drop(const std::shared_ptr<const Link>& failed) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (link_ == failed) link_ = nullptr;
  }

  const RemoteOptions options_;
  std::mutex mutex_;
  std::shared_ptr<const Link> link_;  // Null until a call needs it. Guarded by mutex_.
};

}  // namespace

std::shared_ptr<Connection> MakeRemoteConnection(const RemoteOptions& options) {
  return std::make_shared<RemoteConnection>(options);
}

}  // namespace spillway
