// The queue of requests that wait for a worker: which runs next, and whether one more may wait.
//
// Fair: requests are taken as if each caller had its own worker at an equal share of the speed
// (self-clocked fair queueing: S. J. Golestani, INFOCOM 1994), separately for a caller's long and
// short requests, by expected cost. So a busy caller only delays its own requests, and short
// requests do not wait for long ones.
//
// Bounded by time: a request whose expected wait exceeds `target_wait` and twice its own cost waits
// too long; if that persists (kPatience), such requests are rejected. So bursts wait, while
// standing overload is rejected immediately, as in CoDel (RFC 8289).
//
// Not thread-safe (worker_pool.h locks); times are passed in.
#ifndef SPILLWAY_SERVER_WORK_WORK_QUEUE_H_
#define SPILLWAY_SERVER_WORK_WORK_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace spillway::server {

struct Work {
  std::function<void()> run;
  uint64_t id = 0;          // For Remove; 0: none.
  std::string caller;       // The account, or the host.
  absl::Duration expected;  // Expected time on one worker.

  // Work is long from here on.
  static constexpr absl::Duration kLong = absl::Milliseconds(300);
  bool is_long() const { return expected >= kLong; }
};

class WorkQueue {
 public:
  enum class Verdict { kWaits, kFull, kOverloaded };

  // Selects work for threads.
  using Filter = absl::FunctionRef<bool(const Work&)>;

  // How long waits must have been too long before requests are rejected, and short enough before
  // they no longer are.
  static constexpr absl::Duration kPatience = absl::Milliseconds(100);
  static constexpr absl::Duration kRelief = absl::Seconds(5);

  // At most `max_waiting` requests (plus a quarter, for callers without waiting ones) wait for
  // `workers` (at least 1). `target_wait` may be infinite.
  WorkQueue(int workers, size_t max_waiting, absl::Duration target_wait)
      : workers_(workers), max_waiting_(max_waiting), target_wait_(target_wait) {}

  // Adds `work`. `idle_workers` are about to take work, so that many more may wait;
  // `taken_at_once`: some thread takes it, regardless of waiting work. Unless the verdict is
  // kWaits, `work` is dropped. `now` must never decrease.
  [[nodiscard]] Verdict Push(Work work, size_t idle_workers, bool taken_at_once, absl::Time now);

  // Whether there is a request that `takes`.
  bool Has(Filter takes) const;
  // Takes the next one. Returns false if none.
  bool Pop(Filter takes, absl::Time now, Work* work);
  // Reports that work from Pop has ended.
  void Done(const Work& work) { running_ -= work.expected; }

  // Removes the request with this id. Returns false if it is not waiting.
  bool Remove(uint64_t id, absl::Time now, Work* work);

  size_t size() const { return waiting_.size(); }
  // The expected wait of one more request now, in first-come order.
  absl::Duration expected_wait() const { return (waiting_work_ + running_ / 2) / workers_; }

 private:
  using Flow = std::pair<std::string, bool>;  // Caller; whether long.
  // Virtual finish time at an equal share of the speed, in seconds of work; then order of arrival.
  using Tag = std::pair<double, uint64_t>;
  struct Waiting {
    Work work;
    absl::Time since;
  };

  bool TooLong(absl::Duration wait, const Work& work) const;
  bool AnyTooLong(absl::Time now) const;
  bool HasRoom(const Work& work, size_t idle_workers) const;
  // Called when waiting_ has become empty.
  void Empty(absl::Time now);
  // Records whether a request waits for too long.
  void Observe(bool too_long, absl::Time now);

  // Removes one from waiting_.
  Work Take(std::map<Tag, Waiting>::iterator it);

  const int workers_;
  const size_t max_waiting_;
  const absl::Duration target_wait_;
  std::map<Tag, Waiting> waiting_;
  absl::Duration waiting_work_, running_;
  double served_ = 0;  // The tag of the last request taken: the virtual time.
  uint64_t pushed_ = 0;
  std::map<Flow, double> flows_;  // The last tag of each flow, if ahead of served_.
  bool overloaded_ = false;
  absl::Time too_long_since_ = absl::InfiniteFuture();
  absl::Time fine_since_ = absl::InfiniteFuture();
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_WORK_WORK_QUEUE_H_
