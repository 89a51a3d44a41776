#include "spillway/client.h"

#include <utility>

#include "rewrite_core/graph/error.h"

namespace spillway {

Client::Client(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

absl::StatusOr<v1::RewriteResponse> Client::Rewrite(absl::string_view graph_def,
                                                    const v1::RewriteOptions& options,
                                                    const CallOptions& call) const {
  return connection_->Rewrite(graph_def, options, call);
}

absl::StatusOr<v1::RewriteResponse> Client::Strip(absl::string_view graph_def,
                                                  const CallOptions& call) const {
  v1::RewriteOptions options;
  options.mutable_strip();
  return connection_->Rewrite(graph_def, options, call);
}

absl::StatusOr<v1::GetCapabilitiesResponse> Client::GetCapabilities(const CallOptions& call) const {
  return connection_->GetCapabilities(call);
}

absl::StatusOr<ServingStatus> Client::CheckHealth(absl::string_view service,
                                                  const CallOptions& call) const {
  return connection_->CheckHealth(service, call);
}

v1::ErrorInfo ErrorInfoOf(const absl::Status& status) { return core::GetErrorInfo(status); }

}  // namespace spillway
