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
  // INVALID_ARGUMENT if with it times add up to more than int64 holds; as `stop` says.
  absl::StatusOr<SimulationResult> Run(const PreparedWorkload& workload,
                                       const SimulationOptions& options, const StopToken& stop);

  // Whether, in the last run, somebody did not find his places whom the sum of bytes sufficed for.
  // If not, the run is the same where memory is only counted.
  bool diverged() const { return diverged_; }

 private:
  // Counts a step; true once work should end: every loop then does, and Run says so.
  bool Stopped() { return stopped_ = stopped_ || poll_->Tick(); }
  absl::Status CheckTimes() const;
  void Start();
  // False if the resident buffers do not fit.
  bool TakeResident();
  // From the start of an empty region, one after another or as initializers leave them. False if
  // one cannot be placed.
  bool PlaceResident();
  bool PlaceInitialized(int32_t device);
  void FailResident(int32_t device, int64_t bytes, int64_t placed_bytes);
  // One round at now_; returns whether memory was given to somebody.
  bool Round();
  // Moves now_ to the next event; false if there is none, or somebody's patience ends before it.
  bool Advance();
  void EndEvents();

  void SortReady();
  void BecomeReady(OpId id);
  // If the launcher, or the compute engine, is free, the next of those who are ready is its head.
  void ChooseHead(int32_t index, Device* device);
  void AskForHeads(int32_t device);
  void AskForHead(int32_t device, Queue* queue, int64_t not_before_ns);
  // When the head of `queue`, or who will be, may ask.
  void LookAgain(int32_t device, int64_t time_ns, Queue* queue);
  // Enters `id` among those who want memory; what it reuses in place is settled here.
  void Ask(OpId id);
  int64_t ReuseInPlace(const PreparedWorkload::Write& write);
  // `device`: null where memory is counted and not placed.
  void GiveOut(MemoryPool* memory, Device* device, std::vector<Asked>* asked);
  void Wait(const Asked& asking, MemoryPool* memory, const Device* device);
  void Serve(MemoryPool* memory, Device* device);
  // Finds places for all that `id` needs; false, and nothing taken, if there is not one for each.
  bool Place(OpId id, Device* device);
  // From now on the device's memory is not as if it were counted.
  void Diverge(Device* device);
  // Of what `id` needs.
  int64_t LargestPiece(OpId id) const;
  // By how much the first of its pieces that cannot be placed is larger than the largest free one.
  int64_t MissingInOnePiece(OpId id);
  // Of who is out of memory.
  void RecordPieces(OpId id, int32_t device);
  void Fail(int32_t device, OpId id, int64_t requested_bytes, int64_t in_use_bytes);
  void Grant(OpId id, int64_t bytes, MemoryPool* memory);
  void Launch(OpId id, const Op& op);
  void StartNow(OpId id, const Op& op);
  void StartCopy(const Op& op, int64_t duration_ns, int64_t* end_ns);
  int64_t CopyTime(const Op& copy) const;
  void End(OpId id);
  // The compute engine is about to get a kernel.
  void CountKernel(const Op& op);
  // Counts the time until now since the device could have run something.
  void Stall(int32_t device);
  // Lets go of what `id` reads and, as its writer, of what it wrote.
  void LetGo(const Op& op);
  void FreeBuffer(BufferId id);
  void FreeWorkspace(OpId id, const Op& op, Device* device);
  void GiveBack(int32_t index, Device* device, int64_t bytes);

  void Touch(int32_t device) {
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
  void Record(int32_t device, bool taken);
  void RecordGrant(int32_t device, int64_t bytes, bool new_peak);
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
