// SimulationRun: one run of one mode over a prepared workload, by the rules of simulator.h. It
// keeps its memory from run to run.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_SIMULATION_RUN_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_SIMULATION_RUN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/simulate/prepared_workload.h"
#include "rewrite_core/simulate/simulation_run_state.h"
#include "rewrite_core/simulate/simulator.h"

namespace spillway::core {

class SimulationRun : private SimulationRunState {
 public:
  // Errors: INTERNAL if operations wait for each other, or copy_percent is out of its range;
  // INVALID_ARGUMENT if with it times add up to more than int64 holds; those of `stop`.
  absl::StatusOr<SimulationResult> Run(const PreparedWorkload& workload,
                                       const SimulationOptions& options, const StopToken& stop);

  // Whether an allocation of the last run failed although enough bytes were free. If not, a run
  // that only counts memory is the same.
  bool diverged() const { return diverged_; }

 private:
  absl::Status CheckTimes() const;
  void Start();
  void CountWork();
  bool GivenUp() const { return least_time_ns_ > options_->cutoff_ns; }
  // Returns false if the resident buffers do not fit.
  bool TakeResident();
  // Places the resident buffers in an empty region, one after another or as initializers leave
  // them. Returns false if one cannot be placed.
  bool PlaceResident();
  // `buffers`: those of the device.
  bool PlaceInitialized(GpuIndex device, std::vector<BufferId> buffers);
  void FailResident(GpuIndex device, int64_t bytes, int64_t placed_bytes);
  // Runs one round at now_; returns whether any memory was granted.
  bool Round();
  // Moves now_ to the next event; returns false without one, or if a wait for memory times out
  // before it.
  bool Advance();
  void EndEvents();

  void SortReady();
  void BecomeReady(OpId id);
  // Whether this copy in, which has become ready, does so only later: an event brings it back.
  bool ComesLate(OpId id);
  // If the launcher, or the compute engine, is free, makes the next ready operation its head.
  void ChooseHead(GpuIndex index, Device* device);
  void AskForHeads(GpuIndex device);
  void AskForHead(GpuIndex device, Queue* queue, int64_t not_before_ns);
  // Schedules another check of `queue` for `time_ns`, when its current or next head may request
  // memory.
  void LookAgain(GpuIndex device, int64_t time_ns, Queue* queue);
  // Adds `id` to the requests for memory, and decides its reuse in place.
  void Ask(OpId id);
  int64_t ReuseInPlace(const PreparedWorkload::Write& write);
  // `device`: null if memory is only counted.
  void GiveOut(MemoryPool* memory, Device* device, std::vector<Asked>* asked);
  void Wait(const Asked& asking, MemoryPool* memory, const Device* device);
  void Serve(MemoryPool* memory, Device* device);
  // Places everything that `id` needs; returns false, and allocates nothing, if some piece does not
  // fit.
  bool FindPlaces(OpId id, Device* device);
  // Notes that from now on the device differs from a run that only counts memory.
  void Diverge(Device* device);
  // Returns the size of the largest piece that `id` needs.
  int64_t LargestPiece(OpId id) const;
  // Returns by how much the first piece of `id` that cannot be placed exceeds the largest free one.
  int64_t MissingInOnePiece(OpId id);
  // Records the map of the memory that `id` failed to get.
  void RecordPieces(OpId id, GpuIndex device);
  void Fail(Place device, OpId id, int64_t requested_bytes, int64_t in_use_bytes);
  void Grant(OpId id, int64_t bytes, MemoryPool* memory);
  void Launch(OpId id, const Op& op);
  void CountSlowed(OpId id, const Op& op, int64_t duration_ns);
  void StartNow(OpId id, const Op& op);
  void StartCopy(const Op& op, int64_t duration_ns, int64_t* end_ns);
  // Without spread_percent; the least with it; and as drawn.
  int64_t UsualTime(const Op& op) const;
  int64_t LeastTime(const Op& op) const;
  int64_t TimeOf(const Op& op);
  void End(OpId id);
  // Counts the stall, if any, before the compute engine gets a kernel.
  void CountKernel(GpuIndex device, int64_t duration_ns);
  // Adds the time until now since the device could have run something.
  void Stall(GpuIndex device);
  // Releases the buffers that `op` reads and, as their writer, wrote.
  void LetGo(const Op& op);
  void FreeBuffer(BufferId id);
  void FreeWorkspace(OpId id, const Op& op, Device* device);
  void GiveBack(GpuIndex index, Device* device, int64_t bytes);

  void Touch(GpuIndex device) {
    if (devices_[device].touched) return;
    devices_[device].touched = true;
    touched_.push_back(device);
  }
  void Push(Queue* queue, OpId id);
  void Pop(Queue* queue);
  void AddEvent(int64_t time_ns, int32_t what);
  void Satisfy(absl::Span<const OpId> waiting) {
    for (OpId id : waiting) {
      if (--waits_left_[id] > 0) continue;
      __builtin_prefetch(&op(id));
      ready_.push_back(id);
    }
  }
  void Record(GpuIndex device, bool taken);
  void RecordGrant(Place device, int64_t bytes, bool new_peak);
  void RecordTimes(OpId id, int64_t duration_ns, int64_t end_ns) {
    if (!options_->record_times) return;
    OpTimes& times = result_.times[workload_->IdOf(id)];
    times.given_ns = now_;
    times.start_ns = end_ns - duration_ns;
    times.end_ns = end_ns;
    if (times.asked_ns == OpTimes::kNeverRun) times.asked_ns = now_;  // It did not wait.
  }
  void FindAtPeak();
  SimulationResult TakeResult();
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_SIMULATION_RUN_H_
