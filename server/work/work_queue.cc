#include "server/work/work_queue.h"

#include <algorithm>
#include <iterator>

namespace spillway::server {
namespace {

// A request may wait for the larger of the target wait and this many times its own cost.
constexpr int kWaitsOfItsOwn = 2;

// The part of max_waiting_ that is available in addition for callers without waiting requests.
constexpr size_t kRoomForOthers = 4;

// The minimum cost of a request; without it, all of one caller's requests could go first.
constexpr absl::Duration kMinExpected = absl::Milliseconds(1);

}  // namespace

bool WorkQueue::TooLong(absl::Duration wait, const Work& work) const {
  return wait > target_wait_ && wait > kWaitsOfItsOwn * work.expected;
}

bool WorkQueue::AnyTooLong(absl::Time now) const {
  return std::any_of(waiting_.begin(), waiting_.end(), [&](const auto& entry) {
    return TooLong(now - entry.second.since, entry.second.work);
  });
}

void WorkQueue::Observe(bool too_long, absl::Time now) {
  if (now - fine_since_ >= kRelief) overloaded_ = false;
  if (too_long) {
    fine_since_ = absl::InfiniteFuture();
    too_long_since_ = std::min(too_long_since_, now);
    overloaded_ = overloaded_ || now - too_long_since_ >= kPatience;
  } else {
    too_long_since_ = absl::InfiniteFuture();
    fine_since_ = std::min(fine_since_, now);
  }
}

bool WorkQueue::HasRoom(const Work& work, size_t idle_workers) const {
  const size_t limit = max_waiting_ + idle_workers;
  if (waiting_.size() < limit) return true;
  // A caller that fills the queue does not lock out those with nothing in it.
  return waiting_.size() < limit + max_waiting_ / kRoomForOthers &&
         std::none_of(waiting_.begin(), waiting_.end(), [&work](const auto& entry) {
           return entry.second.work.caller == work.caller;
         });
}

WorkQueue::Verdict WorkQueue::Push(Work work, size_t idle_workers, bool taken_at_once,
                                   absl::Time now) {
  if (!taken_at_once && !HasRoom(work, idle_workers)) return Verdict::kFull;
  work.expected = std::max(work.expected, kMinExpected);
  const Flow flow = {work.caller, work.is_long()};
  const auto last = flows_.find(flow);
  const double from = last == flows_.end() ? served_ : std::max(last->second, served_);
  const Tag tag = {from + absl::ToDoubleSeconds(work.expected), pushed_++};
  if (waiting_.size() >= idle_workers && !taken_at_once) {
    absl::Duration before = running_ / 2;
    for (auto it = waiting_.begin(); it != waiting_.end() && it->first < tag; ++it) {
      before += it->second.work.expected;
    }
    const bool too_long = TooLong(before / workers_, work);
    Observe(too_long || AnyTooLong(now), now);
    if (overloaded_ && too_long) return Verdict::kOverloaded;
  }
  flows_[flow] = tag.first;
  waiting_work_ += work.expected;
  waiting_.emplace(tag, Waiting{std::move(work), now});
  return Verdict::kWaits;
}

Work WorkQueue::Take(std::map<Tag, Waiting>::iterator it) {
  Work work = std::move(it->second.work);
  waiting_.erase(it);
  waiting_work_ -= work.expected;
  return work;
}

bool WorkQueue::Has(Filter takes) const {
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [takes](const auto& entry) { return takes(entry.second.work); });
}

bool WorkQueue::Pop(Filter takes, absl::Time now, Work* work) {
  const auto it = std::find_if(waiting_.begin(), waiting_.end(),
                               [takes](const auto& entry) { return takes(entry.second.work); });
  if (it == waiting_.end()) return false;
  Observe(AnyTooLong(now), now);
  served_ = std::max(served_, it->first.first);
  *work = Take(it);
  running_ += work->expected;
  if (waiting_.empty()) Empty(now);
  if (flows_.size() > 2 * waiting_.size() + 64) {
    for (auto flow = flows_.begin(); flow != flows_.end();) {
      flow = flow->second <= served_ ? flows_.erase(flow) : std::next(flow);
    }
  }
  return true;
}

void WorkQueue::Empty(absl::Time now) {
  // No flow is ahead of another, and nothing waits.
  flows_.clear();
  served_ = 0;
  too_long_since_ = absl::InfiniteFuture();
  fine_since_ = std::min(fine_since_, now);
}

bool WorkQueue::Remove(uint64_t id, absl::Time now, Work* work) {
  const auto it = std::find_if(waiting_.begin(), waiting_.end(),
                               [id](const auto& entry) { return entry.second.work.id == id; });
  if (id == 0 || it == waiting_.end()) return false;
  *work = Take(it);
  // The caller is not charged for work that was not done.
  const auto flow = flows_.find({work->caller, work->is_long()});
  if (flow != flows_.end()) flow->second -= absl::ToDoubleSeconds(work->expected);
  if (waiting_.empty()) Empty(now);
  return true;
}

}  // namespace spillway::server
