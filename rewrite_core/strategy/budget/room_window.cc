#include "rewrite_core/strategy/budget/room_window.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace spillway::core {
namespace {

// The cost of a buffer's copies, as a multiple of their time: if there is no time for both, and if
// it is already away and only comes back later.
constexpr double kShortCost = 3;
constexpr double kEarlyCost = 0.25;

// A piece of memory at the point where the plan ran out.
struct Candidate {
  GapId gap = kNoGap;  // kNoGap: the piece is free.
  bool is_early = false;
  bool may_leave = true;
  double cost = 0;
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
  const auto judge = [&](const StepResult::Piece& piece) {
    Candidate candidate;
    if (piece.tensor.node == kNoNode) return candidate;
    candidate.gap = planner.GapOver(piece.tensor, at);
    candidate.may_leave = candidate.gap != kNoGap;
    if (!candidate.may_leave) return candidate;
    const Gap& gap = planner.gaps()[candidate.gap];
    const double copies_ns = static_cast<double>(gap.in_ns + gap.out_ns);
    const auto trigger = triggers.find(candidate.gap);
    candidate.is_early = trigger != triggers.end();
    if (candidate.is_early) {
      candidate.may_leave = trigger->second <= at && at + 1 < gap.before;
      candidate.cost = kEarlyCost * copies_ns;
    } else {
      candidate.cost = (planner.HasTime(gap) ? 1 : kShortCost) * copies_ns;
    }
    return candidate;
  };
  std::vector<Candidate> candidates;
  for (const StepResult::Piece& piece : pieces) {
    if (planner.Stopped()) return {};
    candidates.push_back(judge(piece));
  }

  // For each piece, considers the shortest sufficient window that ends with it.
  RoomWindow best;
  double least_cost = -1;
  size_t best_begin = 0, best_end = 0, begin = 0;
  int64_t bytes = 0;
  double cost = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const bool follows = i > 0 && candidates[i - 1].may_leave &&
                         pieces[i - 1].address + pieces[i - 1].bytes == pieces[i].address;
    if (!follows) {
      begin = i;
      bytes = 0;
      cost = 0;
    }
    if (!candidates[i].may_leave) continue;
    bytes += pieces[i].bytes;
    cost += candidates[i].cost;
    for (; bytes - pieces[begin].bytes >= piece_bytes; ++begin) {
      bytes -= pieces[begin].bytes;
      cost -= candidates[begin].cost;
    }
    if (bytes >= piece_bytes && (least_cost < 0 || cost < least_cost)) {
      least_cost = cost;
      best_begin = begin;
      best_end = i + 1;
    }
  }
  // A buffer may have two pieces: where it is being copied from, and where it came back to.
  absl::flat_hash_set<GapId> seen;
  for (size_t i = best_begin; i < best_end; ++i) {
    if (candidates[i].gap == kNoGap || !seen.insert(candidates[i].gap).second) continue;
    (candidates[i].is_early ? best.early : best.added).push_back(candidates[i].gap);
  }
  return best;
}

}  // namespace spillway::core
