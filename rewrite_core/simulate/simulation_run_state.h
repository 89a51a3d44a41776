// What a run of the simulator has at hand: the engines of each device, its memory, who is ready,
// who waits. The data of SimulationRun (simulation_run.h).
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

  // Who wants memory: how much, and as which of all who ever asked.
  struct Asked {
    int64_t need;
    OpId op;
    int32_t number;
  };
  // Who had to wait, since when.
  struct Waiting {
    int64_t time_ns;
    OpId op;
    int32_t number;
  };
  // An engine, or a launcher, and the operations that are ready for it. Each operation is in one
  // queue at most, so one array of links serves all.
  struct Queue {
    OpId head = kNoOp;
    OpId tail = kNoOp;
    bool asked = false;              // The head waits for memory.
    bool busy = false;               // The engine runs what was the head.
    int64_t look_again_ns = kNever;  // Until then the head cannot start, and an event is set.
  };
  struct Device {
    Queue compute, out, in;
    // Not in kFirstReady: the compute operations that are ready, but for the head, which is whom
    // the launcher, or the engine, has taken from here.
    std::vector<OpId> ready;
    ReadyDraws draws;
    int64_t launcher_free_ns = 0;
    int64_t compute_end_ns = 0;  // Of what was launched.
    int64_t kernel_end_ns = 0;   // Of what was launched and takes time.
    int64_t in_end_ns = 0;       // Of the copies issued.
    int32_t kernels_left = 0;    // Operations that take time and have not been launched.
    bool touched = false;        // To be looked at in the next round.
    bool placed = false;         // Its memory is placed,
    bool diverged = false;       // and who waits is listed by the largest piece, not by the sum.
    std::vector<Asked> asked;    // For its memory, in this round.
    MemoryPool memory{kUnlimited};
    BestFitAllocator allocator;
  };
  // An operation that ends, if `what` is at least 0, or device ~what to look at again.
  struct Event {
    int64_t time_ns;
    int32_t what;
  };

  MemoryPool& pool(int32_t device) { return device < 0 ? host_ : devices_[device].memory; }
  const Op& op(OpId id) const { return workload_->ops[id]; }
  bool is_held(BufferId id) const { return (states_[id] & 1) != 0; }

  const PreparedWorkload* workload_ = nullptr;
  const SimulationOptions* options_ = nullptr;
  bool ahead_ = false;
  bool first_ready_ = true;  // Compute operations are taken in that order.
  absl::optional<StopPoller> poll_;
  bool stopped_ = false;
  bool diverged_ = false;

  int64_t now_ = 0;
  int64_t last_end_ns_ = 0;
  int32_t left_ = 0;  // Operations that have not been given memory.
  std::vector<Device> devices_;
  MemoryPool host_{kUnlimited};
  std::vector<Event> events_;  // A heap.
  std::vector<OpId> end_now_;  // What ends in this moment, besides.
  std::vector<OpId> ready_;    // Since the last round.
  std::vector<int32_t> touched_, touched_now_;
  std::vector<Asked> host_asked_;
  bool host_touched_ = false;
  // All who had to wait, in the order in which they asked; before first_wait_ all have what they
  // asked for.
  std::vector<Waiting> waited_;
  size_t first_wait_ = 0;
  int32_t asks_ = 0;

  // By operation.
  std::vector<int32_t> waits_left_;
  std::vector<OpId> next_;
  std::vector<int64_t> need_;  // Of those who wait, until they are given it; then kNever.
  // Of copies out: when what they wait for on their own device, as far as it is launched, ends.
  std::vector<int64_t> not_before_ns_;
  // By buffer: twice the number of those who hold it, and one more while it has memory.
  std::vector<int32_t> states_;
  // If memory is placed: where, by buffer, and by operation that of its workspace.
  std::vector<Chunk> chunks_, workspaces_;
  // If the timeline is asked for: steps of memory, by buffer from which and before which it is
  // there, by device that of its peak.
  int64_t step_ = 0;
  std::vector<int64_t> from_step_, to_step_, peak_step_;
  SimulationResult result_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_SIMULATION_RUN_STATE_H_
