// Lower bounds that no swap plan can beat, per GPU: the memory below which nothing fits, the bytes
// that must travel at a given budget, and the resulting step time. They hold for plans that swap
// whole buffers or parts of them, keep the order of the GPU's operations, and recompute nothing;
// the joint bound, for plans that also recompute buffers.
//
// Notation: steps t = 0, 1, ... are the compute operations of the GPU in the given order; M is its
// budget. A buffer that is not resident is used at the step that writes it and at those that read
// it; a *gap* is the interval between two consecutive uses. In a gap the buffer may be away, unless
// it stays (WorkloadBuffer::stays).
//
// Memory. need(t) = resident + the bytes that step t reads, writes and uses as workspace, less the
// inputs that its outputs may reuse in place, + the bytes that stay in a gap over t. No plan fits
// below L0 = max need(t) (also with recomputation: t runs, and lists' buffers, which stay, are not
// recomputed), nor below resident + the largest buffer that is copied in. (OLLA's
// min_memory_requirement; the "largest GPU operation" that TFLMS v2 prints.) An input with later
// readers is reused in place only if a plan makes those read a copy. Its gap then begins with the
// step itself, not after it, so that saving is not free.
//
// Bytes. D(t) = max(0, need(t) + the bytes of all gaps over t - M) must be away at step t.
//   Bound A: max D(t).
//   Bound B: the minimum sum of x_g, 0 <= x_g <= bytes(g), such that for every t the x_g of the
//   gaps over t sum to at least D(t). Gaps are intervals and a byte costs the same in each, so a
//   sweep that covers each shortfall from the gap that ends last is optimal. Bytes in are charged
//   per gap; bytes out once per buffer, as contents do not change. For the latter the intervals are
//   whole buffers, from the first gap to the end of the last one (a relaxation), and buffers that
//   are on the host anyway (copied in, or copied out for other readers) cost nothing. In D(t),
//   buffers in gaps count with their exact bytes, not rounded up, as copies do.
//
// Time, with B the rates of the copies: each engine's total (compute; the host's; the step's own
// copies plus bound B at rate B), and for every t the earliest start of t and the minimum time from
// there to the end. Let out(t) be bound B's bytes of the steps up to t, which have left before t
// allocates its memory, and in(t) those of the steps from t on, whose copies back start after t has
// run.
//   start(t): not before t-1 has run, nor before out(t) has left. Bytes produced by steps from s on
//   leave only after s has run; of out(t) those are all but the bytes produced before s. So for
//   every s < t start(t) >= end(s) + (out(t) - bytes made before s) / B_out.
//   rest(t), likewise: at least t and rest(t+1); t and in(t) / B_in; and for every u > t, as the
//   bytes read by steps up to u are back when u starts, rest(t) >= t + (in(t) - bytes read after u)
//   / B_in + rest(u).
//
// Joint bound. Let t be the step with the largest D(t). Of the gaps over it, parts y_g are
// recomputed and parts x_g copied, and sum to D(t): then the step takes at least its compute time
// plus the sum of y_g c_g, with c_g the time to recompute a byte of g, and at least its copies in
// plus those of x_g. As a byte copied costs the same in each gap, the smallest maximum of both
// recomputes the bytes of the least c_g, until both are equal. The host's total holds here, too.
// (Inputs of recomputed operations are free, and the shortfalls of other steps are ignored.)
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
  // By operation: whether it may be recomputed, with all its outputs. Empty: none.
  std::vector<bool> may_run_again;
};

struct DeviceBounds {
  int64_t memory_bytes = 0;
  OpId memory_op = kNoOp;  // kNoOp if nothing but resident buffers takes memory.
  // If the budget is below memory_bytes, no plan fits. The bytes below are then, for steps that can
  // fit at all, those forced out, and for the others everything that can be away.
  int64_t excess_bytes = 0;    // Bound A.
  int64_t swap_out_bytes = 0;  // Bound B, besides the step's own copies.
  int64_t swap_in_bytes = 0;
  // With LowerBoundOptions::may_run_again, the joint bound.
  int64_t step_time_ns = 0;
};

// `order`: the compute operations of all devices in the order in which the unswapped step launches
// them (SimulationResult::order). Returns the bounds by device. Errors: those of Simulate; INTERNAL
// also if `order` contains anything else, or an operation twice.
absl::StatusOr<std::vector<DeviceBounds>> ComputeLowerBounds(const Workload& workload,
                                                             absl::Span<const OpId> order,
                                                             const LowerBoundOptions& options,
                                                             const StopToken& stop);

// The same for a workload that is prepared already.
absl::StatusOr<std::vector<DeviceBounds>> ComputeLowerBounds(const Workload& workload,
                                                             const PreparedWorkload& prepared,
                                                             absl::Span<const OpId> order,
                                                             const LowerBoundOptions& options,
                                                             const StopToken& stop);

// Steps first..last, inclusive.
struct StepInterval {
  int32_t first = 0;
  int32_t last = 0;
  int64_t bytes = 0;
};

// Returns, for every t, the minimum bytes that must be taken from `intervals` to meet the demand of
// each step up to t (as far as the intervals over it suffice). Steps are indices into `demand`.
// This is the sweep of bound B. The result is meaningless once `stop` has fired.
std::vector<int64_t> LeastCover(std::vector<StepInterval> intervals,
                                absl::Span<const int64_t> demand, const StopToken& stop = {});

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_LOWER_BOUNDS_H_
