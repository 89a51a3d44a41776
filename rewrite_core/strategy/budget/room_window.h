// Finds, ahead of the step, adjacent buffers whose eviction makes room for a piece that a plan
// could not place because of fragmentation (common/cheapest_window.h).
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
  // By address of their buffers.
  std::vector<GapId> added;  // Not used by the plan.
  std::vector<GapId> early;  // Used, but their buffers come back too early.
  bool empty() const { return added.empty() && early.empty(); }
};

// Returns the window of at least `piece_bytes` that costs the least copy time; empty if none
// exists, or the planner was stopped. `pieces`: the memory map, by address (StepResult::pieces);
// `at`: the slot that ran out; `evictions`: the plan. Only buffers with a gap over `at` can be
// away.
RoomWindow FindRoomWindow(const std::vector<StepResult::Piece>& pieces, int64_t piece_bytes,
                          Slot at, const std::vector<Eviction>& evictions,
                          const BudgetPlanner& planner);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_BUDGET_ROOM_WINDOW_H_
