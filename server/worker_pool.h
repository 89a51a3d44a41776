// A fixed number of threads and a bounded queue: where all work on graphs happens, so that gRPC's
// own threads never do more than move messages.
//
// Thread-safe. Tasks must not throw. (std::mutex and not Abseil's, here and in request_tracker.h:
// Debian's Abseil is not built for ThreadSanitizer, which then cannot check who holds it.)
#ifndef SPILLWAY_SERVER_WORKER_POOL_H_
#define SPILLWAY_SERVER_WORKER_POOL_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace spillway::server {

class WorkerPool {
 public:
  // Starts `workers` (at least 1) threads. At most `max_queued` tasks wait for one.
  WorkerPool(int workers, size_t max_queued);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Runs the tasks still queued, then ends the threads.
  ~WorkerPool();

  // Names a task that Remove may be asked for. Never 0.
  uint64_t NewId() { return next_id_.fetch_add(1, std::memory_order_relaxed); }

  // Queues `task`, first in, first out. False, and `task` is dropped, if the queue is full. `id`:
  // of NewId, or 0.
  [[nodiscard]] bool TrySubmit(std::function<void()> task, uint64_t id = 0);

  // Drops the task of that id, if it waits. False: it runs, has run, or was never queued.
  bool Remove(uint64_t id);

  // Tasks that wait for a thread.
  size_t queued() const;

 private:
  struct Task {
    std::function<void()> run;
    uint64_t id;
  };

  void Work();

  const size_t max_queued_;
  mutable std::mutex mu_;  // Guards the fields down to stopping_.
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  int idle_workers_ = 0;
  bool stopping_ = false;
  std::atomic<uint64_t> next_id_{1};
  std::vector<std::thread> threads_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_WORKER_POOL_H_
