#include "spillway/remote_connection.h"

#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "client_lib/internal/health_check.h"
#include "client_lib/internal/remote_call.h"
#include "client_lib/internal/status_conversion.h"
#include "client_lib/internal/stream_rewrite.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "rewrite_core/graph/error.h"
#include "spillway/v1/rewrite_service.grpc.pb.h"

namespace spillway {
namespace {

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& target) {
  grpc::ChannelArguments arguments;
  // A report that lists every decision is larger than gRPC's 4 MiB. The server's answers are ours.
  arguments.SetMaxReceiveMessageSize(std::numeric_limits<int>::max());
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

// Whether the server refused the message and not the graph: its limit for one message is lower than
// ours. gRPC itself refuses without a reason.
bool IsTooLargeForUnary(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) return false;
  const v1::ErrorReason reason = core::GetErrorReason(status);
  return reason == v1::ERROR_REASON_UNSPECIFIED || reason == v1::ERROR_REASON_LIMIT_EXCEEDED;
}

class RemoteConnection : public Connection {
 public:
  explicit RemoteConnection(RemoteOptions options)
      : options_(std::move(options)),
        channel_(MakeChannel(options_.target)),
        stub_(v1::RewriteService::NewStub(channel_)) {}

  absl::StatusOr<v1::RewriteResponse> Rewrite(absl::string_view graph_def,
                                              const v1::RewriteOptions& options,
                                              const CallOptions& call) override {
    const internal::CallLimits limits(call);
    if (absl::Status status = limits.CheckStart(); !status.ok()) return status;
    if (static_cast<int64_t>(graph_def.size()) <= options_.unary_max_bytes) {
      auto response = UnaryRewrite(graph_def, options, limits);
      if (!IsTooLargeForUnary(response.status())) return response;
    }
    return internal::StreamRewrite(stub_.get(), graph_def, options, options_, limits);
  }

  absl::StatusOr<v1::GetCapabilitiesResponse> GetCapabilities(const CallOptions& call) override {
    const internal::CallLimits limits(call);
    if (absl::Status status = limits.CheckStart(); !status.ok()) return status;
    internal::RemoteCall remote_call(limits);
    v1::GetCapabilitiesResponse response;
    const grpc::Status status =
        stub_->GetCapabilities(remote_call.context(), v1::GetCapabilitiesRequest(), &response);
    if (!status.ok()) return internal::FromGrpc(status, options_.target);
    return response;
  }

  absl::StatusOr<ServingStatus> CheckHealth(absl::string_view service,
                                            const CallOptions& call) override {
    const internal::CallLimits limits(call);
    if (absl::Status status = limits.CheckStart(); !status.ok()) return status;
    return internal::CheckHealth(channel_, service, options_.target, limits);
  }

 private:
  absl::StatusOr<v1::RewriteResponse> UnaryRewrite(absl::string_view graph_def,
                                                   const v1::RewriteOptions& options,
                                                   const internal::CallLimits& limits) {
    internal::RemoteCall call(limits);
    v1::RewriteRequest request;
    request.mutable_graph_def()->assign(graph_def.data(), graph_def.size());
    *request.mutable_options() = options;
    v1::RewriteResponse response;
    const grpc::Status status = stub_->Rewrite(call.context(), request, &response);
    if (!status.ok()) return internal::FromGrpc(status, options_.target);
    return response;
  }

  const RemoteOptions options_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::RewriteService::Stub> stub_;
};

}  // namespace

std::shared_ptr<Connection> MakeRemoteConnection(const RemoteOptions& options) {
  return std::make_shared<RemoteConnection>(options);
}

}  // namespace spillway
