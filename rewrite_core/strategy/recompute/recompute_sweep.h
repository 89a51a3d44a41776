// Chooses the buffers to drop and recompute, in one sweep over the launch order of a step with a
// target for its memory. If the next node does not fit, the buffer is dropped that takes the least
// time to recompute, per byte and time until its next use. Before a node that reads a dropped
// buffer, the makers of the missing buffers are cloned. (The eviction rule of dynamic tensor
// rematerialization, Kirisame and others 2020, with the future known.)
//
// Simplified: a copy to the GPU is held until its last reader in the step, but in the plan until a
// clone of that has run.
//
// Deterministic, and near-linear: the candidates are in a heap by their scores when they were last
// examined.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_RECOMPUTE_RECOMPUTE_SWEEP_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_RECOMPUTE_RECOMPUTE_SWEEP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/strategy/order/step_order.h"
#include "rewrite_core/strategy/recompute/recompute_step.h"

namespace spillway::core {

struct SweepTerms {
  int64_t target_bytes = 0;
  // If above 0: memory is placed in a region of this size as TensorFlow's allocator does. If no
  // piece is large enough, the adjacent buffers with the least time are dropped
  // (common/cheapest_window.h).
  int64_t region_bytes = 0;
  // The power of the time until the next use, in the score of a buffer.
  double time_power = 1;
};

struct Sweep {
  // A recomputed node.
  struct Clone {
    Slot original{0};  // Its slot.
    Slot at{0};        // It runs right before this slot.
  };
  // A buffer that a clone, or the node of a slot, reads from a clone of its maker.
  struct Read {
    OrderBuffer buffer{0};
    int32_t from = 0;    // An index in `clones`.
    int32_t clone = -1;  // The reader: an index in `clones`, or -1:
    Slot slot{0};        // the node of this slot.
  };

  bool fits = false;
  std::vector<Clone> clones;  // In the order in which they run.
  std::vector<Read> reads;    // In the order of their readers.
  int64_t peak_bytes = 0;
  int64_t added_ns = 0;      // The time of all clones.
  Slot failed_at = kNoSlot;  // If it does not fit: where.
};

// Errors: those of `stop`.
absl::StatusOr<Sweep> SweepStep(const RecomputeStep& step, const SweepTerms& terms,
                                const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_RECOMPUTE_RECOMPUTE_SWEEP_H_
