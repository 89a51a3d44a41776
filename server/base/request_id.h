// The ids of a request in logs: the caller's `x-request-id`, so that its logs can be matched with
// the server's, or a generated one; and the caller's `traceparent`, if any. Both are returned in
// the trailing metadata of every rewrite; GetCapabilities and health checks, which are not logged,
// have none. Also the caller's description of its job.
#ifndef SPILLWAY_SERVER_BASE_REQUEST_ID_H_
#define SPILLWAY_SERVER_BASE_REQUEST_ID_H_

#include <grpcpp/server_context.h>

#include <string>

#include "rewrite_core/base/request_names.h"

namespace spillway::server {

// Returns the caller's id if core::IsRequestId accepts it; otherwise 16 random hexadecimal digits.
// Thread-safe.
std::string RequestIdOf(const grpc::ServerContextBase& context);

// Returns the caller's traceparent if core::IsTraceparent accepts it; otherwise empty. Thread-safe.
std::string TraceparentOf(const grpc::ServerContextBase& context);

// The caller's description of its job (core::kJobKey and the like). A field is empty if it is not
// given or core::IsRequestId does not accept it. Unverified: no decision depends on them.
struct JobNames {
  std::string job, user, queue, model;
};

// Thread-safe.
JobNames JobNamesOf(const grpc::ServerContextBase& context);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_BASE_REQUEST_ID_H_
