#include "server/base/error_fault.h"

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"

namespace spillway::server {

const char* FaultName(ErrorFault fault) {
  static constexpr const char* kNames[kFaultCount] = {"caller", "server", "capacity", "stopped"};
  return kNames[static_cast<int>(fault)];
}

// No default, so that the compiler reports missing values.
std::optional<ErrorFault> FaultOf(v1::ErrorReason reason) {
  switch (reason) {
    case v1::ERROR_REASON_MALFORMED_GRAPH:
    case v1::ERROR_REASON_EMPTY_GRAPH:
    case v1::ERROR_REASON_BAD_NODE_NAME:
    case v1::ERROR_REASON_DUPLICATE_NODE:
    case v1::ERROR_REASON_DANGLING_INPUT:
    case v1::ERROR_REASON_BAD_INPUT:
    case v1::ERROR_REASON_PORT_OUT_OF_RANGE:
    case v1::ERROR_REASON_CYCLE:
    case v1::ERROR_REASON_BAD_ATTRIBUTE:
    case v1::ERROR_REASON_LIMIT_EXCEEDED:
    case v1::ERROR_REASON_UNKNOWN_OPTION:
    case v1::ERROR_REASON_BAD_OPTION:
    case v1::ERROR_REASON_CONFLICTING_OPTIONS:
    case v1::ERROR_REASON_BAD_REGEX:
    case v1::ERROR_REASON_NAME_MATCHES_NOTHING:
    case v1::ERROR_REASON_NO_STARTING_OP:
    case v1::ERROR_REASON_SEARCH_TOO_LONG:
    case v1::ERROR_REASON_FOREIGN_REWRITE:
    case v1::ERROR_REASON_BAD_UNDO_RECORD:
    case v1::ERROR_REASON_RESULT_TOO_LARGE:
    case v1::ERROR_REASON_BAD_STREAM:
    case v1::ERROR_REASON_NO_BACKWARD_PART:
    case v1::ERROR_REASON_DOES_NOT_FIT:
    case v1::ERROR_REASON_UNKNOWN_CALLER:
    case v1::ERROR_REASON_BAD_PLAN:
    case v1::ERROR_REASON_OTHER_GRAPH:
      return ErrorFault::kCaller;
    case v1::ERROR_REASON_UNSPECIFIED:  // Each error should have one.
    case v1::ERROR_REASON_VERIFY_FAILED:
    case v1::ERROR_REASON_INTERNAL:
      return ErrorFault::kServer;
    case v1::ERROR_REASON_OVERLOADED:
      return ErrorFault::kCapacity;
    case v1::ERROR_REASON_STOPPED:
      return ErrorFault::kStopped;
    case v1::ErrorReason_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::ErrorReason_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return std::nullopt;
}

std::string ReasonName(v1::ErrorReason reason) {
  return std::string(absl::StripPrefix(v1::ErrorReason_Name(reason), "ERROR_REASON_"));
}

std::string ReasonLabel(v1::ErrorReason reason) {
  if (reason == v1::ERROR_REASON_UNSPECIFIED) return "none";
  return absl::AsciiStrToLower(ReasonName(reason));
}

std::vector<v1::ErrorReason> AllErrorReasons() {
  const google::protobuf::EnumDescriptor& descriptor = *v1::ErrorReason_descriptor();
  std::vector<v1::ErrorReason> reasons;
  for (int i = 0; i < descriptor.value_count(); ++i) {
    reasons.push_back(static_cast<v1::ErrorReason>(descriptor.value(i)->number()));
  }
  return reasons;
}

}  // namespace spillway::server
