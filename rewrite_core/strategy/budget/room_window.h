// Where a plan ran out of memory because what is free is fragmented: which buffers, side by side,
// make room for the piece that could not be placed if they are away. What an allocator that evicts
// looks for, too (the sliding window of Coop, Zhang et al. 2023); here it is done ahead of the
// step.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_ROOM_WINDOW_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_ROOM_WINDOW_H_

#include <cstdint>
#include <vector>

#include "rewrite_core/simulate/plan_simulator.h"
#include "rewrite_core/strategy/budget/budget_planner.h"

namespace spillway::core {

struct RoomWindow {
  // Gaps by index into BudgetPlanner::gaps(), by address of their buffers.
  std::vector<int32_t> added;  // Not used by the plan.
  std::vector<int32_t> early;  // Used, but their buffers are back too early.
  bool empty() const { return added.empty() && early.empty(); }
};

// The window that costs least time of copies, of those that hold `piece_bytes`; empty: there is
// none. `pieces`: what lies where, by address (StepResult::pieces); `at`: the slot that ran out;
// `aways`: the plan that did. Only what has a gap over `at` can be away.
RoomWindow FindRoomWindow(const std::vector<StepResult::Piece>& pieces, int64_t piece_bytes,
                          Slot at, const std::vector<Away>& aways, const BudgetPlanner& planner);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_ROOM_WINDOW_H_
