// Internal. What gRPC reports, as the status that the core would have given.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_STATUS_CONVERSION_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_STATUS_CONVERSION_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/status.h"

namespace spillway::internal {

// A payload with this URL says that another attempt would fail the same way.
inline constexpr char kNoRetryUrl[] = "spillway.v1/no-retry";

// `status` of a call to the server `target`. Code and message stay, and so do the details that the
// server attached (the trailing metadata grpc-status-details-bin): each is a payload under its type
// URL, the v1::ErrorInfo among them.
//
// Errors without an ErrorInfo were made by gRPC, on either side, and get a message of ours: what
// cannot be reached is named, what was stopped has the reason STOPPED as in process.
absl::Status FromGrpc(const grpc::Status& status, absl::string_view target);

// Whether gRPC says that the server does not have the method.
bool IsUnknownMethod(const absl::Status& status);

// What to say of it where the server does have spillway.v1: `method` came later than its version.
absl::Status TooOldFor(absl::string_view method, absl::string_view target,
                       absl::string_view server_version);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_STATUS_CONVERSION_H_
