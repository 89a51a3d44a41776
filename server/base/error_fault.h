// Who is responsible for an error, as determined by its reason, so that operators are alerted only
// to the server's own.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_SERVER_BASE_ERROR_FAULT_H_
#define SPILLWAY_SERVER_BASE_ERROR_FAULT_H_

#include <optional>
#include <string>
#include <vector>

#include "spillway/v1/error.pb.h"

namespace spillway::server {

enum class ErrorFault {
  kCaller,    // The graph, the options or the given machine: the job's owner.
  kServer,    // A bug in Spillway.
  kCapacity,  // No capacity, or a quota was used up: the operator.
  kStopped,   // The caller disconnected, its deadline passed, or the server drained.
};
inline constexpr int kFaultCount = 4;
const char* FaultName(ErrorFault fault);

// Returns nothing for a value that this build does not know.
std::optional<ErrorFault> FaultOf(v1::ErrorReason reason);

// The spelling in ErrorInfo.reason (`DOES_NOT_FIT`), and in the label `reason` (`does_not_fit`;
// `none` for the unspecified one).
std::string ReasonName(v1::ErrorReason reason);
std::string ReasonLabel(v1::ErrorReason reason);

// Returns all values of the enum, the unspecified one first.
std::vector<v1::ErrorReason> AllErrorReasons();

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_BASE_ERROR_FAULT_H_
