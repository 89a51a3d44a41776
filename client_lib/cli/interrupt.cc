#include "client_lib/cli/interrupt.h"

#include <pthread.h>

#include <utility>

namespace spillway::cli {

InterruptWatcher::InterruptWatcher(CancellationToken token) : token_(std::move(token)) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  // A thread, not a handler: few functions may be called from a handler.
  thread_ = std::thread([this] {
    int signal_number = 0;
    if (sigwait(&signals_, &signal_number) == 0 && !done_) token_.Cancel();
  });
}

InterruptWatcher::~InterruptWatcher() {
  done_ = true;
  // Wakes the thread if no signal has come. Otherwise it has ended or is ending, and ignores this
  // one.
  pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
}

}  // namespace spillway::cli
