// The names of a request in logs: the caller's own `x-request-id`, so that its logs and ours can be
// put side by side, or one made here; and the caller's `traceparent`, if it gave one. They go back
// in the trailing metadata of every rewrite; GetCapabilities and health checks, which are not
// logged, have none. And what the caller says of its job.
#ifndef SPILLWAY_SERVER_REQUEST_ID_H_
#define SPILLWAY_SERVER_REQUEST_ID_H_

#include <grpcpp/server_context.h>

#include <string>

#include "rewrite_core/base/request_names.h"

namespace spillway::server {

// The caller's id if it gave one that core::IsRequestId takes; otherwise 16 random hexadecimal
// digits. Thread-safe.
std::string RequestIdOf(const grpc::ServerContextBase& context);

// The caller's if core::IsTraceparent takes it; otherwise empty. Thread-safe.
std::string TraceparentOf(const grpc::ServerContextBase& context);

// What the caller says of its job (core::kJobKey and its like), each empty if it says nothing or
// what core::IsRequestId does not take. Claims: nothing is decided by them.
struct JobNames {
  std::string job, user, queue, model;
};

// Thread-safe.
JobNames JobNamesOf(const grpc::ServerContextBase& context);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_REQUEST_ID_H_
