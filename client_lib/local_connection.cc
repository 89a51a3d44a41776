#include "spillway/local_connection.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "client_lib/internal/call_limits.h"
#include "client_lib/internal/progress_reporter.h"
#include "client_lib/internal/service_names.h"
#include "rewrite_core/rewriter.h"

namespace spillway {
namespace {

class LocalConnection : public Connection {
 public:
  explicit LocalConnection(v1::Limits limits) : limits_(std::move(limits)) {}

  absl::StatusOr<v1::RewriteResponse> Rewrite(absl::string_view graph_def,
                                              const v1::RewriteOptions& options,
                                              const CallOptions& call) override {
    const internal::CallLimits limits(call);
    if (absl::Status status = limits.CheckStart(); !status.ok()) return status;
    internal::ProgressReporter(call).Report(Stage::kRewriting);
    return core::Rewrite(graph_def, options, limits_, limits.MakeStopToken());
  }

  absl::StatusOr<v1::GetCapabilitiesResponse> GetCapabilities(const CallOptions& call) override {
    if (absl::Status status = internal::CallLimits(call).CheckStart(); !status.ok()) return status;
    v1::GetCapabilitiesResponse response = core::Capabilities(limits_);
    v1::Limits& limits = *response.mutable_limits();
    // These concern a server alone: absent, not a figure that nobody enforces.
    limits.clear_max_unary_bytes();
    limits.clear_max_chunk_bytes();
    limits.clear_max_concurrent_requests();
    limits.clear_max_inflight_bytes();
    limits.clear_max_concurrent_streams();
    limits.clear_max_metadata_bytes();
    return response;
  }

  absl::StatusOr<ServingStatus> CheckHealth(absl::string_view service,
                                            const CallOptions& call) override {
    if (absl::Status status = internal::CallLimits(call).CheckStart(); !status.ok()) return status;
    return service.empty() || service == internal::kRewriteService ? ServingStatus::kServing
                                                                   : ServingStatus::kServiceUnknown;
  }

 private:
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
