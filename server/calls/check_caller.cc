#include "server/calls/check_caller.h"

#include <string>

#include "server/access/credentials.h"
#include "server/base/caller.h"
#include "server/base/logging.h"
#include "server/base/status_to_grpc.h"
#include "server/memory/guarded.h"

namespace spillway::server {

absl::Status CheckCaller(const grpc::ServerContextBase& context, absl::string_view method,
                         ServiceState& state) {
  if (state.access == nullptr) return absl::OkStatus();
  return Guarded([&] {
    const Caller caller = CallerOf(context);
    absl::Status status = state.access->Find(CredentialsOf(context, caller)).status();
    if (status.ok()) return status;
    // Attempts to guess tokens are counted.
    state.metrics.CountRejected(RejectReason::kUnknownCaller);
    Log(LogLevel::kInfo, "request",
        {{"method", std::string(method)},
         {"code", CodeName(status.code())},
         {"peer", caller.peer},
         {"error", std::string(status.message())}});
    return status;
  });
}

}  // namespace spillway::server
