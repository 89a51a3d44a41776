// A rehearsal of a plan for one GPU, slot by slot, with TensorFlow's allocator and a rough clock:
// it finds where free memory will be fragmented, and how to make room. A simulation ends where a
// plan runs out of memory; a rehearsal continues as if the plan had made room, and finds all such
// places in one pass. Its findings are approximate: the search still simulates the plan.
//
// The rules, roughly those of simulator.h (kLaunchAhead). Slots are launched in order. A slot
// allocates memory for its outputs; if that fails, it waits for the next copy out to end. A swap-in
// asks for memory when its trigger has run and its gate is reached, and keeps asking. Users of a
// buffer wait until it is back. If no further copy out is under way, the cheapest window of
// adjacent buffers is evicted (room_window.h): they are away from their last use on, or come back
// later.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_MEMORY_REHEARSAL_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_MEMORY_REHEARSAL_H_

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/simulate/best_fit_allocator.h"
#include "rewrite_core/strategy/budget/budget_planner.h"
#include "rewrite_core/strategy/order/step_order.h"

namespace spillway::core {

class MemoryRehearsal {
 public:
  // All must outlive it.
  MemoryRehearsal(const StepOrder& order, const BudgetPlanner& planner, int64_t budget_bytes,
                  const StopToken& stop);

  struct Findings {
    // The resulting plan: with gaps that make room, and postponed triggers.
    std::vector<Eviction> evictions;
    // It completed, and nothing had to be changed.
    bool is_clean = false;
    bool fits = false;  // It completed.
    int64_t step_time_ns = 0;
    bool is_stopped = false;
  };
  // Gaps that make room get gates `gate_slots` slots after their triggers.
  Findings Rehearse(const std::vector<Eviction>& evictions, int32_t gate_slots);

 private:
  using Chunk = BestFitAllocator::Chunk;
  static constexpr Chunk kNoChunk = BestFitAllocator::kNoChunk;
  struct Leaving {
    int64_t end_ns;
    OrderBuffer buffer;
    // For a heap with the one that ends first at its front; of several, the lowest number.
    bool operator<(const Leaving& other) const {
      return std::tie(other.end_ns, other.buffer) < std::tie(end_ns, buffer);
    }
  };

  void Begin(const std::vector<Eviction>& evictions, int32_t gate_slots);
  bool RehearseSlot(Slot slot);
  bool BringBack(GapId gap, Slot slot);
  bool ComesLater(OrderBuffer copy) const;
  bool Make(Slot slot);
  void LetGo(Slot slot);
  void Ask(Slot slot);
  bool Place(int64_t bytes, Slot slot, Chunk* chunk);
  bool MakeRoom(int64_t bytes, Slot slot);
  void FreeWhatLeft();
  void Leave(OrderBuffer buffer);
  void Free(OrderBuffer buffer);
  bool TryToGrant(GapId gap);
  void Use(const Eviction& eviction);
  void AskAt(GapId gap, Slot slot);

  const StepOrder& order_;
  const BudgetPlanner& planner_;
  const int64_t budget_bytes_;
  StopPoller poll_;
  // By slot: the buffers that it makes, and those that it uses last; and the copies to the GPU that
  // it uses last.
  std::vector<std::vector<OrderBuffer>> made_, last_used_, copies_ended_;

  // The state of one run.
  int32_t gate_slots_ = 0;
  BestFitAllocator allocator_;
  std::vector<Eviction> evictions_;
  std::vector<Chunk> chunks_;     // By buffer.
  std::vector<int64_t> left_ns_;  // By buffer: when its copy out ends; -1: it has none.
  std::vector<int64_t> back_ns_;  // By gap: when its copy in ends; -1: not granted.
  std::vector<int32_t> used_as_;  // By gap: its index in evictions_.
  std::vector<int32_t> delay_;    // By gap: by how many slots it was postponed last.
  std::vector<GapId> after_, before_, asking_;                 // By slot: the first gap of a list,
  std::vector<GapId> next_after_, next_before_, next_asking_;  // and by gap the next one.
  // The gaps that wait for memory, oldest first, and a lower bound of their bytes. Those brought
  // back meanwhile are removed in the next pass.
  std::vector<GapId> waiting_;
  int64_t least_waiting_ = 0;
  std::vector<Leaving> leaving_;   // A heap: its front ends first.
  std::vector<int64_t> ended_ns_;  // By slot.
  int64_t launcher_ns_ = 0, out_ns_ = 0, in_ns_ = 0;
  size_t next_copy_ = 0;
  int rooms_ = 0;
};

struct RehearsedPlan {
  std::vector<Eviction> evictions;
  bool fits = false;         // In its last rehearsal.
  int64_t step_time_ns = 0;  // In its last rehearsal.
};

// Makes plans that fit in rehearsals, for a setting or from another plan, and repairs them until
// nothing runs out of memory there. This is far cheaper than finding each such place with a
// simulation, and the step time is usually right to a percent or two.
class RehearsedPlanner {
 public:
  // Makes at most `max_rehearsals`, and fewer for long steps. All must outlive it.
  RehearsedPlanner(const StepOrder& order, const BudgetPlanner& planner, int64_t budget_bytes,
                   int max_rehearsals, const StopToken& stop);

  bool MayRehearse() const { return left_ > 0; }

  RehearsedPlan Make(const BudgetSetting& setting);
  // `gate_slots`: for the gaps that it adds.
  RehearsedPlan Mend(std::vector<Eviction> evictions, int32_t gate_slots);

 private:
  const BudgetPlanner& planner_;
  MemoryRehearsal rehearsal_;
  int64_t left_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_MEMORY_REHEARSAL_H_
