// A fixed number of threads and a bounded queue: where all work on graphs happens, so that gRPC's
// own threads never do more than move messages.
//
// Thread-safe. Tasks must not throw.
#ifndef SPILLWAY_SERVER_WORKER_POOL_H_
#define SPILLWAY_SERVER_WORKER_POOL_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

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
  bool HasTaskOrStops() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopping_ || !tasks_.empty();
  }

  const size_t max_queued_;
  mutable absl::Mutex mu_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mu_);
  int idle_workers_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_WORKER_POOL_H_
