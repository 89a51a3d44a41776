// Which of the requests that wait for a worker runs next, and whether one more may wait.
//
// Fair: requests are taken as if each peer had a worker of its own at an equal share of the speed
// (self-clocked fair queueing: S. J. Golestani, INFOCOM 1994), long and short ones of a peer apart,
// by what each is expected to take. So a peer that sends much waits for itself, and what is short
// does not wait for what is long.
//
// Bounded by time: a request that is expected to wait for longer than `target_wait`, and than twice
// what it takes itself, is one too many; if that goes on (kPatience), it is refused. So a
// burst waits, and standing overload is refused at once, in the manner of CoDel (RFC 8289).
//
// Not thread-safe (worker_pool.h locks); knows no clock.
#ifndef SPILLWAY_SERVER_WORK_QUEUE_H_
#define SPILLWAY_SERVER_WORK_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/time/time.h"

namespace spillway::server {

struct Work {
  std::function<void()> run;
  uint64_t id = 0;  // For Remove; 0: none.
  std::string peer;
  absl::Duration expected;  // What it will take of one worker.

  // From here on it is long.
  static constexpr absl::Duration kLong = absl::Milliseconds(300);
  bool is_long() const { return expected >= kLong; }
};

class WorkQueue {
 public:
  enum class Verdict { kWaits, kFull, kOverloaded };
  enum class Lengths { kAll, kShort };

  // How long waits must have been too long before any is refused; and short enough, before none is.
  static constexpr absl::Duration kPatience = absl::Milliseconds(100);
  static constexpr absl::Duration kRelief = absl::Seconds(5);

  // At most `max_waiting` (and a quarter, for peers of whom nothing waits) wait for `workers` (at
  // least 1). `target_wait` may be infinite.
  WorkQueue(int workers, size_t max_waiting, absl::Duration target_wait)
      : workers_(workers), max_waiting_(max_waiting), target_wait_(target_wait) {}

  // `idle_workers` are about to take what waits: that many more may wait. Unless the verdict is
  // kWaits, `work` is dropped. `now` never goes back.
  [[nodiscard]] Verdict Push(Work work, size_t idle_workers, absl::Time now);

  // Takes the next one, of those that are not long if asked so. False: there is none.
  bool Pop(Lengths lengths, absl::Time now, Work* work);
  // What Pop gave has ended.
  void Done(const Work& work) { running_ -= work.expected; }

  // Takes out the one of that id. False: it does not wait.
  bool Remove(uint64_t id, absl::Time now, Work* work);

  size_t size() const { return waiting_.size(); }
  bool has_short() const { return num_short_ > 0; }
  // What one more request would wait for now, if none were before others.
  absl::Duration expected_wait() const { return (waiting_work_ + running_ / 2) / workers_; }

 private:
  using Flow = std::pair<std::string, bool>;  // Peer, long or not.
  // When it would end at an equal share of the speed, in seconds of work; then first come.
  using Tag = std::pair<double, uint64_t>;
  struct Waiting {
    Work work;
    absl::Time since;
  };

  bool TooLong(absl::Duration wait, const Work& work) const;
  bool AnyTooLong(absl::Time now) const;
  bool HasRoom(const Work& work, size_t idle_workers) const;
  // The last of waiting_ has gone.
  void Empty(absl::Time now);
  // Notes whether something waits for too long.
  void Observe(bool too_long, absl::Time now);

  // Takes one out of waiting_.
  Work Take(std::map<Tag, Waiting>::iterator it);

  const int workers_;
  const size_t max_waiting_;
  const absl::Duration target_wait_;
  std::map<Tag, Waiting> waiting_;
  absl::Duration waiting_work_, running_;
  size_t num_short_ = 0;  // Of waiting_.
  double served_ = 0;     // The tag of what was taken last: the clock of fairness.
  uint64_t pushed_ = 0;
  std::map<Flow, double> flows_;  // The last tag of each, if it is ahead of served_.
  bool overloaded_ = false;
  absl::Time too_long_since_ = absl::InfiniteFuture();
  absl::Time fine_since_ = absl::InfiniteFuture();
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_WORK_QUEUE_H_
