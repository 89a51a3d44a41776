#include "server/worker_pool.h"

#include <utility>

namespace spillway::server {

WorkerPool::WorkerPool(int workers, size_t max_queued) : max_queued_(max_queued) {
  threads_.reserve(workers);
  for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { Work(); });
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mu_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool WorkerPool::TrySubmit(std::function<void()> task) {
  const std::lock_guard lock(mu_);
  // A task that an idle worker is about to take does not wait, so it does not count.
  if (tasks_.size() >= max_queued_ + idle_workers_) return false;
  tasks_.push_back(std::move(task));
  changed_.notify_one();
  return true;
}

size_t WorkerPool::queued() const {
  const std::lock_guard lock(mu_);
  return tasks_.size();
}

void WorkerPool::Work() {
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock lock(mu_);
      ++idle_workers_;
      changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      --idle_workers_;
      if (tasks_.empty()) return;  // Stopping, and nothing is left.
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace spillway::server
