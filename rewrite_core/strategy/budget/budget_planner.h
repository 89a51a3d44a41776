// Constructs plans of the strategy `budget` for one GPU: which buffers are swapped, when each comes
// back, and the gates that let the copies overlap with kernels. Nothing is simulated here: the
// search (plan_search.h) simulates these plans.
//
//   Gaps. Between two consecutive slots that use it, a buffer may be away, if every later use can
//   read a swap-in. A copy of a tensor in host memory may also be delayed.
//   Cover. A sweep over the slots: at a slot that uses more memory than allowed, it takes the gap
//   that ends last among those that are not small compared with the largest. (This is LeastCover of
//   lower_bounds.h with whole buffers: the bytes are within a few percent of that bound.) Then gaps
//   that the others make redundant are dropped, and gaps larger than the shortfall are replaced
//   with smaller ones.
//   Triggers. In order of need, each as late as possible without delaying its reader or the next
//   copy, and not before there is memory for it.
//   Gates. After the trigger, the whole frontier of nodes that could be launched waits for the
//   swap-in (pace_gate.h).
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_PLANNER_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_PLANNER_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/base/strong_id.h"
#include "rewrite_core/plan/eligibility.h"
#include "rewrite_core/plan/needs.h"
#include "rewrite_core/plan/readers.h"
#include "rewrite_core/plan/soundness.h"
#include "rewrite_core/plan/swap_plan.h"
#include "rewrite_core/strategy/common/op_filter.h"
#include "rewrite_core/strategy/order/host_reads.h"
#include "rewrite_core/strategy/order/step_order.h"

namespace spillway::core {

// An index in BudgetPlanner::gaps().
using GapId = StrongId<struct GapIdTag>;
inline constexpr GapId kNoGap(-1);

struct BudgetSetting {
  // By slot: the bytes that may be in use. Less than the budget if a plan for all of it does not
  // fit, because of fragmentation.
  std::vector<int64_t> targets;
  // The share of the target that may be in use when a buffer comes back. Below 1, buffers come back
  // later: a buffer back long before its use fragments the memory freed in the meantime.
  double return_part = 1;
  // How many slots a gate comes after its trigger.
  int32_t gate_slots = 1;
  // The time allowed for a copy, as a multiple of its duration.
  double slack = 1.15;
  // At each slot, gaps smaller than about this fraction of the largest available one are passed
  // over.
  double least_part = 1.0 / 8;
};

// An interval in which a buffer may be away: from one of its uses to the next.
struct Gap {
  OrderBuffer buffer{0};
  Slot after{0};   // The last slot that uses it before the gap; kNoSlot: it is copied in later,
  Slot before{0};  // and the first one after it.
  int64_t bytes = 0;
  int64_t in_ns = 0;   // The durations of the copy in,
  int64_t out_ns = 0;  // and of the copy out.
  // The first and the last slot after which the buffer may be called back.
  Slot first_trigger() const { return std::max(after, Slot(0)); }
  Slot last_trigger() const { return Slot(before - 1); }
  // Whether it may be away at `slot`.
  bool spans(Slot slot) const { return after < slot && slot < before; }
};

// The action for a gap: the buffer stays on the GPU, or is copied out and back.
enum class Lever : uint8_t { kKeep, kSwap };

// A swapped gap, and when its buffer comes back. Gaps that a plan does not list are kept.
struct Eviction {
  GapId gap{0};
  Slot trigger{0};   // The wanted one; the nearest sound one is taken.
  int32_t gate = 1;  // As BudgetSetting::gate_slots.
  friend bool operator==(const Eviction& a, const Eviction& b) {
    return a.gap == b.gap && a.trigger == b.trigger && a.gate == b.gate;
  }
};

class BudgetPlanner {
 public:
  // `ranks`: the ranks of all nodes (RankByLaunch), along which all edges of plans go. `filters`:
  // null, or those of the request. All must outlive the planner. Errors: those of `stop`.
  static absl::StatusOr<BudgetPlanner> Create(const StepFacts& facts,
                                              const Eligibility& eligibility, const Needs& needs,
                                              const StepOrder& order,
                                              absl::Span<const int32_t> ranks,
                                              const SwapFilters* filters, const StopToken& stop,
                                              FedInputs inputs = FedInputs::kStay);

  // Returns gaps that keep the memory in use within the target, by index into gaps(); if none
  // suffice, all that help. Returns nothing once `stop` has fired; likewise below.
  std::vector<GapId> Cover(const BudgetSetting& setting) const;

  // Returns when the buffers of these gaps come back.
  std::vector<Eviction> Schedule(const std::vector<GapId>& chosen,
                                 const BudgetSetting& setting) const;

  // Replaces the triggers with those that Plan takes: the nearest sound ones.
  void MakeSound(std::vector<Eviction>* evictions) const;

  // Returns the plan in which these buffers are away.
  absl::StatusOr<std::vector<PlannedSwap>> Plan(const std::vector<Eviction>& evictions) const;

  // Returns the control edges that a plan with these swaps needs, besides the base's.
  std::vector<ControlEdge> GuardsOf(const std::vector<PlannedSwap>& swaps) const {
    return host_reads_.GuardsOf(swaps, *stop_);
  }

  // Counts steps of work, and returns whether `stop` has fired, as the functions above have seen
  // it.
  bool Stopped(int64_t steps = 1) const { return poll_.Tick(steps); }

  const Hardware& hardware() const { return facts_->hardware(); }
  const std::vector<Gap>& gaps() const { return gaps_; }
  GapId num_gaps() const { return GapId(gaps_.size()); }

  BufferIndex BufferOf(const Gap& gap) const {
    return facts_->buffers().buffer_of(order_->first_tensor(gap.buffer));
  }
  GapId FirstGapOf(OrderBuffer buffer) const;
  // Returns the gap of the buffer behind `tensor` that spans `slot`, or kNoGap.
  GapId GapOver(Tensor tensor, Slot slot) const;
  // Whether the gap has time for both copies.
  bool HasTime(const Gap& gap) const {
    const int64_t from_ns = gap.after == kNoSlot ? 0 : order_->end_ns(gap.after);
    return order_->begin_ns(gap.before) - from_ns >= gap.in_ns + gap.out_ns;
  }

 private:
  BudgetPlanner(const StepFacts& facts, const Eligibility& eligibility, const Needs& needs,
                const StepOrder& order, absl::Span<const int32_t> ranks, const SwapFilters* filters,
                const StopToken& stop)
      : facts_(&facts),
        needs_(&needs),
        order_(&order),
        filters_(filters),
        stop_(&stop),
        poll_(stop),
        readers_(facts, eligibility),
        soundness_(facts, ranks) {}

  absl::Status FindGaps();
  // Returns the chosen gaps that are needed, some of them replaced with smaller ones.
  std::vector<GapId> Shrink(std::vector<GapId> chosen, const BudgetSetting& setting) const;
  absl::Status FindGapsOf(OrderBuffer buffer);
  // Sorts by a total order; false if stopped.
  template <typename Item, typename Less>
  bool Sort(const Less& less, std::vector<Item>* items) const {
    return PolledSort(items->begin(), items->end(), less, &poll_);
  }
  bool MayReadSwapIn(const StepOrder::Use& use) const;
  using Ends = absl::flat_hash_map<OrderBuffer, std::vector<Slot>>;
  Ends EndsOf(const std::vector<Eviction>& evictions) const;
  std::vector<const StepOrder::Use*> Consumers(const Eviction& back, const Ends& ends) const;
  // Returns the sound trigger nearest to the wanted one, preferably before it, or kNoSlot.
  Slot FindTrigger(const Eviction& back, const std::vector<InputPosition>& consumers) const;

  const StepFacts* facts_;
  const Needs* needs_;
  const StepOrder* order_;
  const SwapFilters* filters_;
  const StopToken* stop_;
  // One for all calls: most of them are too short to reach the poller's stride.
  mutable StopPoller poll_;
  SwapInReaders readers_;
  Soundness soundness_;
  HostReads host_reads_;
  std::vector<Gap> gaps_;                                           // By `after`.
  std::vector<GapId> by_bytes_;                                     // Smallest first.
  absl::flat_hash_map<OrderBuffer, std::vector<GapId>> by_buffer_;  // Ascending.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_BUDGET_PLANNER_H_
