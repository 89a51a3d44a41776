// Whether the server knows a caller, for methods that do no work on graphs; call.h checks the
// others.
#ifndef SPILLWAY_SERVER_CALLS_CHECK_CALLER_H_
#define SPILLWAY_SERVER_CALLS_CHECK_CALLER_H_

#include <grpcpp/server_context.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/calls/service_state.h"

namespace spillway::server {

// Returns OK without --access-file, and for known callers. Otherwise UNAUTHENTICATED, counted, and
// logged as a call of `method`.
absl::Status CheckCaller(const grpc::ServerContextBase& context, absl::string_view method,
                         ServiceState& state);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_CHECK_CALLER_H_
