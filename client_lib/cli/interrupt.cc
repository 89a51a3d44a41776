#include "client_lib/cli/interrupt.h"

#include <pthread.h>

#include <utility>

#include "absl/time/time.h"
#include "rewrite_core/base/steady_time.h"

namespace spillway::cli {
namespace {

// `timeout -s INT` signals a program and then its process group: that is one wish, not two.
constexpr absl::Duration kRepeats = absl::Milliseconds(200);

}  // namespace

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
    if (sigwait(&signals_, &signal_number) != 0 || done_) return;
    token_.Cancel();
    const absl::Time repeats = core::SteadyNow() + kRepeats;
    do {
      if (sigwait(&signals_, &signal_number) != 0 || done_) return;
    } while (signal_number != SIGINT || core::SteadyNow() < repeats);
    signal(SIGINT, SIG_DFL);
    raise(SIGINT);
    pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
  });
}

InterruptWatcher::~InterruptWatcher() {
  done_ = true;
  // Wakes the thread, which ignores this one.
  pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
}

}  // namespace spillway::cli
