// Runs work in a child process, with a deadline that always holds.
//
// A thread would not suffice. `spillway run` always becomes another program at its deadline; exec
// waits for every thread, and a thread that hangs in a file system whose server is gone does not
// end. A child can be left behind.
#ifndef SPILLWAY_CLIENT_LIB_CLI_RUN_CHILD_H_
#define SPILLWAY_CLIENT_LIB_CLI_RUN_CHILD_H_

#include <atomic>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client_lib/internal/child_wait.h"

namespace spillway::cli {

// The child's current activity, for the parent's message on a timeout. Must be a string literal,
// e.g. "reading the graph": the child has it at the same address.
using ChildStage = std::atomic<const char*>;

using ChildWork = std::function<absl::StatusOr<std::string>(ChildStage& stage)>;

// Converts an error with its payloads to bytes and back; INTERNAL for invalid bytes.
std::string ErrorToBytes(const absl::Status& status);
absl::Status ErrorFromBytes(const std::string& bytes);

// Forks, runs `work` in the child and returns its result, errors with their payloads. The child's
// standard input, output and error are /dev/null. It is killed at the deadline, and when this
// process dies for any reason, so `work` must be safe to kill at any time.
//
// Additional errors: DEADLINE_EXCEEDED (STOPPED) with the stage reached; RESOURCE_EXHAUSTED if no
// child can be created; INTERNAL if a signal ended it. Only in the first case may a child that
// cannot be killed (it hangs in the kernel) still exist.
//
// REQUIRES: this process has one thread, and has not used gRPC.
absl::StatusOr<std::string> RunInChild(const internal::Deadline& deadline, const ChildWork& work);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_RUN_CHILD_H_
