// The simulator: plays a Workload on GPUs of three engines each (compute, copies out, copies in)
// and says how much memory it takes, how long, and whether it fits. Events, not ticks: integer
// nanoseconds, time in the order of (operations + edges) * log. Out of memory is a result.
//
// Memory. A buffer counts with its bytes rounded up to 256. Resident buffers of a device are there
// from the start; every other buffer from when its writer is given memory until its writer and its
// readers have let go. An output takes over the memory of the input that `reuses` names, at the
// moment at which its operation first asks for memory, if that operation is all who is still to
// read it, and both have the same number of bytes and count: what TensorFlow's forward_input asks,
// whose check of types is the workload's. In the host's memory count only what kCopyOut and kHost
// write: buffers on their way, not CPU variables, nor the small outputs of GPU kernels that live
// there.
//
// kLaunchAhead, what TensorFlow does. Each GPU has a launcher: a queue in order of readiness. A
// compute operation is ready when all it waits for is *launched* (compute on its own device) or
// *done* (all else). The launcher, when it is free, gives the head memory for its outputs and its
// workspace; then the head is launched, lets go of what it reads and of its workspace (who takes
// that memory runs later on the same stream), and runs after all that was launched before. The
// launcher is free again `launch_ns` later, or at once if the duration is 0. A copy out is issued
// when all it waits for is launched or done as above, starts in order of issue when all that is
// done, its engine is free and there is host memory. A copy in asks for memory when all it waits
// for is done, is issued when it has it, and starts in order of issue when all that was launched on
// its device before its issue is done.
//
// kSynchronous. All wait until what they wait for is done. Each engine takes its queue in order of
// readiness; memory is given at the start, and let go at the end.
//
// Other orders and times. What is said of the queue of a GPU's compute operations, be it before the
// launcher or before the engine, is of ReadyOrder::kFirstReady. In other orders (ready_order.h) the
// queue has no head until the launcher, or the engine, is free for one; whom it takes then stays
// the head until it is launched, or started, however long it waits for memory. With copy_percent a
// copy takes so many percent of its time, in whole ns, rounded down.
//
// Placed (SimulationOptions::placed). Each GPU with a budget has a region of so many bytes, and an
// allocator (best_fit_allocator.h). From an empty region it gives the resident buffers a place, in
// order of ids, or as initializers leave them (below); then whoever is given memory gets a place
// for each of his outputs, in their order, and for his workspace, all or none. What is taken over
// keeps its place. Memory that is free, but not in one piece for each of these, is as if it were
// not there.
//
// Initializers (initializer_seed above 0). TensorFlow runs the initializers of variables in any
// order, several at once. The first value of a reference variable is copied from where it was
// computed (AssignOp::Compute in core/kernels/assign_op.h: the variable asks for other allocator
// attributes than the value has, so it never takes over its memory), so that such variables lie
// with holes between them (tried: those of a CNN with 9 MiB took the first 14). Here, by device,
// InitializerDraws gives the resident buffers an order, and how many initializers run at once. Each
// buffer in turn gets a place; if it is one that is copied, behind a temporary of its size. The
// oldest temporary is freed once there are as many as run at once, and earlier where a buffer finds
// no place; one that finds no place itself is left out; in the end all are freed.
//
// Who asks for memory that is not there waits. Memory goes to the first of those who asked that it
// suffices for. Who has waited for 10 s (kMemoryWaitNs), or still waits when nothing runs, is out
// of memory; of several the first who asked.
//
// One moment is played in rounds, until a round gives memory to nobody:
//   1. What ends now ends.
//   2. What has become ready joins its queue, in order of ids; those without a queue (kHost, copies
//      in when launched ahead) ask for memory.
//   3. By device, the head of each queue whose engine is free asks: compute, copies out, copies in.
//   4. The host, then device by device, gives out memory; who is given it starts or is launched.
//
// Thread safety: pure functions; any number of calls at once.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_SIMULATOR_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_SIMULATOR_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/simulate/ready_order.h"
#include "rewrite_core/simulate/workload.h"

namespace spillway::core {

inline constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
// TensorFlow's allocator hands out multiples of this (Allocator::kAllocatorAlignment of the BFC
// allocator, kMinAllocationSize).
inline constexpr int64_t kAllocationBytes = 256;
inline constexpr int64_t AllocatedBytes(int64_t bytes) {
  return (bytes + kAllocationBytes - 1) / kAllocationBytes * kAllocationBytes;
}
// A chunk of memory that is larger than what is asked for by this much is split in any case
// (BFCAllocator::FindChunkPtr in tensorflow/core/common_runtime/bfc_allocator.cc, where
// Options::fragmentation_fraction is 0).
inline constexpr int64_t kDefaultMaxFragmentationBytes = int64_t{128} << 20;
// How long an allocation waits for memory to be freed (TensorFlow's BFCAllocator: 10,000 ms).
inline constexpr int64_t kMemoryWaitNs = 10'000'000'000;
inline constexpr int32_t kMostCopyPercent = 10'000;

enum class SimulationMode : uint8_t { kLaunchAhead, kSynchronous };

struct SimulationOptions {
  SimulationMode mode = SimulationMode::kLaunchAhead;
  // Bytes, by device; devices beyond the list have no limit.
  std::vector<int64_t> device_budget_bytes;
  int64_t host_budget_bytes = kUnlimited;
  // From one kernel's launch to the next. kLaunchAhead alone.
  int64_t launch_ns = 0;
  // Which of the compute operations that are ready a GPU takes; the seed is kMixed's.
  ReadyOrder ready_order = ReadyOrder::kFirstReady;
  uint32_t ready_seed = 0;
  // What a copy takes of its time: 1 to kMostCopyPercent.
  int32_t copy_percent = 100;
  // Memory of devices with a budget is placed, as TensorFlow's allocator does it
  // (best_fit_allocator.h), not only counted: who finds no place waits as if there were too little.
  bool placed = false;
  // Of placed memory: how variables lie; 0: side by side.
  uint32_t initializer_seed = 0;
  // Of placed memory: how much larger than asked for a chunk may be that is not split.
  int64_t max_fragmentation_bytes = kDefaultMaxFragmentationBytes;
  // Fill in `timeline` and `at_peak`.
  bool record_timeline = false;
  // Fill in SimulationResult::pieces.
  bool record_pieces = false;
  // Fill in `order`,
  bool record_order = true;
  // and `times`.
  bool record_times = false;
};

// A part of a device's region that is free, or has a buffer.
struct PlacedPiece {
  int64_t address = 0;
  int64_t bytes = 0;
  BufferId buffer = -1;  // -1: free.
};

struct OutOfMemory {
  int32_t device = 0;  // -1: the host.
  OpId op = kNoOp;     // Who asked; kNoOp: the resident buffers alone are too much.
  int64_t requested_bytes = 0;
  int64_t in_use_bytes = 0;
  int64_t budget_bytes = 0;
  int64_t time_ns = 0;  // When the wait ended.
  // The sum of bytes was not too much, but there was no place for each piece.
  bool fragmented = false;
  // How many bytes more there should have been: free; or, where fragmented, in the largest free
  // piece, for the first of the pieces that found no place.
  int64_t missing_bytes = 0;
  NodeId node = kNoNode;           // Of `op`,
  OpKind kind = OpKind::kCompute;  // and what it is. A copy's node is the one whose output travels.
};

// A moment at which the memory in use changed, at its end or on the way.
struct MemoryPoint {
  int64_t time_ns = 0;
  int64_t high_bytes = 0;  // The most in use after somebody was given memory in that moment,
  int64_t bytes = 0;       // and at its end.
};

struct DeviceUse {
  int64_t resident_bytes = 0;
  int64_t peak_bytes = 0;      // With the resident ones.
  OpId peak_op = kNoOp;        // Whose memory made the peak; kNoOp: it is what is resident.
  NodeId peak_node = kNoNode;  // Of peak_op.
  // Busy times of the engines, and the time for which the compute engine stood still, with kernels
  // to run left, because a copy, the host or another device had to be waited for, or memory; not
  // because of the launcher.
  int64_t compute_ns = 0;
  int64_t copy_out_ns = 0;
  int64_t copy_in_ns = 0;
  int64_t stall_ns = 0;
  int64_t copy_out_bytes = 0;  // Not rounded.
  int64_t copy_in_bytes = 0;
  // If asked for: memory in use over time, from time 0, and the buffers that are there at the
  // peak, by id, without the resident ones.
  std::vector<MemoryPoint> timeline;
  std::vector<BufferId> at_peak;
};

// Of one operation; kNeverRun where it did not come to that.
struct OpTimes {
  static constexpr int64_t kNeverRun = -1;
  int64_t given_ns = kNeverRun;  // When it was given its memory: launched, issued or started.
  int64_t start_ns = kNeverRun;  // When its engine took it up,
  int64_t end_ns = kNeverRun;    // and was done.
  int64_t asked_ns = kNeverRun;  // When it asked for its memory: given_ns, unless it had to wait.
};

struct SimulationResult {
  bool fits() const { return !out_of_memory.has_value(); }
  // Absent if all has run. Otherwise the figures below are those of the moment at which it ended.
  std::optional<OutOfMemory> out_of_memory;
  // If asked for, and who is out of memory asked for memory that is placed: of what was asked for,
  // the first piece that finds no place; and by address what is free, and what has a buffer that is
  // not resident. (The rest: resident buffers, workspaces.)
  int64_t piece_bytes = 0;
  std::vector<PlacedPiece> pieces;
  bool waited = false;  // Somebody was not given memory at once.
  int64_t step_time_ns = 0;
  std::vector<DeviceUse> devices;  // As in the workload.
  int64_t host_peak_bytes = 0;
  // The compute operations in the order in which they were launched, or started.
  std::vector<OpId> order;
  std::vector<OpTimes> times;  // By operation, if asked for.
};

// INTERNAL if the workload breaks a rule of workload.h, or an option its range; INVALID_ARGUMENT if
// its sizes or times add up to more than int64 holds, and as `stop` says.
absl::StatusOr<SimulationResult> Simulate(const Workload& workload,
                                          const SimulationOptions& options, const StopToken& stop);

// A step fits if it does either way.
struct BothModes {
  SimulationResult launch_ahead;
  SimulationResult synchronous;
  bool is_partial = false;  // The synchronous step was not played.

  bool fits() const { return !is_partial && launch_ahead.fits() && synchronous.fits(); }
};

// Cheaper than two calls of Simulate. options.mode is not looked at.
absl::StatusOr<BothModes> SimulateBothModes(const Workload& workload,
                                            const SimulationOptions& options,
                                            const StopToken& stop);
// For searches: where launching ahead does not fit, or takes longer than `worth_ns`, the
// synchronous step is not played.
absl::StatusOr<BothModes> SimulateIfWorth(const Workload& workload,
                                          const SimulationOptions& options, int64_t worth_ns,
                                          const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_SIMULATOR_H_
