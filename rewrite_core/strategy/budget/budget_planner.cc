#include "rewrite_core/strategy/budget/budget_planner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "rewrite_core/analysis/cost.h"
#include "rewrite_core/strategy/order/pace_gate.h"
#include "rewrite_core/strategy/order/slot_room.h"

namespace spillway::core {
namespace {

// A trigger is searched for at most this many slots from the wanted one.
constexpr int32_t kTriggerReach = 200;
// The maximum number of checks, for one trigger, whether a consumer may wait: a graph may have
// millions of consumers of one tensor (networks have some ten). The buffer stays if these do not
// suffice.
constexpr int64_t kMaxTriggerChecks = 4'000'000;

// The steps counted for a gate, for which thousands of nodes may be examined per tensor.
constexpr int64_t kStepsPerPace = 64;

// At most this many smaller gaps are tried in place of one that exceeds the shortfall.
constexpr int kMaxSmallerTried = 2000;

// The gaps over the current slot of a sweep that are not taken, in size classes by powers of two.
// Each class is a heap with the one that ends last at its front.
class OpenGaps {
  auto Less() const {
    return [this](GapId a, GapId b) {
      const Gap &x = gaps_[a], &y = gaps_[b];
      return std::tie(x.before, x.bytes, b) < std::tie(y.before, y.bytes, a);
    };
  }

 public:
  explicit OpenGaps(const std::vector<Gap>& gaps) : gaps_(gaps) {}

  void Add(GapId gap) {
    std::vector<GapId>& heap = classes_[ClassOf(gaps_[gap].bytes)];
    heap.push_back(gap);
    std::push_heap(heap.begin(), heap.end(), Less());
  }

  // Takes the one that ends last among those of at least about `least_part` of the largest, within
  // a factor of two. Returns kNoGap if none is over `slot`.
  GapId Take(Slot slot, double least_part) {
    int highest = kClasses - 1;
    while (highest >= 0 && !IsOpen(highest, slot)) --highest;
    if (highest < 0) return kNoGap;
    const int below = least_part > 0 ? std::max(0, -std::ilogb(least_part)) : highest;
    int best = highest;
    for (int i = highest - 1; i >= std::max(0, highest - below); --i) {
      if (IsOpen(i, slot) && Less()(classes_[best].front(), classes_[i].front())) best = i;
    }
    std::vector<GapId>& heap = classes_[best];
    const GapId taken = heap.front();
    std::pop_heap(heap.begin(), heap.end(), Less());
    heap.pop_back();
    return taken;
  }

 private:
  static constexpr int kClasses = 63;
  static int ClassOf(int64_t bytes) {
    int result = 0;
    for (; bytes > 1; bytes /= 2) ++result;
    return result;
  }

  bool IsOpen(int i, Slot slot) {
    std::vector<GapId>& heap = classes_[i];
    if (!heap.empty() && gaps_[heap.front()].before <= slot) heap.clear();  // All have ended.
    return !heap.empty();
  }

  const std::vector<Gap>& gaps_;
  std::array<std::vector<GapId>, kClasses> classes_;
};

}  // namespace

absl::StatusOr<BudgetPlanner> BudgetPlanner::Create(const StepFacts& facts,
                                                    const Eligibility& eligibility,
                                                    const Needs& needs, const StepOrder& order,
                                                    absl::Span<const int32_t> ranks,
                                                    const SwapFilters* filters,
                                                    const StopToken& stop, FedInputs inputs) {
  BudgetPlanner planner(facts, eligibility, needs, order, ranks, filters, stop);
  auto host_reads = HostReads::Find(facts, eligibility, needs, order, ranks, inputs, stop);
  if (!host_reads.ok()) return host_reads.status();
  planner.host_reads_ = *std::move(host_reads);
  if (absl::Status status = planner.FindGaps(); !status.ok()) return status;
  return planner;
}

bool BudgetPlanner::MayReadSwapIn(const StepOrder::Use& use) const {
  std::vector<NodeId> reader = {use.position.node};
  if (!readers_.Runs(reader[0])) return false;
  if (filters_ != nullptr && (filters_->outputs.ReasonFor(use.tensor.node) != v1::REASON_SWAPPED ||
                              filters_->inputs.ReasonFor(reader[0]) != v1::REASON_SWAPPED)) {
    return false;
  }
  if (order_->slot(use.tensor.node) == kNoSlot) {
    return host_reads_.MayReadLate(use.tensor, use.position.node);
  }
  const auto self = [](NodeId node) { return node; };
  return readers_.Keep(use.tensor, &reader, self) == v1::REASON_SWAPPED;
}

// The buffer may be away before a use if that use, and all later ones of tensors that were made
// before it, can read a swap-in; otherwise the memory is not free. (Tensors made later, from its
// swap-in, alias the swap-in.)
absl::Status BudgetPlanner::FindGapsOf(OrderBuffer buffer) {
  const absl::Span<const StepOrder::Use> uses = order_->uses(buffer);
  // By use: among it and later uses that cannot read a swap-in, the first slot that made a tensor
  // they read.
  std::vector<Slot> kept_from(uses.size() + 1, order_->num_slots());
  for (size_t i = uses.size(); i-- > 0;) {
    if (Stopped()) return stop_->status("strategy");
    kept_from[i] = kept_from[i + 1];
    if (!MayReadSwapIn(uses[i])) {
      kept_from[i] = std::min(kept_from[i], order_->slot(uses[i].tensor.node));
    }
  }
  const Hardware& hardware = facts_->hardware();
  const bool is_copied_in = order_->is_copied_in(buffer);
  Slot after = order_->made(buffer);
  if (is_copied_in) --after;  // It may come later.
  for (size_t i = 0; i < uses.size(); ++i) {
    if (Stopped()) return stop_->status("strategy");
    const Slot before = uses[i].slot;
    if (before > after + 1 && kept_from[i] >= before) {
      const int64_t bytes = order_->bytes(buffer);
      gaps_.push_back(
          {buffer, after, before, bytes, CopyNanoseconds(hardware, hardware.h2d_bytes_per_s, bytes),
           is_copied_in ? 0 : CopyNanoseconds(hardware, hardware.d2h_bytes_per_s, bytes)});
    }
    after = std::max(after, before);
  }
  return absl::OkStatus();
}

absl::Status BudgetPlanner::FindGaps() {
  for (OrderBuffer i(0); i < order_->num_all(); ++i) {
    // A list would hold it anyway.
    if (!order_->is_copied_in(i) && facts_->buffers().buffers()[order_->buffers()[i]].in_list) {
      continue;
    }
    if (absl::Status s = FindGapsOf(i); !s.ok()) return s;
  }
  const auto by_slots = [](const Gap& a, const Gap& b) {
    return std::tie(a.after, a.before, a.buffer) < std::tie(b.after, b.before, b.buffer);
  };
  if (!Sort(by_slots, &gaps_)) return stop_->status("strategy");
  for (GapId i(0); i < num_gaps(); ++i) {
    if (Stopped()) return stop_->status("strategy");
    by_buffer_[gaps_[i].buffer].push_back(i);
    by_bytes_.push_back(i);
  }
  const auto by_bytes = [this](GapId a, GapId b) {
    return std::tie(gaps_[a].bytes, a) < std::tie(gaps_[b].bytes, b);
  };
  if (!Sort(by_bytes, &by_bytes_)) return stop_->status("strategy");
  return absl::OkStatus();
}

std::vector<GapId> BudgetPlanner::Cover(const BudgetSetting& setting) const {
  std::vector<GapId> chosen;
  std::vector<int64_t> back(order_->num_slots(), 0);  // Bytes of chosen gaps, by their ends.
  // Gaps without time for their copies to overlap are taken last.
  OpenGaps with_time(gaps_), without_time(gaps_);
  int64_t away = 0;
  GapId next(0);
  for (Slot slot(0); slot < order_->num_slots(); ++slot) {
    if (Stopped()) return {};
    for (; next < num_gaps() && gaps_[next].after < slot; ++next) {
      (HasTime(gaps_[next]) ? with_time : without_time).Add(next);
    }
    away -= back[slot];
    while (order_->live_bytes()[slot] - away > setting.targets[slot]) {
      if (Stopped()) return {};
      GapId taken = with_time.Take(slot, setting.least_part);
      if (taken == kNoGap) taken = without_time.Take(slot, setting.least_part);
      if (taken == kNoGap) break;
      away += gaps_[taken].bytes;
      back[gaps_[taken].before] += gaps_[taken].bytes;
      chosen.push_back(taken);
    }
  }
  return Shrink(std::move(chosen), setting);
}

std::vector<GapId> BudgetPlanner::Shrink(std::vector<GapId> chosen,
                                         const BudgetSetting& setting) const {
  std::vector<int64_t> free(order_->num_slots());
  for (Slot slot(0); slot < order_->num_slots(); ++slot) {
    free[slot] = setting.targets[slot] - order_->live_bytes()[slot];
  }
  SlotRoom room(free);
  for (GapId i : chosen) {
    if (Stopped()) return {};
    room.Add(gaps_[i].after + 1, gaps_[i].before, gaps_[i].bytes);
  }
  // Drops redundant gaps, smallest first.
  const auto by_bytes = [this](GapId a, GapId b) {
    return std::make_pair(gaps_[a].bytes, a) < std::make_pair(gaps_[b].bytes, b);
  };
  if (!Sort(by_bytes, &chosen)) return {};
  std::vector<GapId> kept;
  std::vector<bool> is_kept(gaps_.size(), false);
  for (GapId i : chosen) {
    const Gap& gap = gaps_[i];
    if (Stopped()) return {};
    if (room.Least(gap.after + 1, gap.before) >= gap.bytes) {
      room.Add(gap.after + 1, gap.before, -gap.bytes);
    } else {
      kept.push_back(i);
      is_kept[i] = true;
    }
  }
  // Replaces a gap that exceeds the shortfall with the smallest sufficient one.
  for (GapId& i : kept) {
    const Gap& gap = gaps_[i];
    if (Stopped()) return {};
    const int64_t lacking = gap.bytes - room.Least(gap.after + 1, gap.before);
    if (lacking >= gap.bytes) continue;
    const Slot first = room.FirstBelow(gap.after + 1, gap.before, gap.bytes);
    const Slot last = room.LastBelow(gap.after + 1, gap.before, gap.bytes);
    auto other =
        std::lower_bound(by_bytes_.begin(), by_bytes_.end(), lacking,
                         [this](GapId index, int64_t bytes) { return gaps_[index].bytes < bytes; });
    for (int scanned = 0; scanned < kMaxSmallerTried && other != by_bytes_.end();
         ++scanned, ++other) {
      const Gap& smaller = gaps_[*other];
      if (Stopped()) return {};
      if (smaller.bytes >= gap.bytes) break;
      if (is_kept[*other] || smaller.after >= first || smaller.before <= last) continue;
      room.Add(gap.after + 1, gap.before, -gap.bytes);
      room.Add(smaller.after + 1, smaller.before, smaller.bytes);
      is_kept[i] = false;
      is_kept[*other] = true;
      i = *other;
      break;
    }
  }
  if (!Sort(std::less<>(), &kept)) return {};
  return kept;
}

std::vector<Eviction> BudgetPlanner::Schedule(const std::vector<GapId>& chosen,
                                              const BudgetSetting& setting) const {
  std::vector<Eviction> returns;
  for (GapId gap : chosen) returns.push_back({gap, kNoSlot, setting.gate_slots});
  // As late as possible with each copy hidden.
  const auto by_end = [this](const Eviction& a, const Eviction& b) {
    return std::make_pair(gaps_[a.gap].before, a.gap) < std::make_pair(gaps_[b.gap].before, b.gap);
  };
  if (!Sort(by_end, &returns)) return {};
  int64_t next_ns = std::numeric_limits<int64_t>::max();
  for (auto back = returns.rbegin(); back != returns.rend(); ++back) {
    const Gap& gap = gaps_[back->gap];
    const int64_t end_ns = std::min(order_->begin_ns(gap.before), next_ns);
    next_ns = end_ns - static_cast<int64_t>(setting.slack * static_cast<double>(gap.in_ns));
    if (Stopped()) return {};
    back->trigger =
        std::min(gap.last_trigger(), std::max(gap.first_trigger(), order_->last_ended_by(next_ns)));
  }
  // Not before there is memory for it.
  std::vector<int64_t> free(order_->num_slots());
  for (Slot slot(0); slot < order_->num_slots(); ++slot) {
    const double most = setting.return_part * static_cast<double>(setting.targets[slot]);
    free[slot] = static_cast<int64_t>(most) - order_->live_bytes()[slot];
  }
  SlotRoom room(free);
  for (const Eviction& back : returns) {
    if (Stopped()) return {};
    const Gap& gap = gaps_[back.gap];
    room.Add(gap.after + 1, gap.before, gap.bytes);
  }
  for (Eviction& back : returns) {
    const Gap& gap = gaps_[back.gap];
    if (Stopped()) return {};
    back.trigger = std::max(back.trigger, room.LastBelow(back.trigger + 1, gap.before, gap.bytes));
    room.Add(back.trigger + 1, gap.before, -gap.bytes);
  }
  return returns;
}

void BudgetPlanner::MakeSound(std::vector<Eviction>* evictions) const {
  const auto ends = EndsOf(*evictions);
  for (Eviction& back : *evictions) {
    // A rehearsal that was stopped has no status of its own.
    if (Stopped() || !stop_->status("strategy").ok()) return;
    std::vector<InputPosition> consumers;
    for (const StepOrder::Use* use : Consumers(back, ends)) consumers.push_back(use->position);
    if (const Slot slot = FindTrigger(back, consumers); slot != kNoSlot) back.trigger = slot;
  }
}

// Returns, by buffer, the ends of its gaps in use, ascending.
BudgetPlanner::Ends BudgetPlanner::EndsOf(const std::vector<Eviction>& evictions) const {
  Ends ends;
  for (const Eviction& back : evictions) {
    if (Stopped()) return {};
    ends[gaps_[back.gap].buffer].push_back(gaps_[back.gap].before);
  }
  for (auto& [buffer, of] : ends) {
    if (Stopped() || !Sort(std::less<>(), &of)) return {};
  }
  return ends;
}

// Returns the uses that the swap-in serves: those up to the next gap in use.
std::vector<const StepOrder::Use*> BudgetPlanner::Consumers(const Eviction& back,
                                                            const Ends& ends) const {
  const Gap& gap = gaps_[back.gap];
  const std::vector<Slot>& of = ends.at(gap.buffer);
  const auto next = std::upper_bound(of.begin(), of.end(), gap.before);
  const Slot until = next == of.end() ? order_->num_slots() : *next;
  const absl::Span<const StepOrder::Use> uses = order_->uses(gap.buffer);
  auto use = std::lower_bound(uses.begin(), uses.end(), gap.before,
                              [](const StepOrder::Use& one, Slot slot) { return one.slot < slot; });
  std::vector<const StepOrder::Use*> consumers;
  for (; use != uses.end() && use->slot < until; ++use) {
    if (Stopped()) return {};
    if (order_->slot(use->tensor.node) < gap.before) consumers.push_back(&*use);
  }
  return consumers;
}

GapId BudgetPlanner::FirstGapOf(OrderBuffer buffer) const {
  const auto gaps = by_buffer_.find(buffer);
  return gaps == by_buffer_.end() ? kNoGap : gaps->second.front();
}

GapId BudgetPlanner::GapOver(Tensor tensor, Slot slot) const {
  const auto gaps = by_buffer_.find(order_->Find(tensor));
  if (gaps == by_buffer_.end()) return kNoGap;
  // They do not overlap.
  const auto next = std::partition_point(gaps->second.begin(), gaps->second.end(),
                                         [this, slot](GapId i) { return gaps_[i].after < slot; });
  if (next == gaps->second.begin() || !gaps_[*std::prev(next)].spans(slot)) return kNoGap;
  return *std::prev(next);
}

// The consumer that cannot wait for one slot's node probably cannot wait for the next one's: it is
// checked first.
Slot BudgetPlanner::FindTrigger(const Eviction& back,
                                const std::vector<InputPosition>& consumers) const {
  if (consumers.empty()) return kNoSlot;
  size_t suspect = 0;
  int64_t checks = 0;
  const auto is_sound = [&](Slot slot) {
    if (order_->end_ns(slot) <= order_->begin_ns(slot)) return false;
    const NodeId node = order_->node(slot);
    const auto may_wait = [&](const InputPosition& consumer) {
      return needs_->MayWait(consumer.node, node) && soundness_.MayWait(node, consumer.node);
    };
    if (!may_wait(consumers[suspect])) return false;
    for (size_t i = 0; i < consumers.size(); ++i) {
      if (Stopped() || ++checks > kMaxTriggerChecks) return false;
      if (may_wait(consumers[i])) continue;
      suspect = i;
      return false;
    }
    return true;
  };
  const Gap& gap = gaps_[back.gap];
  const Slot least(std::max<int32_t>(gap.first_trigger(), back.trigger - kTriggerReach));
  for (Slot slot = back.trigger; slot >= least && !Stopped(); --slot) {
    if (is_sound(slot)) return slot;
  }
  const Slot most(std::min<int32_t>(gap.before, back.trigger + kTriggerReach));
  for (Slot slot(back.trigger + 1); slot < most && !Stopped(); ++slot) {
    if (is_sound(slot)) return slot;
  }
  return kNoSlot;
}

absl::StatusOr<std::vector<PlannedSwap>> BudgetPlanner::Plan(
    const std::vector<Eviction>& evictions) const {
  std::map<std::pair<NodeId, int32_t>, PlannedSwap> swaps;
  const PaceGate gate(*order_, *needs_, soundness_);
  const Ends ends = EndsOf(evictions);
  for (const Eviction& back : evictions) {
    if (Stopped()) return stop_->status("strategy");
    const Gap& gap = gaps_[back.gap];
    std::map<std::pair<NodeId, int32_t>, std::vector<InputPosition>> consumers;
    std::vector<InputPosition> all;
    for (const StepOrder::Use* use : Consumers(back, ends)) {
      consumers[{use->tensor.node, use->tensor.port}].push_back(use->position);
      all.push_back(use->position);
    }
    const Slot slot = FindTrigger(back, all);
    if (slot == kNoSlot) continue;  // It stays: no node may delay its copy.
    const NodeId trigger = order_->node(slot);
    absl::flat_hash_set<NodeId> readers;  // Once for all tensors of the buffer.
    for (const InputPosition& consumer : all) readers.insert(consumer.node);
    for (auto& [key, positions] : consumers) {
      if (Stopped(kStepsPerPace)) return stop_->status("strategy");
      const Tensor tensor{key.first, key.second};
      PlannedSwap& swap = swaps[key];
      swap.tensor = tensor;
      swap.dtype = facts_->shapes().type(tensor).dtype;
      swap.size_bytes = facts_->shapes().size_bytes(tensor);
      swap.buffer = BufferOf(gap);
      PlannedSwapIn swap_in;
      swap_in.consumers = positions;
      swap_in.triggers.push_back(trigger);
      if (back.gate >= 0) {
        swap_in.paces = gate.Find(tensor.node, {trigger}, Slot(slot + 1 + back.gate), readers);
      }
      swap.swap_ins.push_back(std::move(swap_in));
    }
  }
  if (poll_.stopped()) return stop_->status("strategy");
  std::vector<PlannedSwap> result;
  for (auto& [key, swap] : swaps) result.push_back(std::move(swap));
  return result;
}

}  // namespace spillway::core
