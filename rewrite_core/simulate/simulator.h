// The simulator: runs a Workload on GPUs with three engines each (compute, copies out, copies in)
// and a host with one, and reports how much memory the step takes, how long it takes, and whether
// it fits. It is driven by events, not ticks: times are integer nanoseconds, and a run takes
// (operations + edges) * log. Running out of memory is a result, not an error.
//
// Memory. A buffer counts with its size rounded up to 256 bytes. A device's resident buffers are
// live from the start. Every other buffer is live from the allocation for its writer until its
// writer and all its readers have released it. An output reuses in place the buffer of the input
// that `reuses` names if, when its operation first requests memory, that operation is the buffer's
// only remaining reader and both have the same size: the test of TensorFlow's forward_input, whose
// type check is left to the maker of the workload. Host memory counts only outputs of kCopyOut and
// kHost: buffers in transit, neither CPU variables nor the small outputs of GPU kernels that live
// there.
//
// kLaunchAhead is TensorFlow's behaviour. Each GPU has a launcher, a queue in order of readiness. A
// compute operation is ready when every predecessor is *launched* (compute on the same device) or
// *done* (anything else). When the launcher is free, it allocates the outputs and the workspace of
// the operation at the head of the queue. That operation is then launched: it releases its inputs
// and its workspace (the next owner of that memory runs later on the same stream), and runs after
// everything launched before it. The launcher is free again after `launch_ns`, or at once if the
// operation takes no time. A copy out is issued when its predecessors are launched or done, as
// above, and starts in order of issue when they are done, its engine is free and there is host
// memory. A copy in requests memory when all its predecessors are done, is issued when it has that
// memory, and starts in order of issue when everything launched on its device before its issue is
// done.
//
// kSynchronous: every operation waits until its predecessors are done. Each engine serves its queue
// in order of readiness; memory is allocated at the start of an operation and released at its end.
//
// The host. A host operation starts when it has its memory; one on the host's engine after those
// that got theirs before it, in either mode.
//
// Other orders and times. The above describes a GPU's queue of compute operations (at the launcher
// or at the engine) for ReadyOrder::kFirstReady. In other orders (ready_order.h) the queue has no
// head until the launcher or the engine is free for one; the operation chosen then stays the head
// until it is launched or started, however long it waits for memory. With copy_percent a copy takes
// that percentage of its time, rounded down to a whole nanosecond. With spread_percent the time of
// every kernel and copy is multiplied with, or divided by (as likely), a whole percentage from 100
// to that one, rounded down, to at least 1 ns; drawn from ReadyDraws when it is launched or
// started.
//
// Late reads (late_ns above 0). Tensors that a GPU reads from the host at the start of a step, such
// as weights on a CPU, come in the order in which the host's threads get to them, while the first
// operations already take memory: they may lie among these operations' outputs until the end of the
// step. (Under a hard limit, a plan for two towers therefore ran out in half of its runs.) Here a
// copy in that becomes ready in the first late_ns of the step does so 1 to late_ns nanoseconds
// later; drawn, like kMixed's choices, from its device's ReadyDraws.
//
// Placement (SimulationOptions::placed). Each GPU with a budget has a region of that size and an
// allocator (best_fit_allocator.h). The resident buffers are placed in the empty region, in order
// of ids or as initializers leave them (below). Every later allocation places all of an operation's
// outputs, in order, and its workspace, or none of them. A buffer reused in place keeps its
// address. Free memory that is too fragmented for the request does not count as free.
//
// Initializers (initializer_seed above 0). TensorFlow runs the initializers of variables in any
// order, several at once. The first value of a reference variable is copied from its producer's
// memory (AssignOp::Compute in core/kernels/assign_op.h: the variable asks for other allocator
// attributes than the value has, so it never reuses its memory), which leaves holes between such
// variables (measured: a CNN's 9 MiB of variables were spread over the first 14 MiB). Here
// InitializerDraws gives each device an order of its resident buffers and the number of
// initializers that run at once. Each buffer in turn is placed; one that is copied is placed behind
// a temporary of its size. The oldest temporary is freed when as many exist as run at once, and
// earlier if a buffer cannot be placed; a temporary that cannot be placed is left out. In the end
// all are freed.
//
// Wanted workspaces. cuDNN takes a workspace while it launches a convolution, if it is free at
// once, and otherwise another algorithm (AllocateScratchOrFallback in core/kernels/conv_ops_gpu.h).
// Nothing waits for it, and the memory is free again before the next operation is launched: so it
// changes neither memory nor order, and only its absence is counted (DeviceUse::slowed_ns). The
// algorithm is chosen in the first step, which needs more: each is tried with a workspace between
// two redzones, beside a copy of the output between two redzones, unless there is no memory for
// that copy (AutotuneUnfusedConv in conv_ops_gpu.cc, WrapRedzoneBestEffort in gpu_utils.cc). The
// free memory is the largest free piece or, if memory is only counted, all free bytes; or the
// device's bytes besides its budget, if those are more.
//
// Waiting. An operation waits if its allocation does not fit. Freed memory goes to the first
// waiting operation for which it is enough. An operation that has waited for 10 s (kMemoryWaitNs),
// or that still waits when nothing runs, is out of memory; if there are several, the one that
// requested memory first is.
//
// One moment is simulated in rounds, until a round allocates nothing:
//   1. Operations that end now end.
//   2. Operations that have become ready join their queues, in order of ids; those without a queue
//      (kHost, and copies in when launched ahead) request memory.
//   3. By device, the head of each queue whose engine is free requests memory: compute, copies out,
//      copies in.
//   4. The host, then device by device, allocates; an operation that gets its memory starts or is
//      launched.
//
// Ties. So, launched ahead, a copy in that gets its memory is issued before the operations that
// become ready in the same round: it does not wait for those that its own gate lets through (the
// pace edges from its swap-in). It is behind those of earlier rounds, which fewer host operations
// precede at that moment. TensorFlow guarantees neither, but the copy's way is shorter (inferred
// from its source, in core/common_runtime unless said, not measured). The copy is issued by the
// `_Send` behind the swap-in (SameWorkerRecvDone in rendezvous_mgr.cc). A control edge between
// devices takes a constant behind the swap-in (AddDummyConst in core/graph/graph_partition.cc) and
// its `_Send`; then an event of the stream of copies in, which the host polls for
// (GPUUtil::CopyCPUTensorToGPU in gpu/gpu_util.cc); then, on another thread (ScheduleReady in
// executor.cc), an Identity (AddRecv in graph_partition.cc); only then is the operation launched.
// Left out: that event comes after the copies that are on the stream already.
//
// Thread safety: pure functions; any number of calls at once.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_SIMULATOR_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_SIMULATOR_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/machine/hardware.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/simulate/ready_order.h"
#include "rewrite_core/simulate/workload.h"

namespace spillway::core {

inline constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
// TensorFlow's allocator returns multiples of this (Allocator::kAllocatorAlignment of the BFC
// allocator, kMinAllocationSize).
inline constexpr int64_t kAllocationBytes = 256;
inline constexpr int64_t AllocatedBytes(int64_t bytes) {
  return (bytes + kAllocationBytes - 1) / kAllocationBytes * kAllocationBytes;
}
// How long an allocation waits for memory to be freed (TensorFlow's BFCAllocator: 10,000 ms).
inline constexpr int64_t kMemoryWaitNs = 10'000'000'000;
inline constexpr int32_t kMaxCopyPercent = 10'000;
inline constexpr int32_t kMaxSpreadPercent = 1'000;
// An operation's time without the workspace that it wants, in percent of its time. An assumption
// until it is measured; the step's time hardly depends on it, as few go without.
inline constexpr int32_t kWithoutWorkspacePercent = 130;
// Both redzones of an allocation (RedzoneAllocator::kDefaultRedzoneSize on each side).
inline constexpr int64_t kRedzoneBytes = 2 * (int64_t{8} << 20);

enum class SimulationMode : uint8_t { kLaunchAhead, kSynchronous };

struct SimulationOptions {
  SimulationMode mode = SimulationMode::kLaunchAhead;
  // Bytes, by device; devices beyond the list have no limit.
  std::vector<int64_t> device_budget_bytes;
  int64_t host_budget_bytes = kUnlimited;
  // From one kernel's launch to the next. kLaunchAhead alone.
  int64_t launch_ns = 0;
  // Which of the ready compute operations a GPU runs next; the seed is for all that is drawn.
  ReadyOrder ready_order = ReadyOrder::kFirstReady;
  uint32_t ready_seed = 0;
  // 0: operations that become ready in one round join their queues in order of ids; otherwise in
  // order of ShuffledRank.
  uint32_t file_seed = 0;
  // The duration of copies, in percent: 1 to kMaxCopyPercent.
  int32_t copy_percent = 100;
  // Each operation of a GPU takes its own share of its time, 100/spread_percent to
  // spread_percent/100: 100 to kMaxSpreadPercent.
  int32_t spread_percent = 100;
  int64_t late_ns = 0;  // At most kMemoryWaitNs.
  // kLaunchAhead alone. A run that must take longer, by the work that its launched operations leave
  // to an engine, is given up.
  int64_t cutoff_ns = kUnlimited;
  // Place the memory of devices with a budget as TensorFlow's allocator does
  // (best_fit_allocator.h), not only count it: an allocation that cannot be placed does not fit.
  bool placed = false;
  // With `placed`: the seed of InitializerDraws; 0: variables are placed side by side.
  uint32_t initializer_seed = 0;
  // With `placed`: how much larger than the request a chunk may be without being split.
  int64_t max_fragmentation_bytes = kDefaultMaxFragmentationBytes;
  // kLaunchAhead alone: fill in `slowed_ns` for these limits of wanted workspaces, in bytes, on
  // devices with these bytes besides their budgets; devices beyond the list have none.
  std::vector<int64_t> workspace_limits, spare_bytes;
  int64_t redzone_bytes = kRedzoneBytes;
  // Fill in `timeline` and `at_peak`.
  bool record_timeline = false;
  // Fill in SimulationResult::pieces.
  bool record_pieces = false;
  // Fill in `order`,
  bool record_order = true;
  // and `times`.
  bool record_times = false;
};

// A piece of a device's region: free, or occupied by a buffer.
struct PlacedPiece {
  int64_t address = 0;
  int64_t bytes = 0;
  BufferId buffer = kNoBufferId;  // kNoBufferId: free.
};

struct OutOfMemory {
  Place device{0};  // Or kHostPlace.
  OpId op = kNoOp;  // The requester; kNoOp: the resident buffers alone do not fit.
  int64_t requested_bytes = 0;
  int64_t in_use_bytes = 0;
  int64_t budget_bytes = 0;
  int64_t time_ns = 0;  // When the wait ended.
  // Enough bytes were free, but not in one piece.
  bool fragmented = false;
  // In that case: not even in several pieces, since the rest is inside chunks that are taken, which
  // may be up to twice as large as the buffers in them.
  bool in_chunks = false;
  // How many more bytes should have been free; if fragmented, by how much the first piece that
  // could not be placed exceeds the largest free one.
  int64_t missing_bytes = 0;
  NodeId node = kNoNode;           // Of `op`,
  OpKind kind = OpKind::kCompute;  // and its kind. A copy's node is the one whose output travels.
};

// A moment at which the memory in use changed.
struct MemoryPoint {
  int64_t time_ns = 0;
  int64_t high_bytes = 0;  // The maximum in use during that moment,
  int64_t bytes = 0;       // and at its end.
};

struct DeviceUse {
  int64_t resident_bytes = 0;
  int64_t peak_bytes = 0;      // With the resident ones.
  OpId peak_op = kNoOp;        // Its allocation made the peak; kNoOp: the resident buffers did.
  NodeId peak_node = kNoNode;  // Of peak_op.
  // Busy times of the engines, and the time that the compute engine was idle, with kernels left to
  // run, waiting for a copy, the host, another device or memory (not for the launcher).
  int64_t compute_ns = 0;
  int64_t copy_out_ns = 0;
  int64_t copy_in_ns = 0;
  int64_t stall_ns = 0;
  int64_t copy_out_bytes = 0;  // Not rounded.
  int64_t copy_in_bytes = 0;
  // By workspace limit: how much longer all operations take that do not get the workspace that they
  // want, up to the limit. Empty if no operation wants one.
  std::vector<int64_t> slowed_ns;
  // On request: memory in use over time, from time 0, and the buffers live at the peak, by id,
  // without the resident ones.
  std::vector<MemoryPoint> timeline;
  std::vector<BufferId> at_peak;
};

// One operation; kNeverRun: it did not happen.
struct OpTimes {
  static constexpr int64_t kNeverRun = -1;
  int64_t given_ns = kNeverRun;  // When its memory was allocated: launched, issued or started.
  int64_t start_ns = kNeverRun;  // When its engine started it,
  int64_t end_ns = kNeverRun;    // and was done.
  int64_t asked_ns = kNeverRun;  // When it requested memory: given_ns, unless it had to wait.
};

struct SimulationResult {
  bool fits() const { return !out_of_memory.has_value(); }
  // Absent if everything ran. Otherwise the figures below are those of the moment of failure.
  std::optional<OutOfMemory> out_of_memory;
  // On request, if a placed allocation failed: the first of its pieces that could not be placed,
  // and, by address, the free pieces and those of buffers that are not resident. (The rest:
  // resident buffers and workspaces.)
  int64_t piece_bytes = 0;
  std::vector<PlacedPiece> pieces;
  bool waited = false;  // Some allocation had to wait.
  // More than the cutoff, and at most the time that it would have taken, if the run was given up:
  // its result is not known, and the figures below are those of that moment.
  int64_t step_time_ns = 0;
  std::vector<DeviceUse> devices;  // As in the workload.
  int64_t host_peak_bytes = 0;
  int64_t host_ns = 0;  // Busy time of the host's engine.
  // The compute operations in the order in which they were launched, or started.
  std::vector<OpId> order;
  std::vector<OpTimes> times;  // By operation, if requested.
};

// INTERNAL if the workload breaks a rule of workload.h, or an option its range; INVALID_ARGUMENT if
// its sizes or times add up to more than int64 holds, and those of `stop`.
absl::StatusOr<SimulationResult> Simulate(const Workload& workload,
                                          const SimulationOptions& options, const StopToken& stop);

// A step fits if it fits in both modes.
struct BothModes {
  SimulationResult launch_ahead;
  SimulationResult synchronous;
  bool is_partial = false;  // The synchronous step was not simulated.

  bool fits() const { return !is_partial && launch_ahead.fits() && synchronous.fits(); }
};

// Cheaper than two calls of Simulate. Ignores options.mode.
absl::StatusOr<BothModes> SimulateBothModes(const Workload& workload,
                                            const SimulationOptions& options,
                                            const StopToken& stop);
// For searches: if launching ahead does not fit, or takes longer than `cutoff_ns`, the synchronous
// mode is not simulated.
absl::StatusOr<BothModes> SimulateWithCutoff(const Workload& workload,
                                             const SimulationOptions& options, int64_t cutoff_ns,
                                             const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_SIMULATOR_H_
