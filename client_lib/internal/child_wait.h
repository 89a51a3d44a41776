// Waiting for a child process, with a deadline that always holds.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_CHILD_WAIT_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_CHILD_WAIT_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>

#include "absl/time/time.h"

namespace spillway::internal {

// A point in time on the monotonic clock.
class Deadline {
 public:
  // `timeout` from now; at most a year.
  explicit Deadline(absl::Duration timeout);

  // Zero once it has passed.
  absl::Duration Remaining() const;

  absl::Duration timeout() const { return timeout_; }

 private:
  absl::Duration timeout_;
  std::chrono::steady_clock::time_point end_;
};

// Appends everything read from `fd`, up to end of file, to `bytes`. Returns false if the deadline
// passed first or there were more than `max_bytes`.
bool ReadUntil(const Deadline& deadline, int fd, size_t max_bytes, std::string* bytes);

// Returns the child's wait status; 0 if there is no child to wait for (SIGCHLD is ignored); -1 if
// it has not exited by the deadline.
int Reap(const Deadline& deadline, pid_t child);

// The time allowed for a killed child to exit. It takes longer only if the kernel hangs.
inline constexpr absl::Duration kReapTime = absl::Seconds(1);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_CHILD_WAIT_H_
