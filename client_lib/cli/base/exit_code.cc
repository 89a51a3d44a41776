#include "client_lib/cli/base/exit_code.h"

#include "client_lib/cli/base/file_error.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

ExitCode ExitCodeOfStatusCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return ExitCode::kDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return ExitCode::kBadGraph;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return ExitCode::kServer;
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
      return ExitCode::kStopped;
    default:
      return ExitCode::kInternal;
  }
}

}  // namespace

ExitCode ExitCodeOf(const absl::Status& status) {
  if (IsFileError(status)) return ExitCode::kFile;
  // No default, so that -Wswitch demands an exit code for each new reason.
  switch (core::GetErrorReason(status)) {
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
    case v1::ERROR_REASON_SEARCH_TOO_LONG:
    case v1::ERROR_REASON_FOREIGN_REWRITE:
    case v1::ERROR_REASON_BAD_UNDO_RECORD:
    case v1::ERROR_REASON_RESULT_TOO_LARGE:
      return ExitCode::kBadGraph;
    case v1::ERROR_REASON_UNKNOWN_OPTION:
    case v1::ERROR_REASON_BAD_OPTION:
    case v1::ERROR_REASON_CONFLICTING_OPTIONS:
    case v1::ERROR_REASON_BAD_REGEX:
    case v1::ERROR_REASON_NAME_MATCHES_NOTHING:
    case v1::ERROR_REASON_NO_STARTING_OP:
    case v1::ERROR_REASON_NO_BACKWARD_PART:
    case v1::ERROR_REASON_BAD_PLAN:
    case v1::ERROR_REASON_OTHER_GRAPH:
      return ExitCode::kUsage;
    case v1::ERROR_REASON_OVERLOADED:
    case v1::ERROR_REASON_UNKNOWN_CALLER:
      return ExitCode::kServer;
    case v1::ERROR_REASON_DOES_NOT_FIT:
      return ExitCode::kDoesNotFit;
    case v1::ERROR_REASON_VERIFY_FAILED:
    case v1::ERROR_REASON_BAD_STREAM:
    case v1::ERROR_REASON_INTERNAL:
      return ExitCode::kInternal;
    case v1::ERROR_REASON_STOPPED:  // Stopped by the caller or the server, depending on the code.
    case v1::ERROR_REASON_UNSPECIFIED:  // No reason, or one from a newer server.
    case v1::ErrorReason_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::ErrorReason_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return ExitCodeOfStatusCode(status.code());
}

const char kExitCodeHelp[] =
    "Exit codes:\n"
    "  0  done, even if there was nothing to do\n"
    "  1  health: the server answered that it does not serve; diff: the graphs differ\n"
    "  2  the command line or the value of an option is invalid\n"
    "  3  the graph is invalid or exceeds a limit\n"
    "  4  a file cannot be read or written\n"
    "  5  the server cannot be reached or is overloaded; try again\n"
    "  6  the timeout has passed, or the program was interrupted\n"
    "  7  internal error: a bug in Spillway; please report it\n"
    "  8  no plan fits into the GPU's memory; the message says what would\n"
    "     suffice. simulate --require-fit: the step does not fit\n"
    "  9  it is unknown whether the step fits; the message says what is missing.\n"
    "     rewrite has written the graph; also simulate --require-fit\n"
    "  10 rewrite --keep-best: the search was ended; the best plan so far is written\n"
    "  126, 127  run: the command cannot be executed, or does not exist; otherwise\n"
    "     the exit code of run is that of its command";

}  // namespace spillway::cli
