// Player: one run of one mode over a prepared workload, by the rules of simulator.h. It keeps its
// memory from run to run.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_PLAYER_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_PLAYER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/simulate/best_fit_allocator.h"
#include "rewrite_core/simulate/memory_pool.h"
#include "rewrite_core/simulate/prepared_workload.h"
#include "rewrite_core/simulate/simulator.h"

namespace spillway::core {

class Player {
 public:
  // Errors: INTERNAL if operations wait for each other; as `stop` says.
  absl::StatusOr<SimulationResult> Play(const PreparedWorkload& workload,
                                        const SimulationOptions& options, const StopToken& stop);

  // Whether, in the last run, somebody did not find his places whom the sum of bytes sufficed for.
  // If not, the run is the same where memory is only counted.
  bool diverged() const { return diverged_; }

 private:
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
    BestFitAllocator allocator{0};
  };
  // An operation that ends, if `what` is at least 0, or device ~what to look at again.
  struct Event {
    int64_t time_ns;
    int32_t what;
  };

  MemoryPool& pool(int32_t device) { return device < 0 ? host_ : devices_[device].memory; }
  const Op& op(OpId id) const { return workload_->ops[id]; }
  bool is_held(BufferId id) const { return (states_[id] & 1) != 0; }

  // Counts a step; true once work should end: every loop then does, and Play says so.
  bool Stopped() { return stopped_ = stopped_ || poll_->Tick(); }
  void Start();
  // False if the resident buffers do not fit.
  bool TakeResident();
  // One after another, from the start of an empty region. False if one finds no place.
  bool PlaceResident();
  // One round at now_; returns whether memory was given to somebody.
  bool Round();
  // Moves now_ to the next event; false if there is none, or somebody's patience ends before it.
  bool Advance();
  void EndEvents();

  void SortReady();
  void BecomeReady(OpId id);
  void AskForHeads(int32_t device);
  void AskForHead(int32_t device, Queue* queue, int64_t not_before_ns);
  // Enters `id` among those who want memory; what it takes over is settled here.
  void Ask(OpId id);
  int64_t TakeOver(const PreparedWorkload::Write& write);
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
  // By how much the first of its pieces that finds no place is larger than the largest free one.
  int64_t MissingInOnePiece(OpId id);
  void Fail(int32_t device, OpId id, int64_t requested_bytes, int64_t in_use_bytes);
  void Grant(OpId id, int64_t bytes, MemoryPool* memory);
  void Launch(OpId id, const Op& op);
  void StartNow(OpId id, const Op& op);
  void StartCopy(const Op& op, int64_t* end_ns);
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
  void RecordTimes(OpId id, int64_t end_ns) {
    if (!options_->record_times) return;
    result_.times[workload_->IdOf(id)] = {now_, end_ns - op(id).duration_ns, end_ns};
  }
  void FindAtPeak();
  SimulationResult TakeResult();

  const PreparedWorkload* workload_ = nullptr;
  const SimulationOptions* options_ = nullptr;
  bool ahead_ = false;
  absl::optional<StopPoller> poll_;
  bool stopped_ = false;
  bool diverged_ = false;

  int64_t now_ = 0;
  int64_t last_end_ns_ = 0;
  OpId left_ = 0;  // Operations that have not been given memory.
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

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_PLAYER_H_
