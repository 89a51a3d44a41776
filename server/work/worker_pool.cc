#include "server/work/worker_pool.h"

#include <utility>

namespace spillway::server {

using Lengths = WorkQueue::Lengths;

WorkerPool::WorkerPool(int workers, size_t max_queued, absl::Duration target_wait,
                       const Clock& clock)
    : workers_(workers), clock_(clock), queue_(workers, max_queued, target_wait) {
  threads_.reserve(workers + 1);
  for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { Run(Lengths::kAll); });
  threads_.emplace_back([this] { Run(Lengths::kShort); });
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mu_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

WorkQueue::Verdict WorkerPool::TrySubmit(Work work) {
  const std::lock_guard lock(mu_);
  // What an idle worker is about to take does not wait.
  const WorkQueue::Verdict verdict = queue_.Push(std::move(work), idle_workers_, clock_.Now());
  // All of them: the one that wakes must not be the one for short work, which may not take this.
  if (verdict == WorkQueue::Verdict::kWaits) changed_.notify_all();
  return verdict;
}

bool WorkerPool::Remove(uint64_t id) {
  Work removed;  // Destroyed without the lock.
  const std::lock_guard lock(mu_);
  return queue_.Remove(id, clock_.Now(), &removed);
}

size_t WorkerPool::queued() const {
  const std::lock_guard lock(mu_);
  return queue_.size();
}

absl::Duration WorkerPool::expected_wait() const {
  const std::lock_guard lock(mu_);
  return queue_.expected_wait();
}

bool WorkerPool::MayTake(Lengths lengths) const {
  if (queue_.size() == 0) return false;
  return lengths == Lengths::kAll || (long_running_ == workers_ && queue_.has_short());
}

void WorkerPool::Run(Lengths lengths) {
  while (true) {
    Work work;
    {
      std::unique_lock lock(mu_);
      if (lengths == Lengths::kAll) ++idle_workers_;
      changed_.wait(lock, [&] { return stopping_ || MayTake(lengths); });
      if (lengths == Lengths::kAll) --idle_workers_;
      // Stopping: the workers do what is left.
      if (!MayTake(lengths) || !queue_.Pop(lengths, clock_.Now(), &work)) return;
      if (lengths == Lengths::kAll) long_running_ += work.is_long();
      if (long_running_ == workers_) changed_.notify_all();
    }
    work.run();
    work.run = nullptr;
    const std::lock_guard lock(mu_);
    queue_.Done(work);
    if (lengths == Lengths::kAll) long_running_ -= work.is_long();
  }
}

}  // namespace spillway::server
