#include "server/work/worker_pool.h"

#include <algorithm>
#include <utility>

namespace spillway::server {

WorkerPool::WorkerPool(int workers, size_t max_queued, absl::Duration target_wait,
                       const Clock& clock)
    : workers_(workers),
      clock_(clock),
      queue_(workers, max_queued, target_wait),
      turns_(workers + 2) {
  threads_.reserve(turns_.size());
  for (size_t i = 0; i < turns_.size(); ++i) threads_.emplace_back([this, i] { Run(i); });
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
  // Work about to go to an idle worker does not wait.
  const auto idle = std::count_if(turns_.begin(), turns_.begin() + workers_,
                                  [](const Turn& turn) { return !turn.busy; });
  bool at_once = false;
  for (size_t i = workers_; i < turns_.size(); ++i) {
    const auto takes = [this, i](const Work& other) { return MayTake(i, other); };
    at_once =
        at_once || (!turns_[i].busy && takes(work) && (!Runs(work.caller) || !queue_.Has(takes)));
  }
  const WorkQueue::Verdict verdict = queue_.Push(std::move(work), idle, at_once, clock_.Now());
  // All threads: a single one that wakes might not take this.
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

bool WorkerPool::AllLong() const {
  const absl::Time now = clock_.Now();
  return std::all_of(turns_.begin(), turns_.begin() + workers_, [&](const Turn& turn) {
    return turn.busy && (turn.is_long || now - turn.since >= Work::kLong);
  });
}

bool WorkerPool::IsMuchShorter(const Work& work) const {
  constexpr int kMuchShorter = 4;  // Estimates are off by two or three times (cost_estimate.h).
  return std::all_of(turns_.begin(), turns_.begin() + workers_, [&work](const Turn& turn) {
    return turn.is_long || kMuchShorter * work.expected <= turn.expected;
  });
}

bool WorkerPool::AllOfOneCaller() const {
  return std::all_of(turns_.begin(), turns_.begin() + workers_, [this](const Turn& turn) {
    return turn.busy && turn.caller == turns_[0].caller;
  });
}

bool WorkerPool::Runs(const std::string& caller) const {
  return std::any_of(turns_.begin(), turns_.end(),
                     [&caller](const Turn& turn) { return turn.busy && turn.caller == caller; });
}

bool WorkerPool::MayTake(size_t thread, const Work& work) const {
  const auto workers = static_cast<size_t>(workers_);
  if (thread < workers) return true;
  if (thread == workers) return !work.is_long() && AllLong() && IsMuchShorter(work);
  return !Runs(work.caller) && (AllOfOneCaller() || (!work.is_long() && AllLong()));
}

void WorkerPool::Run(size_t thread) {
  const auto takes = [this, thread](const Work& work) { return MayTake(thread, work); };
  const bool is_extra = thread >= static_cast<size_t>(workers_);
  std::unique_lock lock(mu_);
  while (true) {
    if (!queue_.Has(takes)) {
      // Stopping: the workers do the rest.
      if (stopping_) return;
      // Work of others turns out to be long as time passes.
      if (is_extra && queue_.size() > 0) {
        changed_.wait_for(lock, absl::ToChronoNanoseconds(Work::kLong));
      } else {
        changed_.wait(lock);
      }
      continue;
    }
    Work work;
    queue_.Pop(takes, clock_.Now(), &work);
    Turn& turn = turns_[thread];
    turn = {true, work.is_long(), work.caller, work.expected, clock_.Now()};
    if (queue_.size() > 0)
      changed_.notify_all();  // An extra thread may have become free to take it.
    lock.unlock();
    work.run();
    work.run = nullptr;
    lock.lock();
    turn = Turn();
    queue_.Done(work);
  }
}

}  // namespace spillway::server
