// Work in a child process, with an end that nothing can put off.
//
// A thread would not do. `spillway run` becomes another program at its deadline, whatever happens;
// exec waits for every thread, and a thread that hangs in a file system whose server is gone does
// not end. A child can be left behind.
#ifndef SPILLWAY_CLIENT_LIB_CLI_RUN_CHILD_H_
#define SPILLWAY_CLIENT_LIB_CLI_RUN_CHILD_H_

#include <atomic>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client_lib/internal/child_wait.h"

namespace spillway::cli {

// What the child is doing, for the parent's message when time is up. Must be string literals, e.g.
// "reading the graph": the child has them at the same address.
using ChildStage = std::atomic<const char*>;

using ChildWork = std::function<absl::StatusOr<std::string>(ChildStage& stage)>;

// An error with all that it carries, as bytes and back; INTERNAL for bytes that are none.
std::string ErrorToBytes(const absl::Status& status);
absl::Status ErrorFromBytes(const std::string& bytes);

// Forks, runs `work` in the child and returns its result, errors with all that they carry. The
// child has no standard input, output and error (all are /dev/null), is killed at the deadline and
// when this process dies, however that comes. So `work` must be safe to kill at any time.
//
// Errors of its own: DEADLINE_EXCEEDED (STOPPED) with the stage reached; RESOURCE_EXHAUSTED if
// there can be no child; INTERNAL if a signal ended it. In the first case alone a child that cannot
// be killed (it hangs in the kernel) may still be there.
//
// REQUIRES: this process has one thread, and has not used gRPC.
absl::StatusOr<std::string> RunInChild(const internal::Deadline& deadline, const ChildWork& work);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_RUN_CHILD_H_
