#include "client_lib/internal/child_wait.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "absl/time/clock.h"

namespace spillway::internal {
namespace {

// Far above any sensible timeout, far below a value that overflows a clock.
constexpr absl::Duration kMaxTimeout = absl::Hours(24 * 365);

}  // namespace

Deadline::Deadline(absl::Duration timeout)
    : timeout_(std::clamp(timeout, absl::ZeroDuration(), kMaxTimeout)),
      end_(std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout_)) {}

absl::Duration Deadline::Remaining() const {
  return std::max(absl::ZeroDuration(), absl::FromChrono(end_ - std::chrono::steady_clock::now()));
}

bool ReadUntil(const Deadline& deadline, int fd, size_t max_bytes, std::string* bytes) {
  char buffer[1 << 16];
  while (true) {
    const int64_t left_ms =
        absl::ToInt64Milliseconds(absl::Ceil(deadline.Remaining(), absl::Milliseconds(1)));
    pollfd poll_fd = {fd, POLLIN, 0};
    const int ready = poll(&poll_fd, 1, static_cast<int>(std::min<int64_t>(left_ms, INT_MAX)));
    if (ready == 0 && deadline.Remaining() <= absl::ZeroDuration()) return false;
    if (ready <= 0) continue;
    const ssize_t count = read(fd, buffer, sizeof(buffer));
    if (count == 0) return true;
    if (count > 0) bytes->append(buffer, count);
    if (bytes->size() > max_bytes) return false;
  }
}

int Reap(const Deadline& deadline, pid_t child) {
  while (true) {
    int status = 0;
    const pid_t gone = waitpid(child, &status, WNOHANG);
    if (gone == child) return status;
    if (gone < 0 && errno != EINTR) return 0;
    if (deadline.Remaining() <= absl::ZeroDuration()) return -1;
    absl::SleepFor(absl::Milliseconds(1));
  }
}

}  // namespace spillway::internal
