#include "rewrite_core/strategy/budget/room_window.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "rewrite_core/strategy/common/cheapest_window.h"

namespace spillway::core {
namespace {

// The cost of a buffer's copies, as a multiple of their time: if there is no time for both, and if
// it is already away and only returns later.
constexpr double kShortCost = 3;
constexpr double kEarlyCost = 0.25;

// A piece of memory at the point where the plan ran out.
struct Candidate {
  GapId gap = kNoGap;  // kNoGap: the piece is free.
  bool is_early = false;
};

}  // namespace

RoomWindow FindRoomWindow(const std::vector<StepResult::Piece>& pieces, int64_t piece_bytes,
                          Slot at, const std::vector<Eviction>& evictions,
                          const BudgetPlanner& planner) {
  if (piece_bytes <= 0) return {};
  absl::flat_hash_map<GapId, Slot> triggers;  // By gap.
  for (const Eviction& eviction : evictions) {
    if (planner.Stopped()) return {};
    triggers[eviction.gap] = eviction.trigger;
  }
  std::vector<WindowPiece> may_leave;
  std::vector<Candidate> candidates;  // Of those.
  for (const StepResult::Piece& piece : pieces) {
    if (planner.Stopped()) return {};
    WindowPiece window_piece{piece.address, piece.bytes, 0};
    Candidate candidate;
    if (piece.tensor.node != kNoNode) {
      candidate.gap = planner.GapOver(piece.tensor, at);
      if (candidate.gap == kNoGap) continue;
      const Gap& gap = planner.gaps()[candidate.gap];
      const auto trigger = triggers.find(candidate.gap);
      candidate.is_early = trigger != triggers.end();
      if (candidate.is_early && (trigger->second > at || at + 1 >= gap.before)) continue;
      const double factor = candidate.is_early ? kEarlyCost : planner.HasTime(gap) ? 1 : kShortCost;
      window_piece.cost = factor * static_cast<double>(gap.in_ns + gap.out_ns);
    }
    may_leave.push_back(window_piece);
    candidates.push_back(candidate);
  }
  const PieceWindow cheapest = CheapestWindow(may_leave, piece_bytes);
  RoomWindow window;
  // A buffer may have two pieces: one being copied out, and one for its return.
  absl::flat_hash_set<GapId> seen;
  for (size_t i = cheapest.begin; i < cheapest.end; ++i) {
    if (candidates[i].gap == kNoGap || !seen.insert(candidates[i].gap).second) continue;
    (candidates[i].is_early ? window.early : window.added).push_back(candidates[i].gap);
  }
  return window;
}

}  // namespace spillway::core
