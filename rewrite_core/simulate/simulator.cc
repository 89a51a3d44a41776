#include "rewrite_core/simulate/simulator.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/simulate/best_fit_allocator.h"
#include "rewrite_core/simulate/memory_pool.h"
#include "rewrite_core/simulate/prepared_workload.h"

namespace spillway::core {
namespace {

constexpr int64_t kNever = -1;

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
  std::vector<OpId> asked;     // For its memory, in this round.
};

// An operation that ends, if `what` is at least 0, or device ~what to look at again.
struct Event {
  int64_t time_ns;
  int32_t what;
};
constexpr auto kLater = [](const Event& a, const Event& b) {
  return std::make_pair(a.time_ns, a.what) > std::make_pair(b.time_ns, b.what);
};

struct Asked {
  int64_t time_ns;
  OpId op;
};

// Without the points at which as much was let go as was taken, and none was there in between.
void KeepChanges(std::vector<MemoryPoint>* timeline) {
  size_t kept = 0;
  for (MemoryPoint point : *timeline) {
    point.high_bytes = std::max(point.high_bytes, point.bytes);
    if (kept > 0 && point.high_bytes == point.bytes && point.bytes == (*timeline)[kept - 1].bytes) {
      continue;
    }
    (*timeline)[kept++] = point;
  }
  timeline->resize(kept);
}

// One run of one mode.
class Player {
  using Chunk = BestFitAllocator::Chunk;

 public:
  Player(const PreparedWorkload& prepared, const SimulationOptions& options, const StopToken& stop)
      : prepared_(prepared),
        workload_(*prepared.workload),
        options_(options),
        ahead_(options.mode == SimulationMode::kLaunchAhead),
        stop_(stop),
        poll_(stop) {}

  absl::StatusOr<SimulationResult> Play();

 private:
  // The host's pool comes first.
  MemoryPool& pool(int32_t device) { return pools_[device + 1]; }
  // Null where memory is counted and not placed.
  BestFitAllocator* AllocatorOf(int32_t device) {
    return options_.placed && device >= 0 ? allocators_[device].get() : nullptr;
  }
  const WorkloadOp& op(OpId id) const { return workload_.ops[id]; }
  static int32_t MemoryOf(const WorkloadOp& op) {
    return op.kind == OpKind::kCopyOut || op.kind == OpKind::kHost ? -1 : op.device;
  }

  // Counts a step; true once work should end: every loop then does, and Play says so.
  bool Stopped() { return stopped_ = stopped_ || poll_.Tick(); }
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

  void BecomeReady(OpId id);
  void AskForHeads(int32_t device);
  // Enters `id` among those who want memory; what it takes over is settled here.
  void Ask(OpId id);
  bool MayTakeOver(BufferId input, BufferId output) const;
  void GiveOut(int32_t device, std::vector<OpId>* asked);
  // Finds places for all that `id` needs; false, and nothing taken, if there is not one for each.
  // Always true where memory is counted and not placed.
  bool Place(OpId id);
  // Of what `id` needs.
  int64_t LargestPiece(OpId id) const;
  // By how much the first of its pieces that finds no place is larger than the largest that is
  // free.
  int64_t MissingInOnePiece(OpId id);
  void Fail(int32_t device, OpId id, int64_t requested_bytes, int64_t in_use_bytes);
  void Grant(OpId id);
  void Launch(OpId id);
  void StartNow(OpId id);
  void End(OpId id);
  // The compute engine is about to get a kernel.
  void CountKernel(OpId id);
  // Counts the time until now since the device could have run something.
  void Stall(int32_t device);
  // Lets go of what `id` reads and, as its writer, of what it wrote.
  void LetGo(OpId id);
  void GiveBack(int32_t device, int64_t bytes, Chunk* chunk);
  void GiveBackWorkspace(OpId id);

  void Touch(int32_t device);
  void Push(Queue* queue, OpId id);
  void Pop(Queue* queue);
  void AddEvent(int64_t time_ns, int32_t what);
  void Satisfy(absl::Span<const OpId> waiting);
  void Record(int32_t device, bool taken);
  void RecordTimes(OpId id, int64_t end_ns) {
    if (options_.record_times) result_.times[id] = {now_, end_ns - op(id).duration_ns, end_ns};
  }
  SimulationResult TakeResult();

  const PreparedWorkload& prepared_;
  const Workload& workload_;
  const SimulationOptions& options_;
  const bool ahead_;
  const StopToken& stop_;
  StopPoller poll_;
  bool stopped_ = false;

  int64_t now_ = 0;
  int64_t last_end_ns_ = 0;
  OpId left_ = 0;  // Operations that have not been given memory.
  std::vector<Device> devices_;
  std::vector<MemoryPool> pools_;
  // By device, if memory is placed: null where there is no limit.
  std::vector<std::unique_ptr<BestFitAllocator>> allocators_;
  std::vector<Event> events_;  // A heap.
  std::vector<OpId> ready_;    // Since the last round.
  std::vector<int32_t> touched_, touched_now_;
  std::vector<OpId> host_asked_;
  bool host_touched_ = false;
  // All who ever asked, in order; before first_ask_ all have what they asked for.
  std::vector<Asked> asks_;
  size_t first_ask_ = 0;

  // By operation.
  std::vector<int32_t> waits_left_;
  std::vector<OpId> next_;
  std::vector<int64_t> need_;    // Bytes, from when it asks until it is given them; else kNever.
  std::vector<int64_t> end_ns_;  // Of what has been launched ahead; else 0.
  // By buffer: the bytes it holds, and who holds it.
  std::vector<int64_t> held_;
  std::vector<int32_t> holders_;
  // If memory is placed: where, by buffer, and by operation that of its workspace.
  std::vector<Chunk> chunks_, workspaces_;
  // If the timeline is asked for: steps of memory, by buffer from which and before which it is
  // there, by device that of its peak.
  int64_t step_ = 0;
  std::vector<int64_t> from_step_, to_step_, peak_step_;
  SimulationResult result_;
};

void Player::Start() {
  const size_t num_ops = workload_.ops.size();
  const size_t num_devices = workload_.devices.size();
  devices_.resize(num_devices);
  result_.devices.resize(num_devices);
  if (options_.record_order) result_.order.reserve(num_ops);
  if (options_.record_times) result_.times.resize(num_ops);
  pools_.emplace_back(options_.host_budget_bytes);
  for (size_t d = 0; d < num_devices; ++d) {
    pools_.emplace_back(d < options_.device_budget_bytes.size() ? options_.device_budget_bytes[d]
                                                                : kUnlimited);
  }
  next_.assign(num_ops, kNoOp);
  need_.assign(num_ops, kNever);
  asks_.reserve(num_ops);
  end_ns_.assign(num_ops, 0);
  held_.assign(workload_.buffers.size(), 0);
  holders_ = prepared_.holders;
  if (options_.record_timeline) {
    from_step_.assign(held_.size(), kNever);
    to_step_.assign(held_.size(), std::numeric_limits<int64_t>::max());
    peak_step_.assign(num_devices, 0);
  }
  if (options_.placed) {
    allocators_.resize(num_devices);
    for (size_t d = 0; d < num_devices; ++d) {
      const int64_t bytes = pools_[d + 1].budget_bytes();
      if (bytes != kUnlimited) allocators_[d] = std::make_unique<BestFitAllocator>(bytes);
    }
    chunks_.assign(held_.size(), BestFitAllocator::kNoChunk);
    workspaces_.assign(num_ops, BestFitAllocator::kNoChunk);
  }
  left_ = static_cast<OpId>(num_ops);
  waits_left_.resize(num_ops);
  for (OpId id = 0; id < left_ && !Stopped(); ++id) {
    waits_left_[id] = static_cast<int32_t>(workload_.waits_for[id].size());
    if (waits_left_[id] == 0) ready_.push_back(id);
    if (op(id).kind == OpKind::kCompute && op(id).duration_ns > 0) {
      ++devices_[op(id).device].kernels_left;
    }
  }
}

bool Player::TakeResident() {
  const int32_t num_devices = static_cast<int32_t>(devices_.size());
  for (int32_t d = 0; d < num_devices; ++d) {
    result_.devices[d].resident_bytes = prepared_.resident_bytes[d];
  }
  for (int32_t d = 0; d < num_devices; ++d) {
    const int64_t bytes = prepared_.resident_bytes[d];
    if (!pool(d).Fits(bytes)) {
      Fail(d, kNoOp, bytes, /*in_use_bytes=*/0);
      return false;
    }
  }
  if (!PlaceResident()) return false;
  for (int32_t d = 0; d < num_devices; ++d) {
    pool(d).Take(kNoOp, prepared_.resident_bytes[d]);
    Record(d, /*taken=*/true);
  }
  return true;
}

bool Player::PlaceResident() {
  std::vector<int64_t> placed(devices_.size(), 0);  // Bytes.
  for (BufferId id = 0; id < static_cast<BufferId>(held_.size()) && options_.placed; ++id) {
    const WorkloadBuffer& buffer = workload_.buffers[id];
    BestFitAllocator* allocator = AllocatorOf(buffer.device);
    const int64_t bytes = prepared_.counted_bytes[id];
    if (allocator == nullptr || !buffer.resident || bytes == 0) continue;
    if (allocator->Allocate(bytes) != BestFitAllocator::kNoChunk) {
      placed[buffer.device] += bytes;
      continue;
    }
    Fail(buffer.device, kNoOp, bytes, placed[buffer.device]);
    if (result_.out_of_memory->fragmented) {
      result_.out_of_memory->missing_bytes = bytes - allocator->largest_free_bytes();
    }
    return false;
  }
  return true;
}

absl::StatusOr<SimulationResult> Player::Play() {
  Start();
  if (!TakeResident()) return TakeResult();
  do {
    do {
      EndEvents();
    } while (Round() && !Stopped());
  } while (!Stopped() && Advance());
  if (stopped_) return stop_.status("simulate");
  if (!result_.out_of_memory.has_value() && left_ > 0) {
    return Error(absl::StatusCode::kInternal, v1::ERROR_REASON_INTERNAL,
                 absl::StrCat(left_, " of the workload's ", workload_.ops.size(),
                              " operations wait for each other; this is an error in Spillway."));
  }
  return TakeResult();
}

bool Player::Round() {
  const OpId left_before = left_;
  std::sort(ready_.begin(), ready_.end());
  for (size_t i = 0; i < ready_.size() && !Stopped(); ++i) BecomeReady(ready_[i]);
  ready_.clear();
  // What is touched from here on, by memory given out, is for the next round.
  std::swap(touched_, touched_now_);
  std::sort(touched_now_.begin(), touched_now_.end());
  for (int32_t device : touched_now_) {
    devices_[device].touched = false;
    AskForHeads(device);
  }
  if (host_touched_) {
    host_touched_ = false;
    GiveOut(-1, &host_asked_);
  }
  for (int32_t device : touched_now_) GiveOut(device, &devices_[device].asked);
  touched_now_.clear();
  return left_ != left_before;
}

bool Player::Advance() {
  while (first_ask_ < asks_.size() && need_[asks_[first_ask_].op] == kNever) ++first_ask_;
  if (first_ask_ < asks_.size()) {
    const int64_t deadline = asks_[first_ask_].time_ns + kMemoryWaitNs;
    if (events_.empty() || events_.front().time_ns > deadline) {
      // Kernels whose end nobody waits for have no event.
      now_ = events_.empty() ? std::min(deadline, std::max(now_, last_end_ns_)) : deadline;
      const OpId id = asks_[first_ask_].op;
      const int32_t device = MemoryOf(op(id));
      Fail(device, id, need_[id], pool(device).in_use_bytes());
      if (result_.out_of_memory->fragmented) {
        result_.out_of_memory->missing_bytes = MissingInOnePiece(id);
      }
      return false;
    }
  }
  if (events_.empty()) return false;
  now_ = events_.front().time_ns;
  return true;
}

void Player::EndEvents() {
  while (!events_.empty() && events_.front().time_ns == now_ && !Stopped()) {
    const int32_t what = events_.front().what;
    std::pop_heap(events_.begin(), events_.end(), kLater);
    events_.pop_back();
    if (what < 0) {
      Touch(~what);
    } else {
      End(what);
    }
  }
}

void Player::BecomeReady(OpId id) {
  switch (op(id).kind) {
    case OpKind::kCompute:
      Push(&devices_[op(id).device].compute, id);
      break;
    case OpKind::kCopyOut:
      Push(&devices_[op(id).device].out, id);
      break;
    case OpKind::kCopyIn:
      if (!ahead_) {
        Push(&devices_[op(id).device].in, id);
        break;
      }
      Ask(id);
      break;
    case OpKind::kHost:
      Ask(id);
      return;
  }
  Touch(op(id).device);
}

void Player::AskForHeads(int32_t index) {
  Device& device = devices_[index];
  const auto ask = [&](Queue* queue, int64_t not_before_ns) {
    if (now_ >= not_before_ns) {
      queue->asked = true;
      Ask(queue->head);
    } else {
      queue->look_again_ns = not_before_ns;
      AddEvent(not_before_ns, ~index);
    }
  };
  const auto may_ask = [&](const Queue& queue) {
    return queue.head != kNoOp && !queue.asked && !queue.busy && queue.look_again_ns <= now_;
  };
  if (may_ask(device.compute)) ask(&device.compute, ahead_ ? device.launcher_free_ns : now_);
  if (may_ask(device.out)) {
    int64_t not_before_ns = now_;
    if (ahead_) {
      for (OpId before : workload_.waits_for[device.out.head]) {
        not_before_ns = std::max(not_before_ns, end_ns_[before]);
      }
    }
    ask(&device.out, not_before_ns);
  }
  if (may_ask(device.in)) ask(&device.in, now_);
}

void Player::Ask(OpId id) {
  int64_t need = AllocatedBytes(op(id).workspace_bytes);
  const auto writes = workload_.writes[id];
  const auto reuses = workload_.reuses[id];
  for (size_t i = 0; i < writes.size(); ++i) {
    const BufferId output = writes[i];
    const BufferId input = i < reuses.size() ? reuses[i] : -1;
    if (input >= 0 && MayTakeOver(input, output)) {
      held_[output] = std::exchange(held_[input], 0);
      if (options_.placed) std::swap(chunks_[output], chunks_[input]);
      if (options_.record_timeline) from_step_[output] = to_step_[input] = ++step_;
    } else {
      need += prepared_.counted_bytes[output];
    }
  }
  need_[id] = need;
  asks_.push_back({now_, id});
  const int32_t device = MemoryOf(op(id));
  if (device < 0) {
    host_asked_.push_back(id);
    host_touched_ = true;
  } else {
    devices_[device].asked.push_back(id);
  }
}

bool Player::MayTakeOver(BufferId input, BufferId output) const {
  const auto& buffers = workload_.buffers;
  // One that holds nothing has been taken over already, or has nothing to give.
  return held_[input] > 0 && holders_[input] == 1 && !buffers[input].resident &&
         buffers[input].device == buffers[output].device &&
         buffers[input].bytes == buffers[output].bytes && prepared_.counted_bytes[output] > 0;
}

void Player::GiveOut(int32_t device, std::vector<OpId>* asked) {
  MemoryPool& memory = pool(device);
  const BestFitAllocator* allocator = AllocatorOf(device);
  for (OpId id : *asked) {
    if (Stopped()) return;
    if (!memory.somebody_waits() && memory.Fits(need_[id]) && Place(id)) {
      Grant(id);
    } else {
      result_.waited = true;
      memory.Wait(id, allocator == nullptr ? need_[id] : LargestPiece(id));
    }
  }
  asked->clear();
  // Who is launched lets go of memory at once: somebody before him may be next.
  // Where memory is placed, the largest piece says more than the sum: of those with one piece it
  // says all, so that a thousand copies that wait are not tried one after another.
  const auto place = [this](OpId id) { return Stopped() || Place(id); };
  while (!Stopped()) {
    const int64_t bytes =
        allocator == nullptr ? memory.free_bytes() : allocator->largest_free_bytes();
    const OpId id = memory.NextServed(bytes, place);
    if (id == kNoOp || Stopped()) return;
    Grant(id);
  }
}

int64_t Player::LargestPiece(OpId id) const {
  int64_t largest = AllocatedBytes(op(id).workspace_bytes);
  for (BufferId output : workload_.writes[id]) {
    if (held_[output] == 0) largest = std::max(largest, prepared_.counted_bytes[output]);
  }
  return largest;
}

int64_t Player::MissingInOnePiece(OpId id) {
  BestFitAllocator* allocator = AllocatorOf(MemoryOf(op(id)));
  const auto missing = [allocator](int64_t bytes) {
    if (bytes == 0 || allocator->Allocate(bytes) != BestFitAllocator::kNoChunk) return int64_t{0};
    return bytes - allocator->largest_free_bytes();
  };
  for (BufferId output : workload_.writes[id]) {
    if (held_[output] > 0) continue;
    if (const int64_t bytes = missing(prepared_.counted_bytes[output]); bytes > 0) return bytes;
  }
  return missing(AllocatedBytes(op(id).workspace_bytes));
}

void Player::Fail(int32_t device, OpId id, int64_t requested_bytes, int64_t in_use_bytes) {
  OutOfMemory oom;
  oom.device = device;
  oom.op = id;
  oom.node = id == kNoOp ? kNoNode : op(id).node;
  oom.requested_bytes = requested_bytes;
  oom.in_use_bytes = in_use_bytes;
  oom.budget_bytes = pool(device).budget_bytes();
  oom.time_ns = now_;
  oom.missing_bytes = requested_bytes - (oom.budget_bytes - in_use_bytes);
  oom.fragmented = oom.missing_bytes <= 0;
  result_.out_of_memory = oom;
}

bool Player::Place(OpId id) {
  BestFitAllocator* allocator = AllocatorOf(MemoryOf(op(id)));
  if (allocator == nullptr) return true;
  const auto take = [&](int64_t bytes, Chunk* chunk) {
    if (bytes > 0) *chunk = allocator->Allocate(bytes);
    return bytes == 0 || *chunk != BestFitAllocator::kNoChunk;
  };
  const auto writes = workload_.writes[id];
  bool all = true;
  for (BufferId output : writes) {
    // What was taken over has a place, and so has what was found before.
    if (held_[output] == 0) all = all && take(prepared_.counted_bytes[output], &chunks_[output]);
  }
  if (all && take(AllocatedBytes(op(id).workspace_bytes), &workspaces_[id])) return true;
  for (BufferId output : writes) {
    if (held_[output] > 0 || chunks_[output] == BestFitAllocator::kNoChunk) continue;
    allocator->Free(std::exchange(chunks_[output], BestFitAllocator::kNoChunk));
  }
  return false;
}

void Player::Grant(OpId id) {
  const int32_t device = MemoryOf(op(id));
  const int64_t bytes = std::exchange(need_[id], kNever);
  const bool new_peak = pool(device).Take(id, bytes);
  --left_;
  for (BufferId output : workload_.writes[id]) {
    if (held_[output] > 0) continue;  // Taken over.
    held_[output] = prepared_.counted_bytes[output];
    if (options_.record_timeline) from_step_[output] = step_ + 1;
  }
  if (options_.record_timeline && device >= 0) {
    ++step_;
    if (new_peak) peak_step_[device] = step_;
  }
  if (bytes > 0) Record(device, /*taken=*/true);
  if (op(id).kind == OpKind::kCompute && options_.record_order) result_.order.push_back(id);
  if (ahead_ && op(id).kind == OpKind::kCompute) {
    Launch(id);
  } else {
    StartNow(id);
  }
}

void Player::Launch(OpId id) {
  Device& device = devices_[op(id).device];
  Pop(&device.compute);
  const int64_t duration = op(id).duration_ns;
  end_ns_[id] = device.compute_end_ns = std::max(now_, device.compute_end_ns) + duration;
  if (duration > 0) {
    CountKernel(id);
    device.kernel_end_ns = device.compute_end_ns;
    device.launcher_free_ns = now_ + options_.launch_ns;
  }
  RecordTimes(id, end_ns_[id]);
  GiveBackWorkspace(id);
  LetGo(id);
  Satisfy(prepared_.after_launch(id));
  last_end_ns_ = std::max(last_end_ns_, end_ns_[id]);
  if (!prepared_.after_end(id).empty()) AddEvent(end_ns_[id], id);
  Touch(op(id).device);
}

void Player::StartNow(OpId id) {
  const int64_t duration = op(id).duration_ns;
  int64_t end_ns = now_ + duration;
  if (op(id).kind != OpKind::kHost) {
    Device& device = devices_[op(id).device];
    DeviceUse& use = result_.devices[op(id).device];
    const int64_t bytes =
        op(id).kind == OpKind::kCompute ? 0 : workload_.buffers[workload_.reads[id][0]].bytes;
    if (op(id).kind == OpKind::kCompute) {
      Pop(&device.compute);
      device.compute.busy = true;
      if (duration > 0) {
        CountKernel(id);
        device.kernel_end_ns = end_ns;
      }
    } else if (op(id).kind == OpKind::kCopyOut) {
      Pop(&device.out);
      device.out.busy = true;
      use.copy_out_ns += duration;
      use.copy_out_bytes += bytes;
    } else {
      use.copy_in_ns += duration;
      use.copy_in_bytes += bytes;
      if (ahead_) {
        end_ns = std::max({now_, device.compute_end_ns, device.in_end_ns}) + duration;
        device.in_end_ns = end_ns;
      } else {
        Pop(&device.in);
        device.in.busy = true;
      }
    }
  }
  RecordTimes(id, end_ns);
  last_end_ns_ = std::max(last_end_ns_, end_ns);
  AddEvent(end_ns, id);
}

void Player::CountKernel(OpId id) {
  Stall(op(id).device);
  --devices_[op(id).device].kernels_left;
  result_.devices[op(id).device].compute_ns += op(id).duration_ns;
}

void Player::Stall(int32_t index) {
  const Device& device = devices_[index];
  if (device.kernels_left == 0) return;
  // Until its launcher is free, the engine waits for that.
  const int64_t since_ns = std::max(device.kernel_end_ns, device.launcher_free_ns);
  result_.devices[index].stall_ns += std::max<int64_t>(0, now_ - since_ns);
}

void Player::End(OpId id) {
  if (ahead_ && op(id).kind == OpKind::kCompute) {
    Satisfy(prepared_.after_end(id));  // The rest was done when it was launched.
    return;
  }
  if (op(id).kind != OpKind::kHost) {
    Device& device = devices_[op(id).device];
    (op(id).kind == OpKind::kCompute   ? device.compute
     : op(id).kind == OpKind::kCopyOut ? device.out
                                       : device.in)
        .busy = false;
    GiveBackWorkspace(id);
    Touch(op(id).device);
  }
  LetGo(id);
  Satisfy(prepared_.after_launch(id));
  Satisfy(prepared_.after_end(id));
}

void Player::LetGo(OpId id) {
  const auto let_go = [this](BufferId buffer) {
    if (--holders_[buffer] > 0) return;
    if (held_[buffer] == 0) return;  // Nothing, or taken over.
    if (options_.record_timeline) to_step_[buffer] = ++step_;
    GiveBack(workload_.buffers[buffer].device, std::exchange(held_[buffer], 0),
             options_.placed ? &chunks_[buffer] : nullptr);
  };
  for (BufferId read : workload_.reads[id]) let_go(read);
  for (BufferId written : workload_.writes[id]) let_go(written);
}

void Player::GiveBackWorkspace(OpId id) {
  GiveBack(op(id).device, AllocatedBytes(op(id).workspace_bytes),
           options_.placed ? &workspaces_[id] : nullptr);
}

void Player::GiveBack(int32_t device, int64_t bytes, Chunk* chunk) {
  if (bytes == 0) return;
  pool(device).GiveBack(bytes);
  if (BestFitAllocator* allocator = AllocatorOf(device)) {
    allocator->Free(std::exchange(*chunk, BestFitAllocator::kNoChunk));
  }
  Record(device, /*taken=*/false);
  if (!pool(device).somebody_waits()) return;
  if (device < 0) {
    host_touched_ = true;
  } else {
    Touch(device);
  }
}

void Player::Touch(int32_t device) {
  if (std::exchange(devices_[device].touched, true)) return;
  touched_.push_back(device);
}

void Player::Push(Queue* queue, OpId id) {
  (queue->head == kNoOp ? queue->head : next_[queue->tail]) = id;
  queue->tail = id;
}

void Player::Pop(Queue* queue) {
  queue->head = next_[queue->head];
  queue->asked = false;
}

void Player::AddEvent(int64_t time_ns, int32_t what) {
  events_.push_back({time_ns, what});
  std::push_heap(events_.begin(), events_.end(), kLater);
}

void Player::Satisfy(absl::Span<const OpId> waiting) {
  for (OpId id : waiting) {
    if (--waits_left_[id] == 0) ready_.push_back(id);
  }
}

void Player::Record(int32_t device, bool taken) {
  if (!options_.record_timeline || device < 0) return;
  std::vector<MemoryPoint>& timeline = result_.devices[device].timeline;
  const int64_t bytes = pool(device).in_use_bytes();
  if (timeline.empty() || timeline.back().time_ns != now_) timeline.push_back({now_, 0, 0});
  // What is between two that let go at one moment depends on who is first, and says nothing.
  if (taken) timeline.back().high_bytes = std::max(timeline.back().high_bytes, bytes);
  timeline.back().bytes = bytes;
}

SimulationResult Player::TakeResult() {
  if (!result_.fits()) {
    for (int32_t d = 0; d < static_cast<int32_t>(devices_.size()); ++d) Stall(d);
  }
  result_.step_time_ns = result_.fits() ? last_end_ns_ : now_;
  result_.host_peak_bytes = pool(-1).peak_bytes();
  for (int32_t d = 0; d < static_cast<int32_t>(devices_.size()); ++d) {
    result_.devices[d].peak_bytes = pool(d).peak_bytes();
    result_.devices[d].peak_op = pool(d).peak_op();
    if (pool(d).peak_op() != kNoOp) result_.devices[d].peak_node = op(pool(d).peak_op()).node;
  }
  if (options_.record_timeline) {
    for (DeviceUse& use : result_.devices) KeepChanges(&use.timeline);
    for (BufferId id = 0; id < static_cast<BufferId>(workload_.buffers.size()); ++id) {
      const int32_t device = workload_.buffers[id].device;
      if (device < 0 || from_step_[id] == kNever || prepared_.counted_bytes[id] == 0) continue;
      if (from_step_[id] <= peak_step_[device] && peak_step_[device] < to_step_[id]) {
        result_.devices[device].at_peak.push_back(id);
      }
    }
  }
  return std::move(result_);
}

absl::StatusOr<PreparedWorkload> Prepare(const Workload& workload, const SimulationOptions& options,
                                         const StopToken& stop) {
  if (options.launch_ns < 0) {
    return Error(absl::StatusCode::kInternal, v1::ERROR_REASON_INTERNAL,
                 absl::StrCat("The launch overhead is ", options.launch_ns,
                              " ns, below 0; this is an error in Spillway."));
  }
  return PreparedWorkload::Prepare(workload, options.launch_ns, stop);
}

}  // namespace

absl::StatusOr<SimulationResult> Simulate(const Workload& workload,
                                          const SimulationOptions& options, const StopToken& stop) {
  auto prepared = Prepare(workload, options, stop);
  if (!prepared.ok()) return prepared.status();
  return Player(*prepared, options, stop).Play();
}

namespace {

absl::StatusOr<BothModes> PlayBoth(const Workload& workload, SimulationOptions options,
                                   bool in_any_case, int64_t worth_ns, const StopToken& stop) {
  auto prepared = Prepare(workload, options, stop);
  if (!prepared.ok()) return prepared.status();
  BothModes both;
  options.mode = SimulationMode::kLaunchAhead;
  auto result = Player(*prepared, options, stop).Play();
  if (!result.ok()) return result.status();
  both.launch_ahead = *std::move(result);
  if (!in_any_case && (!both.launch_ahead.fits() || both.launch_ahead.step_time_ns > worth_ns)) {
    both.is_partial = true;
    return both;
  }
  options.mode = SimulationMode::kSynchronous;
  result = Player(*prepared, options, stop).Play();
  if (!result.ok()) return result.status();
  both.synchronous = *std::move(result);
  return both;
}

}  // namespace

absl::StatusOr<BothModes> SimulateBothModes(const Workload& workload,
                                            const SimulationOptions& options,
                                            const StopToken& stop) {
  return PlayBoth(workload, options, /*in_any_case=*/true, /*worth_ns=*/kUnlimited, stop);
}

absl::StatusOr<BothModes> SimulateIfWorth(const Workload& workload,
                                          const SimulationOptions& options, int64_t worth_ns,
                                          const StopToken& stop) {
  return PlayBoth(workload, options, /*in_any_case=*/false, worth_ns, stop);
}

}  // namespace spillway::core
