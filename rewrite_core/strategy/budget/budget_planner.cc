#include "rewrite_core/strategy/budget/budget_planner.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "rewrite_core/analysis/cost.h"
#include "rewrite_core/strategy/budget/pace_gate.h"

namespace spillway::core {
namespace {

// A trigger is looked for so many slots from where it is wanted.
constexpr Slot kTriggerReach = 200;

}  // namespace

absl::StatusOr<BudgetPlanner> BudgetPlanner::Create(const StepFacts& facts,
                                                    const Eligibility& eligibility,
                                                    const Needs& needs, const StepOrder& order,
                                                    const StopToken& stop) {
  BudgetPlanner planner(facts, eligibility, needs, order, stop);
  if (absl::Status status = planner.FindGaps(); !status.ok()) return status;
  return planner;
}

// The buffer is away before a use if that use, and all behind it of tensors that were made before,
// can read a swap-in; or the memory is not free. (What is made later, of its swap-in, is its alias
// there.)
absl::Status BudgetPlanner::FindGapsOf(int32_t buffer, StopPoller* poll) {
  const absl::Span<const StepOrder::Use> uses = order_->uses(buffer);
  // By use: of it and those behind it which cannot, where the first tensor was made that one reads.
  std::vector<Slot> kept_from(uses.size() + 1, order_->num_slots());
  for (size_t i = uses.size(); i-- > 0;) {
    if (poll->Tick()) return stop_->status("strategy");
    kept_from[i] = kept_from[i + 1];
    const StepOrder::Use& use = uses[i];
    std::vector<NodeId> reader = {use.position.node};
    if (!readers_.Runs(reader[0]) || readers_.Keep(use.tensor, &reader, [](NodeId node) {
          return node;
        }) != v1::REASON_SWAPPED) {
      kept_from[i] = std::min(kept_from[i], order_->slot(use.tensor.node));
    }
  }
  const Hardware& hardware = facts_->hardware();
  Slot after = order_->made(buffer);
  for (size_t i = 0; i < uses.size(); ++i) {
    const Slot before = uses[i].slot;
    if (before > after + 1 && kept_from[i] >= before) {
      const int64_t bytes = order_->bytes(buffer);
      gaps_.push_back({buffer, after, before, bytes,
                       CopyNanoseconds(hardware, hardware.h2d_bytes_per_s, bytes),
                       CopyNanoseconds(hardware, hardware.d2h_bytes_per_s, bytes)});
    }
    after = std::max(after, before);
  }
  return absl::OkStatus();
}

absl::Status BudgetPlanner::FindGaps() {
  StopPoller poll(*stop_);
  for (int32_t i = 0; i < static_cast<int32_t>(order_->buffers().size()); ++i) {
    if (absl::Status s = FindGapsOf(i, &poll); !s.ok()) return s;
  }
  std::sort(gaps_.begin(), gaps_.end(), [](const Gap& a, const Gap& b) {
    return std::tie(a.after, a.before, a.buffer) < std::tie(b.after, b.before, b.buffer);
  });
  return absl::OkStatus();
}

std::vector<int32_t> BudgetPlanner::Cover(const BudgetSetting& setting) const {
  std::vector<int32_t> chosen;
  std::vector<int32_t> open;                          // Over the slot, not chosen.
  std::vector<int64_t> back(order_->num_slots(), 0);  // Bytes of the chosen ones, by their end.
  int64_t away = 0;
  size_t next = 0;
  StopPoller poll(*stop_);
  for (Slot slot = 0; slot < order_->num_slots(); ++slot) {
    if (poll.Tick()) return {};
    for (; next < gaps_.size() && gaps_[next].after < slot; ++next) {
      open.push_back(static_cast<int32_t>(next));
    }
    away -= back[slot];
    if (order_->live_bytes()[slot] - away <= setting.target(slot)) continue;
    open.erase(std::remove_if(open.begin(), open.end(),
                              [&](int32_t gap) { return gaps_[gap].before <= slot; }),
               open.end());
    while (order_->live_bytes()[slot] - away > setting.target(slot) && !open.empty()) {
      if (poll.Tick(open.size())) return {};
      const auto is_long = [&](const Gap& gap) {
        return order_->begin_ns(gap.before) - order_->end_ns(gap.after) >= gap.in_ns + gap.out_ns;
      };
      // Whose copies have no time to overlap is taken last.
      const bool any_long =
          std::any_of(open.begin(), open.end(), [&](int32_t gap) { return is_long(gaps_[gap]); });
      int64_t largest = 0;
      for (int32_t gap : open) {
        if (any_long && !is_long(gaps_[gap])) continue;
        largest = std::max(largest, gaps_[gap].bytes);
      }
      const int64_t least = static_cast<int64_t>(setting.least_part * static_cast<double>(largest));
      size_t best = open.size();
      for (size_t i = 0; i < open.size(); ++i) {
        const Gap& gap = gaps_[open[i]];
        if (gap.bytes < least || (any_long && !is_long(gap))) continue;
        if (best == open.size() ||
            std::make_pair(gap.before, gap.bytes) >
                std::make_pair(gaps_[open[best]].before, gaps_[open[best]].bytes)) {
          best = i;
        }
      }
      const Gap& gap = gaps_[open[best]];
      away += gap.bytes;
      back[gap.before] += gap.bytes;
      chosen.push_back(open[best]);
      open.erase(open.begin() + static_cast<int64_t>(best));
    }
  }
  // What the others cover, too, goes back, smallest first.
  std::vector<int64_t> room(order_->num_slots());
  for (Slot slot = 0; slot < order_->num_slots(); ++slot) {
    room[slot] = setting.target(slot) - order_->live_bytes()[slot];
  }
  for (int32_t i : chosen) {
    if (poll.Tick(gaps_[i].slots())) return {};
    for (Slot slot = gaps_[i].after + 1; slot < gaps_[i].before; ++slot) {
      room[slot] += gaps_[i].bytes;
    }
  }
  std::sort(chosen.begin(), chosen.end(), [&](int32_t a, int32_t b) {
    return std::make_pair(gaps_[a].bytes, a) < std::make_pair(gaps_[b].bytes, b);
  });
  std::vector<int32_t> kept;
  for (int32_t i : chosen) {
    const Gap& gap = gaps_[i];
    if (poll.Tick(gap.slots())) return {};
    const auto first = room.begin() + gap.after + 1, last = room.begin() + gap.before;
    if (std::all_of(first, last, [&](int64_t bytes) { return bytes >= gap.bytes; })) {
      std::for_each(first, last, [&](int64_t& bytes) { bytes -= gap.bytes; });
    } else {
      kept.push_back(i);
    }
  }
  // And where less is lacking than one of them has, the smallest gap that has as much.
  std::vector<bool> is_kept(gaps_.size(), false);
  for (int32_t i : kept) is_kept[i] = true;
  for (int32_t& i : kept) {
    const Gap& gap = gaps_[i];
    if (poll.Tick(gap.slots() + static_cast<int64_t>(gaps_.size()))) return {};
    Slot first = kNoSlot, last = kNoSlot;
    int64_t lacking = 0;
    for (Slot slot = gap.after + 1; slot < gap.before; ++slot) {
      if (room[slot] >= gap.bytes) continue;
      if (first == kNoSlot) first = slot;
      last = slot;
      lacking = std::max(lacking, gap.bytes - room[slot]);
    }
    int32_t best = i;
    for (int32_t k = 0; k < static_cast<int32_t>(gaps_.size()); ++k) {
      const Gap& other = gaps_[k];
      if (is_kept[k] || other.after >= first || other.before <= last || other.bytes < lacking ||
          other.bytes >= gaps_[best].bytes) {
        continue;
      }
      best = k;
    }
    if (best == i) continue;
    for (Slot slot = gap.after + 1; slot < gap.before; ++slot) room[slot] -= gap.bytes;
    const Gap& other = gaps_[best];
    for (Slot slot = other.after + 1; slot < other.before; ++slot) room[slot] += other.bytes;
    is_kept[i] = false;
    is_kept[best] = true;
    i = best;
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

std::vector<Away> BudgetPlanner::Schedule(const std::vector<int32_t>& chosen,
                                          const BudgetSetting& setting) const {
  std::vector<Away> returns;
  for (int32_t gap : chosen) returns.push_back({gap, kNoSlot, setting.gate_slots});
  // As late as hides each copy.
  std::sort(returns.begin(), returns.end(), [this](const Away& a, const Away& b) {
    return std::make_pair(gaps_[a.gap].before, a.gap) < std::make_pair(gaps_[b.gap].before, b.gap);
  });
  StopPoller poll(*stop_);
  int64_t next_ns = std::numeric_limits<int64_t>::max();
  for (auto back = returns.rbegin(); back != returns.rend(); ++back) {
    const Gap& gap = gaps_[back->gap];
    const int64_t end_ns = std::min(order_->begin_ns(gap.before), next_ns);
    next_ns = end_ns - static_cast<int64_t>(setting.slack * static_cast<double>(gap.in_ns));
    Slot slot = gap.before - 1;
    if (poll.Tick(gap.slots())) return {};
    while (slot > gap.after && order_->end_ns(slot) > next_ns) --slot;
    back->trigger = slot;
  }
  // Not before there is memory for it.
  std::vector<int64_t> live = order_->live_bytes();
  for (const Away& back : returns) {
    const Gap& gap = gaps_[back.gap];
    if (poll.Tick(gap.slots())) return {};
    for (Slot slot = gap.after + 1; slot < gap.before; ++slot) live[slot] -= gap.bytes;
  }
  for (Away& back : returns) {
    const Gap& gap = gaps_[back.gap];
    if (poll.Tick(gap.slots())) return {};
    Slot slot = gap.before - 1;
    while (slot > back.trigger && live[slot] + gap.bytes <= setting.target(slot)) --slot;
    back.trigger = slot;
    for (++slot; slot < gap.before; ++slot) live[slot] += gap.bytes;
  }
  return returns;
}

Slot BudgetPlanner::FindTrigger(const Away& back,
                                const std::vector<InputPosition>& consumers) const {
  const auto is_sound = [&](Slot slot) {
    const NodeId node = order_->node(slot);
    return order_->end_ns(slot) > order_->begin_ns(slot) &&
           std::all_of(consumers.begin(), consumers.end(), [&](const InputPosition& consumer) {
             return needs_->MayWait(consumer.node, node) &&
                    soundness_.WaitInOrder(node, consumer.node) == EdgeFault::kNone;
           });
  };
  const Slot least = std::max(gaps_[back.gap].after, back.trigger - kTriggerReach);
  for (Slot slot = back.trigger; slot >= least; --slot) {
    if (is_sound(slot)) return slot;
  }
  const Slot most = std::min(gaps_[back.gap].before, back.trigger + kTriggerReach);
  for (Slot slot = back.trigger + 1; slot < most; ++slot) {
    if (is_sound(slot)) return slot;
  }
  return kNoSlot;
}

absl::StatusOr<std::vector<PlannedSwap>> BudgetPlanner::Plan(const std::vector<Away>& aways) const {
  std::map<std::pair<NodeId, int32_t>, PlannedSwap> swaps;
  const PaceGate gate(*order_, *needs_, soundness_, PaceGate::Cycles::kSlots);
  StopPoller poll(*stop_);
  for (const Away& back : aways) {
    const Gap& gap = gaps_[back.gap];
    // Its swap-ins serve the uses up to the next gap that is used.
    Slot until = order_->num_slots();
    if (poll.Tick(static_cast<int64_t>(aways.size()) + PaceGate::kReach)) {
      return stop_->status("strategy");
    }
    for (const Away& other : aways) {
      const Gap& next = gaps_[other.gap];
      if (next.buffer == gap.buffer && next.before > gap.before) {
        until = std::min(until, next.before);
      }
    }
    std::map<std::pair<NodeId, int32_t>, std::vector<InputPosition>> consumers;
    std::vector<InputPosition> all;
    for (const StepOrder::Use& use : order_->uses(gap.buffer)) {
      if (poll.Tick()) return stop_->status("strategy");
      if (use.slot < gap.before || use.slot >= until ||
          order_->slot(use.tensor.node) >= gap.before) {
        continue;
      }
      consumers[{use.tensor.node, use.tensor.port}].push_back(use.position);
      all.push_back(use.position);
    }
    const Slot slot = FindTrigger(back, all);
    if (slot == kNoSlot) continue;  // It stays: nothing may hold its copy back.
    const NodeId trigger = order_->node(slot);
    for (auto& [key, positions] : consumers) {
      const Tensor tensor{key.first, key.second};
      PlannedSwap& swap = swaps[key];
      swap.tensor = tensor;
      swap.dtype = facts_->shapes().type(tensor).dtype;
      swap.size_bytes = facts_->shapes().size_bytes(tensor);
      swap.buffer = order_->buffers()[gap.buffer];
      PlannedSwapIn swap_in;
      swap_in.consumers = positions;
      swap_in.triggers.push_back(trigger);
      if (back.gate >= 0) {
        swap_in.paces = gate.Find(tensor.node, {trigger}, slot + 1 + back.gate, all);
      }
      swap.swap_ins.push_back(std::move(swap_in));
    }
  }
  std::vector<PlannedSwap> result;
  for (auto& [key, swap] : swaps) result.push_back(std::move(swap));
  return result;
}

}  // namespace spillway::core
