// Turns SIGINT and SIGTERM into a cancellation.
#ifndef SPILLWAY_CLIENT_LIB_CLI_INTERRUPT_H_
#define SPILLWAY_CLIENT_LIB_CLI_INTERRUPT_H_

#include <signal.h>

#include <atomic>
#include <thread>

#include "spillway/cancellation.h"

namespace spillway::cli {

// While it lives, either signal cancels `token`, and the program ends normally: temporary files are
// removed, and the exit code is 6. A further SIGINT ends it at once, as without this: files with
// temporary names (files/pending_file.h) may stay. Also ignores SIGPIPE and SIGXFSZ permanently: a
// write to a closed pipe, or beyond the file size limit, is an ordinary error.
//
// REQUIRES: created before the process has other threads, which must inherit its signal mask.
class InterruptWatcher {
 public:
  explicit InterruptWatcher(CancellationToken token);
  ~InterruptWatcher();

 private:
  CancellationToken token_;
  sigset_t signals_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_INTERRUPT_H_
