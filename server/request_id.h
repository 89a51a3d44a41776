// The name of a request in logs: the caller's own `x-request-id`, so that its logs and ours can be
// put side by side, or one made here. It goes back in the trailing metadata of every rewrite;
// GetCapabilities and health checks, which are not logged, have none.
#ifndef SPILLWAY_SERVER_REQUEST_ID_H_
#define SPILLWAY_SERVER_REQUEST_ID_H_

#include <grpcpp/server_context.h>

#include <cstddef>
#include <string>

namespace spillway::server {

inline constexpr char kRequestIdKey[] = "x-request-id";
// Enough for a UUID or a traceparent; status_to_grpc.cc counts on it.
inline constexpr size_t kMaxRequestIdBytes = 128;

// The caller's id if it gave one of 1 to kMaxRequestIdBytes printable ASCII characters without
// space, quote or backslash; otherwise 16 random hexadecimal digits. Thread-safe.
std::string RequestIdOf(const grpc::ServerContextBase& context);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_REQUEST_ID_H_
