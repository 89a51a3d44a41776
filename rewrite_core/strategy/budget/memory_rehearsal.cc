#include "rewrite_core/strategy/budget/memory_rehearsal.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "rewrite_core/simulate/simulator.h"
#include "rewrite_core/strategy/budget/room_window.h"

namespace spillway::core {
namespace {

// Limits on making room in one rehearsal: at most kMaxRooms times, and at most kMaxLookedAt buffers
// visited in total, as each time visits all of them.
constexpr int64_t kMaxRooms = 64;
constexpr int64_t kMaxLookedAt = 2'000'000;

// Without a gate to hold the launcher back, a trigger has run about this many slots after its
// launch.
constexpr int32_t kNoGateSlots = 8;

// The maximum number of repairs of a plan; three suffice, or none do.
constexpr int kMaxRehearsals = 6;

// The maximum number of slots in all rehearsals together. (The search begins with some 40 plans, of
// two to three rehearsals each.)
constexpr int64_t kMaxSlots = 8'000'000;

}  // namespace

MemoryRehearsal::MemoryRehearsal(const StepOrder& order, const BudgetPlanner& planner,
                                 int64_t budget_bytes, const StopToken& stop)
    : order_(order), planner_(planner), budget_bytes_(budget_bytes), poll_(stop) {
  made_.resize(order.num_slots());
  last_used_.resize(order.num_slots());
  copies_ended_.resize(order.num_slots());
  for (OrderBuffer i(0); i < order.num_buffers(); ++i) {
    if (poll_.Tick()) return;
    made_[order.made(i)].push_back(i);
    last_used_[order.last_used(i)].push_back(i);
  }
  for (size_t i = 0; i < order.copies_in().size(); ++i) {
    if (poll_.Tick()) return;
    copies_ended_[order.copies_in()[i].last].push_back(order.copied_in(i));
  }
}

void MemoryRehearsal::Begin(const std::vector<Eviction>& evictions, int32_t gate_slots) {
  const size_t slots = made_.size(), gaps = planner_.gaps().size();
  gate_slots_ = gate_slots;
  allocator_.Reset(budget_bytes_, planner_.hardware().max_fragmentation_bytes());
  evictions_.clear();
  chunks_.assign(order_.num_all(), kNoChunk);
  left_ns_.assign(order_.num_all(), -1);
  back_ns_.assign(gaps, -1);
  used_as_.assign(gaps, -1);
  delay_.assign(gaps, 0);
  for (auto* first : {&after_, &before_, &asking_}) first->assign(slots, kNoGap);
  for (auto* next : {&next_after_, &next_before_, &next_asking_}) next->assign(gaps, kNoGap);
  waiting_.clear();
  least_waiting_ = kUnlimited;
  leaving_.clear();
  ended_ns_.assign(slots, 0);
  launcher_ns_ = out_ns_ = in_ns_ = 0;
  next_copy_ = 0;
  rooms_ = 0;
  for (const Eviction& eviction : evictions) {
    if (poll_.Tick()) return;
    Use(eviction);
    left_ns_[planner_.gaps()[eviction.gap].buffer] = 0;
  }
}

// Adds the gap to those in use: its buffer is away during it.
void MemoryRehearsal::Use(const Eviction& eviction) {
  const Gap& gap = planner_.gaps()[eviction.gap];
  used_as_[eviction.gap] = static_cast<int32_t>(evictions_.size());
  evictions_.push_back(eviction);
  if (gap.after != kNoSlot) {
    next_after_[eviction.gap] = after_[gap.after];
    after_[gap.after] = eviction.gap;
  }
  next_before_[eviction.gap] = before_[gap.before];
  before_[gap.before] = eviction.gap;
  AskAt(eviction.gap, Slot(eviction.trigger + (eviction.gate < 0 ? kNoGateSlots : eviction.gate)));
}

void MemoryRehearsal::AskAt(GapId gap, Slot slot) {
  slot = std::min(slot, planner_.gaps()[gap].last_trigger());
  next_asking_[gap] = asking_[slot];
  asking_[slot] = gap;
}

MemoryRehearsal::Findings MemoryRehearsal::Rehearse(const std::vector<Eviction>& evictions,
                                                    int32_t gate_slots) {
  Begin(evictions, gate_slots);
  Findings findings;
  findings.fits = order_.resident_bytes() == 0 ||
                  allocator_.Allocate(AllocatedBytes(order_.resident_bytes())) != kNoChunk;
  for (Slot slot(0); slot < order_.num_slots() && findings.fits; ++slot) {
    findings.fits = !poll_.Tick() && RehearseSlot(slot);
  }
  findings.is_stopped = poll_.stopped();
  findings.is_clean = findings.fits && rooms_ == 0;
  if (!ended_ns_.empty()) findings.step_time_ns = std::max(ended_ns_.back(), in_ns_);
  findings.evictions = std::move(evictions_);
  return findings;
}

bool MemoryRehearsal::RehearseSlot(Slot slot) {
  for (GapId gap = before_[slot]; gap != kNoGap; gap = next_before_[gap]) {
    if (poll_.Tick() || !BringBack(gap, slot)) return false;
  }
  if (slot > 0)
    launcher_ns_ +=
        std::min(order_.launch_ns(),
                 std::max<int64_t>(0, order_.given_ns(slot) - order_.given_ns(Slot(slot - 1))));
  if (!Make(slot)) return false;
  LetGo(slot);
  Ask(slot);
  return true;
}

// Brings the buffer of the gap back before `slot` uses it.
bool MemoryRehearsal::BringBack(GapId index, Slot slot) {
  if (back_ns_[index] < 0) {
    const OrderBuffer buffer = planner_.gaps()[index].buffer;
    while (chunks_[buffer] != kNoChunk && !leaving_.empty()) {
      launcher_ns_ = std::max(launcher_ns_, leaving_.front().end_ns);
      FreeWhatLeft();
    }
    if (chunks_[buffer] == kNoChunk &&
        !Place(planner_.gaps()[index].bytes, slot, &chunks_[buffer])) {
      return false;
    }
    in_ns_ = std::max({in_ns_, launcher_ns_, slot > 0 ? ended_ns_[slot - 1] : 0}) +
             planner_.gaps()[index].in_ns;
    back_ns_[index] = in_ns_;
  }
  launcher_ns_ = std::max(launcher_ns_, back_ns_[index]);
  return true;
}

// Whether the plan calls the copy in for its first use, in place of the step's own copy.
bool MemoryRehearsal::ComesLater(OrderBuffer copy) const {
  const GapId first = planner_.FirstGapOf(copy);
  return first != kNoGap && used_as_[first] >= 0 &&
         planner_.gaps()[first].after < order_.made(copy);
}

// Allocates the slot's memory, and launches it.
bool MemoryRehearsal::Make(Slot slot) {
  for (OrderBuffer buffer : made_[slot]) {
    if (poll_.Tick()) return false;
    const OrderBuffer taken = order_.takes_over(buffer);
    if (taken != kNoOrderBuffer && chunks_[taken] != kNoChunk) {
      chunks_[buffer] = std::exchange(chunks_[taken], kNoChunk);
    } else if (!Place(order_.bytes(buffer), slot, &chunks_[buffer])) {
      return false;
    }
  }
  for (; next_copy_ < order_.copies_in().size() && order_.copies_in()[next_copy_].first <= slot;
       ++next_copy_) {
    const OrderBuffer copy = order_.copied_in(next_copy_);
    if (order_.bytes(copy) > 0 && !ComesLater(copy) &&
        !Place(order_.bytes(copy), slot, &chunks_[copy])) {
      return false;
    }
  }
  Chunk workspace = kNoChunk;
  const int64_t bytes = AllocatedBytes(order_.workspace_bytes(slot));
  if (bytes > 0 && !Place(bytes, slot, &workspace)) return false;
  ended_ns_[slot] = std::max(launcher_ns_, slot > 0 ? ended_ns_[slot - 1] : 0) +
                    order_.end_ns(slot) - order_.begin_ns(slot);
  if (workspace != kNoChunk) allocator_.Free(workspace);
  return true;
}

void MemoryRehearsal::LetGo(Slot slot) {
  for (OrderBuffer buffer : made_[slot]) {
    if (left_ns_[buffer] < 0) continue;
    const GapId gap = planner_.FirstGapOf(buffer);
    out_ns_ = std::max(out_ns_, ended_ns_[slot]) + planner_.gaps()[gap].out_ns;
    left_ns_[buffer] = out_ns_;
  }
  for (GapId gap = after_[slot]; gap != kNoGap; gap = next_after_[gap]) {
    Leave(planner_.gaps()[gap].buffer);
  }
  for (OrderBuffer buffer : last_used_[slot]) {
    if (poll_.Tick()) return;
    Free(buffer);
  }
  for (OrderBuffer copy : copies_ended_[slot]) Free(copy);
}

void MemoryRehearsal::Ask(Slot slot) {
  for (GapId gap = asking_[slot]; gap != kNoGap; gap = next_asking_[gap]) {
    launcher_ns_ = std::max(launcher_ns_, ended_ns_[evictions_[used_as_[gap]].trigger]);
    waiting_.push_back(gap);
    least_waiting_ = std::min(least_waiting_, planner_.gaps()[gap].bytes);
  }
  FreeWhatLeft();
  // Very many may wait for very many slots: if the smallest does not fit, none is tried.
  if (least_waiting_ > allocator_.largest_free_bytes()) return;
  least_waiting_ = kUnlimited;
  size_t kept = 0;
  for (GapId gap : waiting_) {
    if (poll_.Tick()) return;
    if (back_ns_[gap] >= 0 || TryToGrant(gap)) continue;
    least_waiting_ = std::min(least_waiting_, planner_.gaps()[gap].bytes);
    waiting_[kept++] = gap;
  }
  waiting_.resize(kept);
}

bool MemoryRehearsal::TryToGrant(GapId index) {
  const Gap& gap = planner_.gaps()[index];
  if (chunks_[gap.buffer] != kNoChunk) return false;  // Not evicted yet.
  chunks_[gap.buffer] = allocator_.Allocate(gap.bytes);
  if (chunks_[gap.buffer] == kNoChunk) return false;
  in_ns_ = std::max(in_ns_, launcher_ns_) + gap.in_ns;
  back_ns_[index] = in_ns_;
  return true;
}

// Frees the buffer once its copy out has ended.
void MemoryRehearsal::Leave(OrderBuffer buffer) {
  if (chunks_[buffer] == kNoChunk) return;
  if (left_ns_[buffer] <= launcher_ns_) return Free(buffer);
  leaving_.push_back({left_ns_[buffer], buffer});
  std::push_heap(leaving_.begin(), leaving_.end());
}

void MemoryRehearsal::Free(OrderBuffer buffer) {
  if (chunks_[buffer] == kNoChunk) return;
  allocator_.Free(chunks_[buffer]);
  chunks_[buffer] = kNoChunk;
}

void MemoryRehearsal::FreeWhatLeft() {
  while (!leaving_.empty() && leaving_.front().end_ns <= launcher_ns_) {
    Free(leaving_.front().buffer);
    std::pop_heap(leaving_.begin(), leaving_.end());
    leaving_.pop_back();
  }
}

bool MemoryRehearsal::Place(int64_t bytes, Slot slot, Chunk* chunk) {
  while (true) {
    FreeWhatLeft();
    *chunk = allocator_.Allocate(bytes);
    if (*chunk != kNoChunk) return true;
    if (poll_.Tick()) return false;
    if (!leaving_.empty()) {
      launcher_ns_ = leaving_.front().end_ns;
    } else if (!MakeRoom(bytes, slot)) {
      return false;
    }
  }
}

bool MemoryRehearsal::MakeRoom(int64_t bytes, Slot slot) {
  ++rooms_;
  if (rooms_ > kMaxRooms || rooms_ * static_cast<int64_t>(chunks_.size()) > kMaxLookedAt) {
    return false;
  }
  absl::flat_hash_map<Chunk, OrderBuffer> owners;
  for (OrderBuffer i(0); i < order_.num_all(); ++i) {
    if (poll_.Tick()) return false;
    if (chunks_[i] != kNoChunk) owners[chunks_[i]] = i;
  }
  std::vector<StepResult::Piece> pieces;
  allocator_.ForEach([&](Chunk chunk, bool is_free) {
    const auto owner = owners.find(chunk);
    if (poll_.Tick() || (!is_free && owner == owners.end())) return;
    pieces.push_back({allocator_.address(chunk), allocator_.bytes(chunk),
                      is_free ? Tensor{kNoNode, 0} : order_.first_tensor(owner->second)});
  });
  const RoomWindow window = FindRoomWindow(pieces, bytes, slot, evictions_, planner_);
  if (window.empty()) return false;
  for (GapId index : window.added) {
    const Gap& gap = planner_.gaps()[index];
    const Slot in_time = order_.last_ended_by(order_.begin_ns(gap.before) - gap.in_ns);
    Use({index, std::min(gap.last_trigger(), std::max(slot, in_time)), gate_slots_});
    Free(gap.buffer);
  }
  for (GapId index : window.early) {
    const Gap& gap = planner_.gaps()[index];
    Free(gap.buffer);
    back_ns_[index] = -1;
    delay_[index] = std::max(1, 2 * delay_[index]);
    Eviction& eviction = evictions_[used_as_[index]];
    eviction.trigger = std::min(gap.last_trigger(), Slot(slot + delay_[index]));
    AskAt(index, Slot(eviction.trigger + std::max(0, eviction.gate)));
  }
  return true;
}

RehearsedPlanner::RehearsedPlanner(const StepOrder& order, const BudgetPlanner& planner,
                                   int64_t budget_bytes, int max_rehearsals, const StopToken& stop)
    : planner_(planner),
      rehearsal_(order, planner, budget_bytes, stop),
      left_(
          std::min<int64_t>(max_rehearsals, kMaxSlots / std::max<int64_t>(1, order.num_slots()))) {}

RehearsedPlan RehearsedPlanner::Make(const BudgetSetting& setting) {
  if (!MayRehearse()) return RehearsedPlan();
  return Mend(planner_.Schedule(planner_.Cover(setting), setting), setting.gate_slots);
}

RehearsedPlan RehearsedPlanner::Mend(std::vector<Eviction> evictions, int32_t gate_slots) {
  RehearsedPlan plan;
  plan.evictions = std::move(evictions);
  planner_.MakeSound(&plan.evictions);
  for (int mend = 0; mend <= kMaxRehearsals && MayRehearse(); ++mend) {
    --left_;
    MemoryRehearsal::Findings findings = rehearsal_.Rehearse(plan.evictions, gate_slots);
    plan.step_time_ns = findings.step_time_ns;
    plan.fits = findings.is_clean;
    if (findings.is_stopped) left_ = 0;
    if (plan.fits || !findings.fits) break;
    plan.evictions = std::move(findings.evictions);
    planner_.MakeSound(&plan.evictions);
  }
  return plan;
}

}  // namespace spillway::core
