// The one place where an absl::Status becomes a grpc::Status.
#ifndef SPILLWAY_SERVER_BASE_STATUS_TO_GRPC_H_
#define SPILLWAY_SERVER_BASE_STATUS_TO_GRPC_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"
#include "spillway/v1/error.pb.h"

namespace spillway::server {

// Returns the same code and message, with a google.rpc.Status (v1::StatusDetails) with one
// google.rpc.ErrorInfo (v1::ErrorInfo) in the binary details. A status without a reason gets
// STOPPED or INTERNAL, so that every failed call carries one.
//
// The trailing metadata stays below the 8 KiB that gRPC peers accept by default: a long message is
// truncated, and ErrorInfo metadata that does not fit is dropped; reason and domain never are.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Returns the reason that ToGrpcStatus reports: that of `status`, or STOPPED or INTERNAL.
v1::ErrorReason ReportedReason(const absl::Status& status);

// Returns the name of a code as protocols and metrics spell it: `OK`, `INVALID_ARGUMENT`, ...
std::string CodeName(absl::StatusCode code);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_BASE_STATUS_TO_GRPC_H_
