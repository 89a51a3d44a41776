// Whose matter an error is, so that an operator is woken by ours alone: fixed by its reason.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_SERVER_ERROR_FAULT_H_
#define SPILLWAY_SERVER_ERROR_FAULT_H_

#include <optional>
#include <string>
#include <vector>

#include "spillway/v1/error.pb.h"

namespace spillway::server {

enum class ErrorFault {
  kCaller,    // The graph, the options or the machine that the caller named: a job's owner.
  kServer,    // A bug of ours.
  kCapacity,  // There was no room, or a quota was used up: who runs the servers.
  kStopped,   // The caller went away, its time passed, or the server drained.
};
inline constexpr int kFaultCount = 4;
const char* FaultName(ErrorFault fault);

// Nothing for a value that this build does not know.
std::optional<ErrorFault> FaultOf(v1::ErrorReason reason);

// `DOES_NOT_FIT`: as ErrorInfo.reason has it; and as the label `reason` has it: `does_not_fit`,
// `none` for the unspecified one.
std::string ReasonName(v1::ErrorReason reason);
std::string ReasonLabel(v1::ErrorReason reason);

// All of the enum, the unspecified one first.
std::vector<v1::ErrorReason> AllErrorReasons();

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_ERROR_FAULT_H_
