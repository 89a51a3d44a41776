#include "spillway/local_connection.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "client_lib/internal/service_names.h"
#include "rewrite_core/rewriter.h"

namespace spillway {
namespace {

// The token of one call, after a first look at it: a call that is over before it starts must not
// depend on how soon the core's loops look.
absl::Status CheckStop(const core::StopToken& stop) {
  return stop.ShouldStop(1) ? stop.status("start") : absl::OkStatus();
}

core::StopToken MakeStop(const CallOptions& call) {
  return core::StopToken(absl::Now() + call.timeout, call.cancellation.flag());
}

class LocalConnection : public Connection {
 public:
  explicit LocalConnection(v1::Limits limits) : limits_(std::move(limits)) {}

  absl::StatusOr<v1::RewriteResponse> Rewrite(absl::string_view graph_def,
                                              const v1::RewriteOptions& options,
                                              const CallOptions& call) override {
    const core::StopToken stop = MakeStop(call);
    if (absl::Status status = CheckStop(stop); !status.ok()) return status;
    return core::Rewrite(graph_def, options, limits_, stop);
  }

  absl::StatusOr<v1::GetCapabilitiesResponse> GetCapabilities(const CallOptions& call) override {
    if (absl::Status status = CheckStop(MakeStop(call)); !status.ok()) return status;
    v1::GetCapabilitiesResponse response;
    response.set_version(core::Version());
    for (std::string& strategy : core::Strategies()) {
      response.add_strategies(std::move(strategy));
    }
    v1::Limits& limits = *response.mutable_limits();
    limits = limits_;
    // These concern a server alone: absent, not a figure that nobody enforces.
    limits.clear_max_unary_bytes();
    limits.clear_max_chunk_bytes();
    limits.clear_max_concurrent_requests();
    limits.clear_max_inflight_bytes();
    return response;
  }

  absl::StatusOr<ServingStatus> CheckHealth(absl::string_view service,
                                            const CallOptions& call) override {
    if (absl::Status status = CheckStop(MakeStop(call)); !status.ok()) return status;
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
