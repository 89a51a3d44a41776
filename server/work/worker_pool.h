// A fixed number of threads with a queue, which do all work on graphs, so that gRPC's threads only
// move messages. work_queue.h decides which request is next, and which are rejected.
//
// Two extra threads keep one caller, or long work, from holding up everyone else. One takes short
// work while the workers are busy with work that is long, or has turned out so: then only work much
// shorter than that was expected to be, as it may turn out alike. The other takes work of callers
// that have none running: any while one caller has all workers; and short work while the workers
// are busy with long work of either kind.
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
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/work/work_queue.h"

namespace spillway::server {

class WorkerPool {
 public:
  // Starts `workers` (at least 1) threads and the extra ones. At most `max_queued` requests
  // wait for one, for about `target_wait` of `clock`, which must outlive it.
  WorkerPool(int workers, size_t max_queued, absl::Duration target_wait, const Clock& clock);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Runs the queued work, then ends the threads.
  ~WorkerPool();

  // Returns a new id for work that Remove may remove. Never 0.
  uint64_t NewId() { return next_id_.fetch_add(1, std::memory_order_relaxed); }

  [[nodiscard]] WorkQueue::Verdict TrySubmit(Work work);

  // Drops the work with this id if it is waiting. Returns false if it runs, has run, or was never
  // queued.
  bool Remove(uint64_t id);

  // Number of requests waiting for a thread, and the expected wait of one more. Thread-safe, like
  // the rest.
  size_t queued() const;
  absl::Duration expected_wait() const;

 private:
  // The state of a thread.
  struct Turn {
    bool busy = false;
    bool is_long = false;  // Expected to be.
    std::string caller;
    absl::Duration expected;
    absl::Time since;
  };

  void Run(size_t thread);
  // These REQUIRE that mu_ is held. Whether that thread may take that work.
  bool MayTake(size_t thread, const Work& work) const;
  // Whether all workers are busy with work that is expected to be long, or has lasted as long.
  bool AllLong() const;
  // Whether all work of the workers was expected to be long, or much longer than `work`.
  bool IsMuchShorter(const Work& work) const;
  bool AllOfOneCaller() const;
  bool Runs(const std::string& caller) const;

  const int workers_;
  const Clock& clock_;
  mutable std::mutex mu_;  // Guards the fields down to stopping_.
  std::condition_variable changed_;
  WorkQueue queue_;
  std::vector<Turn> turns_;  // By thread: workers, the one for short work, the one for others.
  bool stopping_ = false;
  std::atomic<uint64_t> next_id_{1};
  std::vector<std::thread> threads_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_WORK_WORKER_POOL_H_
