#include "rewrite_core/strategy/budget/plan_changes.h"

#include <algorithm>

namespace spillway::core {
namespace {

// A buffer that is added comes back this many slots before it is used.
constexpr Slot kUseAhead = 30;
// A replacement has at least 1/kMinPart of the size of the buffer that it replaces.
constexpr int64_t kMinPart = 4;
constexpr int kMaxGateSlots = 9;
constexpr int kMaxStride = 7;  // Powers of two.

// Targets are raised in a run of 1/kShortestRun to 1/kLongestRun of the step's slots, by
// 1/kMinRaise of the budget to about 1/kMaxRaise.
constexpr int kShortestRun = 64;
constexpr int kLongestRun = 2;
constexpr int64_t kMinRaise = 256;
constexpr int64_t kMaxRaise = 16;

}  // namespace

// Knuth's linear congruential generator (MMIX), its upper bits.
int PlanChanges::Random(int count) {
  state_ = state_ * 6364136223846793005u + 1442695040888963407u;
  return static_cast<int>((state_ >> 33) % static_cast<uint64_t>(count));
}

void PlanChanges::Change(std::vector<Eviction>* evictions) {
  const int which = Random(static_cast<int>(evictions->size()));
  Eviction& eviction = (*evictions)[which];
  const Gap& gap = planner_.gaps()[eviction.gap];
  switch (Random(6)) {
    case 0:
    case 1: {
      const Slot stride = 1 << Random(kMaxStride);
      eviction.trigger += Random(2) == 0 ? stride : -stride;
      eviction.trigger = std::max(gap.after, std::min(gap.before - 1, eviction.trigger));
      return;
    }
    case 2:
      eviction.gate = Random(kMaxGateSlots);
      return;
    case 3:
      evictions->erase(evictions->begin() + which);
      return;
    case 4:  // Replace it.
      if (const int other = AnotherFor(gap, *evictions); other >= 0)
        eviction = Use(other, eviction.gate);
      return;
    case 5:  // Add one.
      if (const int other = AnotherFor(gap, *evictions); other >= 0)
        evictions->push_back(Use(other, 1));
      return;
  }
}

Eviction PlanChanges::Use(int32_t gap, int32_t gate) const {
  const Gap& taken = planner_.gaps()[gap];
  return {gap, std::max(taken.after, taken.before - kUseAhead), gate};
}

// Returns a random gap that is not among `evictions`, of a buffer not much smaller; -1 if the draw
// fails.
int PlanChanges::AnotherFor(const Gap& gap, const std::vector<Eviction>& evictions) {
  const int other = Random(static_cast<int>(planner_.gaps().size()));
  if (planner_.gaps()[other].bytes < gap.bytes / kMinPart ||
      std::any_of(evictions.begin(), evictions.end(),
                  [other](const Eviction& eviction) { return eviction.gap == other; })) {
    return -1;
  }
  return other;
}

void PlanChanges::Raise(int64_t budget_bytes, std::vector<int64_t>* targets) {
  const auto slots = static_cast<Slot>(targets->size());
  const Slot shortest = std::max<Slot>(1, slots / kShortestRun);
  const Slot run = shortest + Random(std::max<Slot>(1, slots / kLongestRun - shortest));
  const Slot first = Random(slots) - run / 2;
  const int64_t least = budget_bytes / kMinRaise + 1;
  const double range = static_cast<double>(budget_bytes / kMaxRaise);
  const int64_t by = least + static_cast<int64_t>(range * Random(1 << 10) / (1 << 10));
  for (Slot slot = std::max(0, first); slot < std::min(slots, first + run); ++slot) {
    (*targets)[slot] = std::min((*targets)[slot] + by, budget_bytes);
  }
}

}  // namespace spillway::core
