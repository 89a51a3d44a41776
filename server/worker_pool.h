// A fixed number of threads and a bounded queue: where all work on graphs happens, so that gRPC's
// own threads never do more than move messages.
//
// Thread-safe. Tasks must not throw. (std::mutex and not Abseil's, here and in request_tracker.h:
// Debian's Abseil is not built for ThreadSanitizer, which then cannot check who holds it.)
#ifndef SPILLWAY_SERVER_WORKER_POOL_H_
#define SPILLWAY_SERVER_WORKER_POOL_H_

#include <condition_variable>
#include <cstddef>
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

  // Queues `task`, first in, first out. False, and `task` is dropped, if the queue is full.
  [[nodiscard]] bool TrySubmit(std::function<void()> task);

  // Tasks that wait for a thread.
  size_t queued() const;

 private:
  void Work();

  const size_t max_queued_;
  mutable std::mutex mu_;  // Guards the fields down to stopping_.
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  int idle_workers_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_WORKER_POOL_H_
