// Internal. Converts gRPC statuses to those that the core would have returned.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_STATUS_CONVERSION_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_STATUS_CONVERSION_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/status.h"

namespace spillway::internal {

// The URL of a payload that marks an error as permanent: another attempt would fail the same way.
inline constexpr char kNoRetryUrl[] = "spillway.v1/no-retry";

// Converts the `status` of a call to the server `target`. Keeps code and message, and the details
// that the server attached (the trailing metadata grpc-status-details-bin): each becomes a payload
// under its type URL, including the v1::ErrorInfo.
//
// Errors without an ErrorInfo come from gRPC, on either side. Their messages are replaced: an
// unreachable server is named, and a stopped call has the reason STOPPED as in process.
absl::Status FromGrpc(const grpc::Status& status, absl::string_view target);

// Whether gRPC reports that the server does not implement the method.
bool IsUnknownMethod(const absl::Status& status);

// Returns the error for that if the server does have spillway.v1, in an older version than
// `method`.
absl::Status TooOldFor(absl::string_view method, absl::string_view target,
                       absl::string_view server_version);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_STATUS_CONVERSION_H_
