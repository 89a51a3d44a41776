#include "server/worker_pool.h"

#include <algorithm>
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

bool WorkerPool::TrySubmit(std::function<void()> task, uint64_t id) {
  const std::lock_guard lock(mu_);
  // A task that an idle worker is about to take does not wait, so it does not count.
  if (tasks_.size() >= max_queued_ + idle_workers_) return false;
  tasks_.push_back({std::move(task), id});
  changed_.notify_one();
  return true;
}

bool WorkerPool::Remove(uint64_t id) {
  Task removed;  // Destroyed without the lock.
  const std::lock_guard lock(mu_);
  const auto found =
      std::find_if(tasks_.begin(), tasks_.end(), [id](const Task& task) { return task.id == id; });
  if (id == 0 || found == tasks_.end()) return false;
  removed = std::move(*found);
  tasks_.erase(found);
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
      task = std::move(tasks_.front().run);
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace spillway::server
