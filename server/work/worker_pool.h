// A fixed number of threads with a queue, which do all work on graphs, so that gRPC's threads only
// move messages. work_queue.h decides which request is next, and which are rejected.
//
// One extra thread takes short work while all others are busy with long work, so that short work
// never waits for long work.
//
// Thread-safe. Work must not throw. (std::mutex and not Abseil's, here and in request_tracker.h:
// Debian's Abseil is not built for ThreadSanitizer, which then cannot track its mutexes.)
#ifndef SPILLWAY_SERVER_WORK_WORKER_POOL_H_
#define SPILLWAY_SERVER_WORK_WORKER_POOL_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/work/work_queue.h"

namespace spillway::server {

class WorkerPool {
 public:
  // Starts `workers` (at least 1) threads and the one for short work. At most `max_queued` requests
  // wait for one, for about `target_wait` of `clock`, which must outlive it.
  WorkerPool(int workers, size_t max_queued, absl::Duration target_wait, const Clock& clock);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Runs what is still queued, then ends the threads.
  ~WorkerPool();

  // Returns a new id for work that Remove may remove. Never 0.
  uint64_t NewId() { return next_id_.fetch_add(1, std::memory_order_relaxed); }

  [[nodiscard]] WorkQueue::Verdict TrySubmit(Work work);

  // Drops the work with this id if it is waiting. Returns false if it runs, has run, or was never
  // queued.
  bool Remove(uint64_t id);

  // Number of requests waiting for a thread, and the expected wait of one more.
  size_t queued() const;
  absl::Duration expected_wait() const;

 private:
  void Run(WorkQueue::Lengths lengths);
  // Whether a thread has work to do. REQUIRES: mu_ is held.
  bool MayTake(WorkQueue::Lengths lengths) const;

  const int workers_;
  const Clock& clock_;
  mutable std::mutex mu_;  // Guards the fields down to stopping_.
  std::condition_variable changed_;
  WorkQueue queue_;
  int idle_workers_ = 0;
  int long_running_ = 0;  // On the worker threads.
  bool stopping_ = false;
  std::atomic<uint64_t> next_id_{1};
  std::vector<std::thread> threads_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_WORK_WORKER_POOL_H_
