#include "tests/server/manual_clock.h"

#include <algorithm>
#include <utility>

namespace spillway::server {

struct ManualClock::Entry {
  std::mutex mu;      // Held while the callback runs, so that its timer's destructor waits for it.
  Callback callback;  // Null once the timer is destroyed. Guarded by mu.
};

class ManualClock::EntryTimer final : public Timer {
 public:
  explicit EntryTimer(std::shared_ptr<Entry> entry) : entry_(std::move(entry)) {}
  ~EntryTimer() override {
    const std::lock_guard lock(entry_->mu);
    entry_->callback = nullptr;
  }

 private:
  const std::shared_ptr<Entry> entry_;
};

absl::Time ManualClock::Now() const {
  const std::lock_guard lock(mu_);
  return now_;
}

std::unique_ptr<Clock::Timer> ManualClock::CallAt(absl::Time when, Callback callback) {
  auto entry = std::make_shared<Entry>();
  entry->callback = std::move(callback);
  const std::lock_guard lock(mu_);
  due_.emplace(when, entry);
  return std::make_unique<EntryTimer>(std::move(entry));
}

void ManualClock::Advance(absl::Duration duration) {
  std::unique_lock lock(mu_);
  const absl::Time end = now_ + duration;
  while (!due_.empty() && due_.begin()->first <= end) {
    now_ = std::max(now_, due_.begin()->first);
    const std::shared_ptr<Entry> entry = std::move(due_.begin()->second);
    due_.erase(due_.begin());
    lock.unlock();
    absl::Time next = absl::InfiniteFuture();
    {
      const std::lock_guard running(entry->mu);
      if (entry->callback != nullptr) next = entry->callback();
    }
    lock.lock();
    if (next != absl::InfiniteFuture()) due_.emplace(next, entry);
  }
  now_ = std::max(now_, end);
}

}  // namespace spillway::server
