// Waiting for a child process, with an end that nothing can put off.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_CHILD_WAIT_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_CHILD_WAIT_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>

#include "absl/time/time.h"

namespace spillway::internal {

// A point in time that setting the clock does not move.
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

// Appends what comes from `fd` to `bytes`, to the end. False: the deadline passed first, or there
// was more than `max_bytes`.
bool ReadUntil(const Deadline& deadline, int fd, size_t max_bytes, std::string* bytes);

// The child's wait status; 0 if there is nobody to wait for (SIGCHLD is ignored); -1 if it is not
// gone by the deadline.
int Reap(const Deadline& deadline, pid_t child);

// How long a killed child may take to be gone: it takes longer only where the kernel hangs.
inline constexpr absl::Duration kReapTime = absl::Seconds(1);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_CHILD_WAIT_H_
