// Waits for a file descriptor or a cancellation: an idle pipe must not keep Ctrl-C from ending the
// program.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FILES_FD_WAIT_H_
#define SPILLWAY_CLIENT_LIB_CLI_FILES_FD_WAIT_H_

#include <memory>

#include "spillway/cancellation.h"

namespace spillway::cli {

// Not thread-safe.
class FdWaiter {
 public:
  explicit FdWaiter(const CancellationToken& token);
  ~FdWaiter();

  // Waits until `fd` has one of `events` (those of poll). Returns false if the token was cancelled.
  bool Wait(int fd, short events);

 private:
  const CancellationToken token_;
  const int wake_fd_;  // Readable once the token is cancelled.
  std::unique_ptr<CancellationCallback> callback_;
};

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FILES_FD_WAIT_H_
