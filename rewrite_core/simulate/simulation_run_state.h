// The state of SimulationRun (simulation_run.h): each device's engines and memory, the ready and
// the waiting operations.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_SIMULATION_RUN_STATE_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_SIMULATION_RUN_STATE_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/simulate/best_fit_allocator.h"
#include "rewrite_core/simulate/memory_pool.h"
#include "rewrite_core/simulate/prepared_workload.h"
#include "rewrite_core/simulate/ready_order.h"
#include "rewrite_core/simulate/simulator.h"

namespace spillway::core {

class SimulationRunState {
 protected:
  using Op = PreparedWorkload::Op;
  using Chunk = BestFitAllocator::Chunk;
  static constexpr int64_t kNever = -1;

  // A request for memory: its bytes, and its number among all requests.
  struct Asked {
    int64_t need;
    OpId op;
    int32_t number;
  };
  // An operation that had to wait, and since when.
  struct Waiting {
    int64_t time_ns;
    OpId op;
    int32_t number;
  };
  // An engine, or a launcher, and the operations that are ready for it. Each operation is in at
  // most one queue, so one array of links serves all.
  struct Queue {
    OpId head = kNoOp;
    OpId tail = kNoOp;
    bool asked = false;              // The head waits for memory.
    bool busy = false;               // The engine runs the former head.
    int64_t look_again_ns = kNever;  // The head cannot start before; an event is set.
  };
  struct Device {
    Queue compute, out, in;
    // Unless kFirstReady: the ready compute operations, except for the head, which the launcher or
    // the engine has taken from here.
    std::vector<OpId> ready;
    ReadyDraws draws;
    int64_t launcher_free_ns = 0;
    int64_t compute_end_ns = 0;  // When all launched operations end,
    int64_t kernel_end_ns = 0;   // and all of them that take time,
    int64_t in_end_ns = 0;       // and all copies issued.
    int32_t kernels_left = 0;    // Operations that take time and have not been launched.
    // With a cutoff: the durations of operations that have not been launched, by engine.
    int64_t compute_left_ns = 0, in_left_ns = 0;
    bool touched = false;      // To be visited in the next round.
    bool placed = false;       // Its memory is placed,
    bool diverged = false;     // and waiting operations are keyed by largest piece, not by sum.
    std::vector<Asked> asked;  // The requests for its memory in this round.
    MemoryPool memory{kUnlimited};
    BestFitAllocator allocator;
  };
  // The end of operation `what`, if that is at least 0; otherwise device ~what must be visited
  // again.
  struct Event {
    int64_t time_ns;
    int32_t what;
  };

  MemoryPool& pool(Place device) { return device < 0 ? host_ : devices_[device].memory; }
  const Op& op(OpId id) const { return workload_->ops[id]; }
  bool is_held(BufferId id) const { return (states_[id] & 1) != 0; }

  const PreparedWorkload* workload_ = nullptr;
  const SimulationOptions* options_ = nullptr;
  bool ahead_ = false;
  bool first_ready_ = true;  // The order is kFirstReady.
  absl::optional<StopPoller> poll_;
  bool diverged_ = false;

  int64_t now_ = 0;
  int64_t last_end_ns_ = 0;
  int64_t host_end_ns_ = 0;    // When all work of the host's engine ends.
  int64_t least_time_ns_ = 0;  // With a cutoff: the step's minimum time.
  int32_t left_ = 0;           // Operations that have not been granted memory.
  std::vector<Device> devices_;
  MemoryPool host_{kUnlimited};
  std::vector<Event> events_;  // A heap.
  std::vector<OpId> end_now_;  // Operations that also end at this moment.
  std::vector<OpId> ready_;    // Became ready since the last round.
  std::vector<GpuIndex> touched_, touched_now_;
  std::vector<Asked> host_asked_;
  bool host_touched_ = false;
  // All operations that had to wait, in order of their requests; those before first_wait_ have been
  // served.
  std::vector<Waiting> waited_;
  size_t first_wait_ = 0;
  int32_t asks_ = 0;

  // By operation.
  std::vector<int32_t> waits_left_;
  std::vector<OpId> next_;
  std::vector<int64_t> need_;  // While it waits for memory; otherwise kNever.
  // For copies out: when the launched operations of their own device that they wait for end; for
  // copies in that come late: when they do.
  std::vector<int64_t> not_before_ns_;
  // By buffer: twice the number of its holders, plus one while it has memory.
  std::vector<int32_t> states_;
  // If memory is placed: the chunk of each buffer, and of each operation's workspace.
  std::vector<Chunk> chunks_, workspaces_;
  // If the timeline is recorded: the count of changes of memory; by buffer, when it becomes live
  // and when it is freed; by device, when the peak was.
  int64_t step_ = 0;
  std::vector<int64_t> from_step_, to_step_, peak_step_;
  SimulationResult result_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_SIMULATION_RUN_STATE_H_
