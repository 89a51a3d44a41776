// Lets one thread end a call on which another thread is waiting.
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

// A flag that can be set to "cancelled" once and stays set. Copies share it. Thread-safe, but
// Cancel is not async-signal-safe: call it from a thread, not from a signal handler.
class SPILLWAY_EXPORT CancellationToken {
 public:
  CancellationToken();

  // Ends every current and future call that has this token. A second call has no effect.
  void Cancel();

  bool cancelled() const;

  // The flag itself, for polling loops. Valid as long as any copy of this token exists.
  const std::atomic<bool>* flag() const;

 private:
  friend class CancellationCallback;
  struct State;
  std::shared_ptr<State> state_;
};

// Runs `callback` once when `token` is cancelled, on the cancelling thread; if `token` is already
// cancelled, the constructor runs it. The destructor waits for a running callback, so anything the
// callback uses may be destroyed afterwards. The callback MUST be short and MUST NOT touch the
// token.
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
