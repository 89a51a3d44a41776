// Lets one thread end a call that another thread waits in.
//
//   spillway::CallOptions options;
//   spillway::CancellationToken token = options.cancellation;  // A copy is the same token.
//   std::thread watcher([token]() mutable { WaitForUser(); token.Cancel(); });
//   auto response = client.Rewrite(graph, rewrite_options, options);  // CANCELLED, within moments.
#ifndef SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_CANCELLATION_H_
#define SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_CANCELLATION_H_

#include <atomic>
#include <functional>
#include <memory>

#include "spillway/export.h"

namespace spillway {

// A flag that goes from "go on" to "cancelled" once and stays there. Copies share it. Thread-safe;
// Cancel is not async-signal-safe: call it from a thread, not from a signal handler.
class SPILLWAY_EXPORT CancellationToken {
 public:
  CancellationToken();

  // Ends every call that was given this token, now and later. Does nothing the second time.
  void Cancel();

  bool cancelled() const;

  // The flag itself, for loops that poll. Valid while a copy of this token exists.
  const std::atomic<bool>* flag() const;

 private:
  friend class CancellationCallback;
  struct State;
  std::shared_ptr<State> state_;
};

// Runs `callback` when `token` is cancelled, once, on the cancelling thread; right away, on this
// thread, if it is cancelled already. The destructor waits for a callback that is running, so that
// what it uses may go afterwards. The callback MUST be short and MUST NOT touch the token.
class SPILLWAY_EXPORT CancellationCallback {
 public:
  CancellationCallback(const CancellationToken& token, std::function<void()> callback);
  ~CancellationCallback();
  CancellationCallback(const CancellationCallback&) = delete;
  CancellationCallback& operator=(const CancellationCallback&) = delete;

 private:
  const std::shared_ptr<CancellationToken::State> state_;
  const std::function<void()> callback_;
};

}  // namespace spillway

#endif  // SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_CANCELLATION_H_
