#include "client_lib/cli/files/fd_wait.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace spillway::cli {

FdWaiter::FdWaiter(const CancellationToken& token)
    : token_(token),
      wake_fd_(eventfd(0, EFD_CLOEXEC)),
      callback_(std::make_unique<CancellationCallback>(
          token, [fd = wake_fd_] { eventfd_write(fd, 1); })) {}

FdWaiter::~FdWaiter() {
  callback_.reset();  // Destroyed first: it writes to the descriptor.
  if (wake_fd_ >= 0) close(wake_fd_);
}

bool FdWaiter::Wait(int fd, short events) {
  pollfd fds[] = {{fd, events, 0}, {wake_fd_, POLLIN, 0}};
  // An error of poll or of the descriptor is reported by the read or write that follows.
  do {
    if (token_.cancelled()) return false;
    if (poll(fds, 2, -1) < 0) continue;
  } while (fds[0].revents == 0);
  return !token_.cancelled();
}

}  // namespace spillway::cli
