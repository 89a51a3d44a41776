// A queue of serialized messages from a worker, which makes them, to gRPC, which sends one at a
// time.
//
// The sender is asleep or awake, at first asleep. A Push that finds it asleep wakes it, and the
// pushing thread acts as the sender: it takes a message and sends it. A Take that finds the queue
// empty puts the sender to sleep.
//
//   The worker:                                  The sender, when a message has been sent:
//     if (*queue.Push(message, stop)) TakeAndSend();   TakeAndSend();
//     ...                                            Or, if it could not be sent:
//     if (queue.Close()) TakeAndSend();                if (queue.Abandon()) TakeAndSend();
//
// Bounded: a client that does not read makes the worker wait, at most `max_wait` over all its
// pushes, at most kWaitWhileOthersDo while others wait for a worker, and not after its stop token
// has fired.
//
// Thread-safe for one pusher and one sender at a time. (std::mutex: see worker_pool.h.)
#ifndef SPILLWAY_SERVER_CALLS_MESSAGE_QUEUE_H_
#define SPILLWAY_SERVER_CALLS_MESSAGE_QUEUE_H_

#include <grpcpp/support/byte_buffer.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/stop_token.h"
#include "server/base/clock.h"

namespace spillway::server {

class MessageQueue {
 public:
  // A client that reads at all takes a buffer of the connection (64 KiB and more) within this.
  static constexpr absl::Duration kWaitWhileOthersDo = absl::Seconds(1);

  // At most `max_bytes` wait to be taken, or one message. `others_wait` says whether requests wait
  // for a worker. `clock` must outlive the queue.
  MessageQueue(int64_t max_bytes, absl::Duration max_wait, std::function<bool()> others_wait,
               const Clock& clock)
      : max_bytes_(max_bytes),
        max_wait_(max_wait),
        others_wait_(std::move(others_wait)),
        clock_(clock) {}

  // Appends `message` once there is room. Returns true if the sender was asleep: the calling thread
  // must then act as the sender. Errors: that of `stop`; CANCELLED if messages are not taken at
  // all, or not fast enough.
  absl::StatusOr<bool> Push(grpc::ByteBuffer message, const core::StopToken& stop) {
    const int64_t bytes = static_cast<int64_t>(message.Length());
    std::unique_lock lock(mu_);
    const auto ready = [&] {
      return abandoned_ || messages_.empty() || bytes <= max_bytes_ - bytes_;
    };
    if (!ready()) {
      absl::Time since = clock_.Now();
      do {
        if (stop.ShouldStop(1)) return stop.status("answer");
        if (waited_ >= max_wait_) return TooSlow(max_wait_, "");
        if (waited_ >= kWaitWhileOthersDo && others_wait_()) {
          return TooSlow(kWaitWhileOthersDo, " while other requests wait");
        }
        changed_.wait_for(lock, absl::ToChronoNanoseconds(kPollInterval), ready);
        const absl::Time now = clock_.Now();
        waited_ += now - std::exchange(since, now);
      } while (!ready());
    }
    if (abandoned_)
      return absl::CancelledError("the caller disconnected while the answer was sent");
    messages_.emplace_back();
    messages_.back().Swap(&message);  // A move, which the class does not have.
    bytes_ += bytes;
    return !std::exchange(awake_, true);
  }

  // Ends the queue. Returns true if the sender was asleep: the calling thread must then act as the
  // sender. Otherwise the sender will find the end, and the queue may be destroyed when this
  // returns.
  bool Close() {
    const std::lock_guard lock(mu_);
    closed_ = true;
    return !std::exchange(awake_, true);
  }

  enum class Next { kMessage, kNothingYet, kEnd };

  // Takes the next message; kNothingYet: the sender is now asleep.
  Next Take(grpc::ByteBuffer* message) {
    const std::lock_guard lock(mu_);
    if (messages_.empty()) {
      awake_ = closed_;
      return closed_ ? Next::kEnd : Next::kNothingYet;
    }
    message->Swap(&messages_.front());
    bytes_ -= static_cast<int64_t>(message->Length());
    messages_.pop_front();
    changed_.notify_one();
    return Next::kMessage;
  }

  // Called when the sender cannot send any more: drops the waiting messages, and makes later pushes
  // fail. Returns true if the queue is closed: the calling thread must then end the call. Otherwise
  // the thread that closes the queue will.
  bool Abandon() {
    const std::lock_guard lock(mu_);
    abandoned_ = true;
    messages_.clear();
    bytes_ = 0;
    awake_ = closed_;
    changed_.notify_one();
    return closed_;
  }

 private:
  // Interval at which a waiting pusher polls its stop token.
  static constexpr absl::Duration kPollInterval = absl::Milliseconds(20);

  static absl::Status TooSlow(absl::Duration waited, absl::string_view why) {
    return core::Error(
        absl::StatusCode::kCancelled, v1::ERROR_REASON_STOPPED,
        absl::StrCat("the client does not read the answer fast enough: the server waited ",
                     absl::FormatDuration(waited), " for it", why,
                     "; read while the server answers"));
  }

  const int64_t max_bytes_;
  const absl::Duration max_wait_;
  const std::function<bool()> others_wait_;
  const Clock& clock_;
  std::mutex mu_;  // Guards the rest.
  std::condition_variable changed_;
  std::deque<grpc::ByteBuffer> messages_;
  int64_t bytes_ = 0;  // Of messages_.
  absl::Duration waited_;
  bool awake_ = false;
  bool closed_ = false;
  bool abandoned_ = false;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_MESSAGE_QUEUE_H_
