// What no plan of swaps can beat, per GPU: the memory below which nothing fits, the bytes that must
// travel at a given budget, and the time that takes at least. For plans that swap whole buffers or
// parts of them, keep the order of the GPU's operations, and recompute nothing.
//
// Notation: steps t = 0, 1, ... are the compute operations of the GPU in the given order; M is its
// budget. A buffer that is not resident is used at the step that writes it and at those that read
// it; a *gap* is what lies between two uses that follow each other. In a gap the buffer may be
// away.
//
// Memory. need(t) = resident + what step t reads, writes and uses as workspace, less the inputs
// that its outputs may reuse in place. No plan fits below L0 = max need(t), nor below resident +
// the largest buffer copied in. (OLLA's min_memory_requirement; the "largest GPU operation" that
// TFLMS v2 prints.) An input with later readers is reused in place only if a plan has those read a
// copy: its gap then begins with the step itself, not after it, so what is saved there is not free.
//
// Bytes. D(t) = max(0, need(t) + the bytes of all gaps over t - M) must be away at step t.
//   Bound A: max D(t).
//   Bound B: the least sum of x_g, 0 <= x_g <= bytes(g), such that for every t the x_g of the gaps
//   over t sum to at least D(t). Gaps are intervals and a byte costs the same in each, so a sweep
//   that takes what it lacks from the gap that ends last is optimal. Bytes in are charged per gap;
//   bytes out once per buffer, as contents do not change, so there the intervals are whole buffers,
//   from their first gap to the end of their last one (a relaxation), and buffers that are on the
//   host anyway (copied in, or copied out for others) cost nothing. D(t) counts what waits with its
//   own bytes, not rounded up: what travels is not.
//
// Time, with B the rates of the copies: the sums of each engine (compute; the copies that the step
// has anyway, and bound B at rate B), and for every t the earliest start of t and the least time
// from there to the end. Let out(t) be bound B's bytes of the steps up to t, which are gone before
// t takes its memory, and in(t) those of the steps from t on, whose way back begins when t has run.
//   start(t): not before t-1 has run, nor before out(t) has left. What steps from s on make leaves
//   when s has run: of out(t) that is all but what was made before s, so that for every s < t
//   start(t) >= end(s) + (out(t) - bytes made before s) / B_out.
//   rest(t), likewise: at least t and rest(t+1); t and in(t) / B_in; and for every u > t, as what
//   is wanted at steps up to u is back when u starts, rest(t) >= t + (in(t) - bytes wanted behind
//   u) / B_in + rest(u).
//
// Thread safety: pure functions; any number of calls at once.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_LOWER_BOUNDS_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_LOWER_BOUNDS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/simulate/prepared_workload.h"
#include "rewrite_core/simulate/workload.h"

namespace spillway::core {

struct LowerBoundOptions {
  // Bytes, by device; devices beyond the list have no limit: nothing must travel.
  std::vector<int64_t> device_budget_bytes;
  // Bytes per second, above 0.
  double copy_out_bytes_per_s = 1;
  double copy_in_bytes_per_s = 1;
};

struct DeviceBounds {
  int64_t memory_bytes = 0;
  OpId memory_op = kNoOp;  // kNoOp if nothing but resident buffers takes memory.
  // Where the budget is below memory_bytes no plan fits. The bytes below are then what the steps
  // that can be served at all force, and of the others all that can be away.
  int64_t excess_bytes = 0;    // Bound A.
  int64_t swap_out_bytes = 0;  // Bound B, besides what the step copies anyway.
  int64_t swap_in_bytes = 0;
  int64_t step_time_ns = 0;
};

// `order`: the compute operations of all devices in the order in which the unswapped step launches
// them (SimulationResult::order). By device. Errors as Simulate's; INTERNAL also if `order` holds
// anything else, or anything twice.
absl::StatusOr<std::vector<DeviceBounds>> ComputeLowerBounds(const Workload& workload,
                                                             absl::Span<const OpId> order,
                                                             const LowerBoundOptions& options,
                                                             const StopToken& stop);

// The same of a workload that is prepared already.
absl::StatusOr<std::vector<DeviceBounds>> ComputeLowerBounds(const Workload& workload,
                                                             const PreparedWorkload& prepared,
                                                             absl::Span<const OpId> order,
                                                             const LowerBoundOptions& options,
                                                             const StopToken& stop);

// Steps first..last, both in it.
struct StepInterval {
  int32_t first = 0;
  int32_t last = 0;
  int64_t bytes = 0;
};

// For every t the least bytes that, taken from `intervals`, give each step up to t its demand (as
// far as there is enough over it). Steps are those of `demand`. The sweep of bound B. Once `stop`
// has fired it says nothing.
std::vector<int64_t> LeastCover(std::vector<StepInterval> intervals,
                                absl::Span<const int64_t> demand, const StopToken& stop = {});

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_LOWER_BOUNDS_H_
