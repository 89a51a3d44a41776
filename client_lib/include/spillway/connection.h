// Where a Client's calls go: to the core in this process (local_connection.h), to a server
// (remote_connection.h), or to a mock in the tests of a program that uses this library.
#ifndef SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_CONNECTION_H_
#define SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_CONNECTION_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "spillway/cancellation.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway {

// What holds for one call.
struct CallOptions {
  // The call ends with DEADLINE_EXCEEDED when it has taken this long. Default: no limit. Zero or
  // less: it ends before it starts.
  absl::Duration timeout = absl::InfiniteDuration();

  // Cancel it from another thread to end the call with CANCELLED. Every CallOptions starts with a
  // token of its own; copies of one CallOptions share it.
  CancellationToken cancellation;
};

// The answer of a health check, as grpc.health.v1 has it.
enum class ServingStatus {
  kUnknown,
  kServing,
  kNotServing,
  kServiceUnknown,  // There is no service of that name.
};

// SERVING, NOT_SERVING, SERVICE_UNKNOWN or UNKNOWN.
absl::string_view ServingStatusName(ServingStatus status);

// The calls of the service. Implementations are thread-safe. See client.h for what each call means
// and for its errors.
class Connection {
 public:
  virtual ~Connection() = default;

  virtual absl::StatusOr<v1::RewriteResponse> Rewrite(absl::string_view graph_def,
                                                      const v1::RewriteOptions& options,
                                                      const CallOptions& call) = 0;

  virtual absl::StatusOr<v1::GetCapabilitiesResponse> GetCapabilities(const CallOptions& call) = 0;

  virtual absl::StatusOr<ServingStatus> CheckHealth(absl::string_view service,
                                                    const CallOptions& call) = 0;
};

}  // namespace spillway

#endif  // SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_CONNECTION_H_
