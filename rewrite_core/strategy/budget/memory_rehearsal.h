// A rehearsal of a plan for one GPU: slot by slot, with TensorFlow's allocator and a rough clock,
// to find out where what is free will be fragmented, and what makes room there. A simulation says
// where a plan runs out, and ends; here it goes on as if the plan had made room, and finds all such
// places in one go. What it finds is no more than likely: the search simulates the plan.
//
// The rules, roughly those of simulator.h (kLaunchAhead). Slots are launched in their order. A slot
// is given memory for what it makes; if there is none, it waits for the next copy out to end. A
// swap-in asks for memory when its trigger has run and its gate is reached, and goes on asking. Who
// uses a buffer waits until it is back. Where nothing more will leave, the cheapest window of
// buffers side by side does (room_window.h): away from their last use on, or back only later.
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
#include "rewrite_core/strategy/budget/step_order.h"

namespace spillway::core {

class MemoryRehearsal {
 public:
  // All must outlive it.
  MemoryRehearsal(const StepOrder& order, const BudgetPlanner& planner, int64_t budget_bytes,
                  const StopToken& stop);

  struct Findings {
    // The plan as it came to be: with gaps that make room, and triggers that came later.
    std::vector<Away> aways;
    // It came to the end, and nothing had to be changed.
    bool is_clean = false;
    bool fits = false;  // It came to the end.
    int64_t step_time_ns = 0;
    bool is_stopped = false;
  };
  // Gaps that make room get gates so many slots behind their triggers.
  Findings Rehearse(const std::vector<Away>& aways, int32_t gate_slots);

 private:
  using Chunk = BestFitAllocator::Chunk;
  static constexpr Chunk kNoChunk = BestFitAllocator::kNoChunk;
  struct Leaving {
    int64_t end_ns;
    int32_t buffer;
    // For a heap whose front is the one that ends first; of several the one of the lowest number.
    bool operator<(const Leaving& other) const {
      return std::tie(other.end_ns, other.buffer) < std::tie(end_ns, buffer);
    }
  };

  void Begin(const std::vector<Away>& aways, int32_t gate_slots);
  // Whether `stop` has fired; looks at it no more once it has.
  bool Stopped() { return stopped_ = stopped_ || poll_.Tick(); }
  bool RehearseSlot(Slot slot);
  bool BringBack(int32_t gap, Slot slot);
  bool Make(Slot slot);
  void LetGo(Slot slot);
  void Ask(Slot slot);
  bool Place(int64_t bytes, Slot slot, Chunk* chunk);
  bool MakeRoom(int64_t bytes, Slot slot);
  void FreeWhatLeft();
  void Leave(int32_t buffer);
  void Free(int32_t buffer);
  bool TryToGrant(int32_t gap);
  void Use(const Away& away);
  void AskAt(int32_t gap, Slot slot);

  const StepOrder& order_;
  const BudgetPlanner& planner_;
  const int64_t budget_bytes_;
  StopPoller poll_;
  bool stopped_ = false;
  // By slot: what it makes, and whose last use it is; places in StepOrder::buffers().
  std::vector<std::vector<int32_t>> made_, last_used_;

  // Of one run.
  int32_t gate_slots_ = 0;
  BestFitAllocator allocator_;
  std::vector<Away> aways_;
  std::vector<Chunk> chunks_;     // By buffer.
  std::vector<int64_t> left_ns_;  // By buffer: when its copy out ends; -1: it has none.
  std::vector<int64_t> back_ns_;  // By gap: when its copy in ends; -1: not granted.
  std::vector<int32_t> used_as_;  // By gap: its place in aways_.
  std::vector<Slot> delay_;       // By gap: of its last postponement.
  std::vector<int32_t> after_, before_, asking_;  // By slot: the first gap of a list,
  std::vector<int32_t> next_after_, next_before_, next_asking_;  // and by gap the next one.
  std::vector<std::pair<Slot, Chunk>> copied_in_;  // By end: of copies that are there.
  std::vector<int32_t> waiting_;                   // Gaps that asked.
  std::vector<Leaving> leaving_;                   // A heap: the one that ends first is its front.
  std::vector<int64_t> ended_ns_;                  // By slot.
  int64_t launcher_ns_ = 0, out_ns_ = 0, in_ns_ = 0;
  size_t next_copy_ = 0;
  int rooms_ = 0;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_MEMORY_REHEARSAL_H_
