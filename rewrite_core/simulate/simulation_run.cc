#include "rewrite_core/simulate/simulation_run.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/polled_sort.h"

namespace spillway::core {
namespace {

// In SimulationRun::states_: a buffer with one holder, and memory.
constexpr int32_t kHeldByOne = 3;

// Rounded down; in two parts, as the product may not fit into int64.
int64_t TimesRatio(int64_t value, int32_t numerator, int32_t denominator) {
  if (numerator == denominator) return value;
  return value / denominator * numerator + value % denominator * numerator / denominator;
}

constexpr auto kLater = [](const auto& a, const auto& b) { return a.time_ns > b.time_ns; };

// Sorts items that all differ; if `poll` stops it, their order is unspecified. So few as there are
// most often, std::sort sorts faster, and without memory of its own.
template <typename Iterator, typename Less>
void SortDistinct(Iterator begin, Iterator end, const Less& less, StopPoller* poll) {
  constexpr std::ptrdiff_t kFew = 1024;
  if (end - begin > kFew) {
    PolledSort(begin, end, less, poll);
  } else {
    std::sort(begin, end, less);
  }
}

}  // namespace

absl::StatusOr<SimulationResult> SimulationRun::Run(const PreparedWorkload& workload,
                                                    const SimulationOptions& options,
                                                    const StopToken& stop) {
  workload_ = &workload;
  options_ = &options;
  ahead_ = options.mode == SimulationMode::kLaunchAhead;
  first_ready_ = options.ready_order == ReadyOrder::kFirstReady;
  if (absl::Status s = CheckTimes(); !s.ok()) return s;
  poll_.emplace(stop);
  Start();
  const bool is_resident = TakeResident();
  if (poll_->stopped()) return stop.status("simulate");
  if (!is_resident) return TakeResult();
  do {
    do {
      EndEvents();
    } while (Round() && !poll_->Tick());
  } while (!poll_->Tick() && !GivenUp() && Advance());
  if (poll_->stopped()) return stop.status("simulate");
  if (!result_.out_of_memory.has_value() && left_ > 0 && !GivenUp()) {
    return Error(absl::StatusCode::kInternal, v1::ERROR_REASON_INTERNAL,
                 absl::StrCat(left_, " of the workload's ", workload.ops.size(),
                              " operations wait for each other; this is an error in Spillway."));
  }
  return TakeResult();
}

absl::Status SimulationRun::CheckTimes() const {
  const int32_t percent = options_->copy_percent, spread = options_->spread_percent;
  if (percent < 1 || percent > kMaxCopyPercent) {
    return Error(absl::StatusCode::kInternal, v1::ERROR_REASON_INTERNAL,
                 absl::StrCat("Copies take ", percent, " % of their time, which is not from 1 to ",
                              kMaxCopyPercent, "; this is an error in Spillway."));
  }
  if (spread < 100 || spread > kMaxSpreadPercent) {
    return Error(
        absl::StatusCode::kInternal, v1::ERROR_REASON_INTERNAL,
        absl::StrCat("Operations take up to ", spread, " % of their time, which is not from ",
                     "100 to ", kMaxSpreadPercent, "; this is an error in Spillway."));
  }
  return workload_->CheckTimes(std::max(percent, 100) * spread / 100);
}

void SimulationRun::Start() {
  const size_t num_ops = workload_->ops.size();
  const size_t num_devices = static_cast<size_t>(workload_->num_devices);
  result_ = SimulationResult();
  result_.devices.resize(num_devices);
  if (options_->record_order) result_.order.reserve(num_ops);
  if (options_->record_times) result_.times.resize(num_ops);
  diverged_ = host_touched_ = false;
  now_ = last_end_ns_ = host_end_ns_ = least_time_ns_ = step_ = 0;
  left_ = static_cast<int32_t>(num_ops);
  first_wait_ = 0;
  asks_ = 0;
  for (auto* list : {&end_now_, &ready_}) list->clear();
  for (auto* list : {&touched_, &touched_now_}) list->clear();
  host_asked_.clear();
  events_.clear();
  waited_.clear();
  host_.Reset(options_->host_budget_bytes);
  devices_.resize(num_devices);
  for (GpuIndex d(0); d < workload_->num_devices; ++d) {
    Device& device = devices_[d];
    const int64_t budget = static_cast<size_t>(d) < options_->device_budget_bytes.size()
                               ? options_->device_budget_bytes[d]
                               : kUnlimited;
    device.compute = device.out = device.in = Queue();
    device.ready.clear();
    device.draws = ReadyDraws(options_->ready_seed, d);
    device.launcher_free_ns = device.compute_end_ns = 0;
    device.kernel_end_ns = device.in_end_ns = 0;
    device.kernels_left = workload_->kernels[d];
    device.compute_left_ns = device.in_left_ns = 0;
    device.touched = device.diverged = false;
    device.asked.clear();
    device.memory.Reset(budget);
    device.placed = options_->placed && budget != kUnlimited;
    if (device.placed) device.allocator.Reset(budget, options_->max_fragmentation_bytes);
    if (ahead_ && !workload_->wanted_bytes.empty()) {
      result_.devices[d].slowed_ns.assign(options_->workspace_limits.size(), 0);
    }
  }
  if (ahead_ && options_->cutoff_ns < kUnlimited) CountWork();
  waits_left_ = workload_->waits;
  ready_ = workload_->first;
  next_.resize(num_ops);
  need_.resize(num_ops);
  not_before_ns_.assign(num_ops, 0);
  states_.resize(workload_->holders.size());
  for (size_t i = 0; i < states_.size(); ++i) states_[i] = 2 * workload_->holders[i];
  if (options_->record_timeline) {
    from_step_.assign(states_.size(), kNever);
    to_step_.assign(states_.size(), std::numeric_limits<int64_t>::max());
    peak_step_.assign(num_devices, 0);
  }
  if (options_->placed) {
    chunks_.assign(states_.size(), BestFitAllocator::kNoChunk);
    workspaces_.resize(num_ops);
  }
}

// For a cutoff. CheckTimes has added up all durations.
void SimulationRun::CountWork() {
  for (const Op& op : workload_->ops) {
    if (op.kind() == OpKind::kCompute) devices_[op.device()].compute_left_ns += LeastTime(op);
    if (op.kind() == OpKind::kCopyIn) devices_[op.device()].in_left_ns += LeastTime(op);
  }
}

bool SimulationRun::Round() {
  const int32_t left_before = left_;
  if (!ready_.empty()) {
    if (ready_.size() > 1) SortReady();
    for (size_t i = 0; i < ready_.size() && !poll_->Tick(); ++i) BecomeReady(ready_[i]);
    ready_.clear();
  }
  // Devices touched from here on, by granting memory, are for the next round.
  std::swap(touched_, touched_now_);
  if (touched_now_.size() > 1) std::sort(touched_now_.begin(), touched_now_.end());
  for (GpuIndex device : touched_now_) {
    devices_[device].touched = false;
    AskForHeads(device);
  }
  const size_t waited_before = waited_.size();
  if (host_touched_) {
    host_touched_ = false;
    GiveOut(&host_, /*device=*/nullptr, &host_asked_);
  }
  for (GpuIndex index : touched_now_) {
    Device& device = devices_[index];
    GiveOut(&device.memory, device.placed ? &device : nullptr, &device.asked);
  }
  touched_now_.clear();
  if (waited_.size() > waited_before + 1) {
    SortDistinct(
        waited_.begin() + static_cast<std::ptrdiff_t>(waited_before), waited_.end(),
        [](const Waiting& a, const Waiting& b) { return a.number < b.number; }, &*poll_);
  }
  return left_ != left_before;
}

void SimulationRun::SortReady() {
  const auto sort = [this](const auto& less) {
    SortDistinct(ready_.begin(), ready_.end(), less, &*poll_);
  };
  const int64_t* rank = workload_->rank.empty() ? nullptr : workload_->rank.data();
  if (const uint32_t seed = options_->file_seed; seed > 0) {
    const auto key = [rank, seed](OpId id) {
      return ShuffledRank(seed, rank != nullptr ? rank[id] : static_cast<int64_t>(id));
    };
    return sort([&key](OpId a, OpId b) { return key(a) < key(b); });
  }
  if (rank == nullptr) return sort(std::less<>());
  sort([rank](OpId a, OpId b) { return rank[a] < rank[b]; });
}

bool SimulationRun::Advance() {
  while (first_wait_ < waited_.size() && need_[waited_[first_wait_].op] == kNever) ++first_wait_;
  if (first_wait_ < waited_.size()) {
    const int64_t deadline = waited_[first_wait_].time_ns + kMemoryWaitNs;
    if (events_.empty() || events_.front().time_ns > deadline) {
      // Kernels without operations waiting for their end have no event.
      now_ = events_.empty() ? std::min(deadline, std::max(now_, last_end_ns_)) : deadline;
      const OpId id = waited_[first_wait_].op;
      const Place device = op(id).memory();
      Fail(device, id, need_[id], pool(device).in_use_bytes());
      if (options_->record_pieces && device >= 0 && devices_[device].placed) {
        RecordPieces(id, device);
      } else if (result_.out_of_memory->fragmented) {
        result_.out_of_memory->missing_bytes = MissingInOnePiece(id);
      }
      return false;
    }
  }
  if (events_.empty()) return false;
  now_ = events_.front().time_ns;
  return true;
}

void SimulationRun::EndEvents() {
  // The order in which they end does not matter: ready operations are sorted.
  for (size_t i = 0; i < end_now_.size() && !poll_->Tick(); ++i) End(end_now_[i]);
  end_now_.clear();
  while (!events_.empty() && events_.front().time_ns == now_ && !poll_->Tick()) {
    const int32_t what = events_.front().what;
    std::pop_heap(events_.begin(), events_.end(), kLater);
    events_.pop_back();
    if (what < 0) {
      Touch(GpuIndex(~what));
      continue;
    }
    const OpId id(what);
    // A copy in ends later than it comes.
    if (now_ < 2 * options_->late_ns && not_before_ns_[id] == now_ &&
        op(id).kind() == OpKind::kCopyIn) {
      ready_.push_back(id);
    } else {
      End(id);
    }
  }
}

void SimulationRun::BecomeReady(OpId id) {
  const Op& ready = op(id);
  // Needed soon.
  __builtin_prefetch(workload_->writes.data() + ready.writes);
  __builtin_prefetch(workload_->holds.data() + ready.holds);
  __builtin_prefetch(workload_->after.data() + ready.after);
  switch (ready.kind()) {
    case OpKind::kCompute:
      if (first_ready_) {
        Push(&devices_[ready.device()].compute, id);
      } else {
        devices_[ready.device()].ready.push_back(id);
      }
      break;
    case OpKind::kCopyOut:
      Push(&devices_[ready.device()].out, id);
      break;
    case OpKind::kCopyIn:
      if (ComesLate(id)) return;
      if (!ahead_) {
        Push(&devices_[ready.device()].in, id);
        break;
      }
      Ask(id);  // Before the heads: "Ties" in simulator.h.
      break;
    case OpKind::kHost:
      Ask(id);
      return;
  }
  Touch(ready.device());
}

bool SimulationRun::ComesLate(OpId id) {
  if (now_ >= options_->late_ns || not_before_ns_[id] > 0) return false;
  const size_t late = devices_[op(id).device()].draws.Next(static_cast<size_t>(options_->late_ns));
  not_before_ns_[id] = now_ + 1 + static_cast<int64_t>(late);
  AddEvent(not_before_ns_[id], id);
  return true;
}

void SimulationRun::ChooseHead(GpuIndex index, Device* device) {
  Queue& queue = device->compute;
  std::vector<OpId>& ready = device->ready;
  if (ready.empty() || queue.head != kNoOp || queue.busy || queue.look_again_ns > now_) return;
  if (now_ < device->launcher_free_ns) {
    LookAgain(index, device->launcher_free_ns, &queue);
    return;
  }
  if (options_->ready_order == ReadyOrder::kMixed) {
    std::swap(ready[device->draws.Next(ready.size())], ready.back());
  }
  Push(&queue, ready.back());
  ready.pop_back();
}

void SimulationRun::AskForHeads(GpuIndex index) {
  Device& device = devices_[index];
  if (!first_ready_) ChooseHead(index, &device);
  const auto may_ask = [&](const Queue& queue) {
    return queue.head != kNoOp && !queue.asked && !queue.busy && queue.look_again_ns <= now_;
  };
  if (may_ask(device.compute)) {
    AskForHead(index, &device.compute, ahead_ ? device.launcher_free_ns : now_);
  }
  if (may_ask(device.out)) {
    AskForHead(index, &device.out, ahead_ ? not_before_ns_[device.out.head] : now_);
  }
  if (may_ask(device.in)) AskForHead(index, &device.in, now_);
}

void SimulationRun::AskForHead(GpuIndex device, Queue* queue, int64_t not_before_ns) {
  if (now_ >= not_before_ns) {
    queue->asked = true;
    Ask(queue->head);
  } else {
    LookAgain(device, not_before_ns, queue);
  }
}

void SimulationRun::LookAgain(GpuIndex device, int64_t time_ns, Queue* queue) {
  queue->look_again_ns = time_ns;
  AddEvent(time_ns, ~device);
}

void SimulationRun::Ask(OpId id) {
  const Op& asking = op(id);
  int64_t need = asking.need_bytes;
  if (asking.may_reuse) {
    for (const PreparedWorkload::Write& write : workload_->Writes(asking)) {
      if (write.reuse >= 0 && states_[write.reuse] == kHeldByOne) need -= ReuseInPlace(write);
    }
  }
  const Place device = asking.memory();
  if (device < 0) {
    host_asked_.push_back({need, id, asks_++});
    host_touched_ = true;
  } else {
    devices_[device].asked.push_back({need, id, asks_++});
  }
}

int64_t SimulationRun::ReuseInPlace(const PreparedWorkload::Write& write) {
  states_[write.reuse] &= ~1;
  states_[write.buffer] |= 1;
  if (options_->placed) std::swap(chunks_[write.buffer], chunks_[write.reuse]);
  if (options_->record_timeline) from_step_[write.buffer] = to_step_[write.reuse] = ++step_;
  return write.bytes;
}

void SimulationRun::GiveOut(MemoryPool* memory, Device* device, std::vector<Asked>* asked) {
  for (const Asked& asking : *asked) {
    if (poll_->Tick()) return;
    if (memory->somebody_waits() || !memory->Fits(asking.need)) {
      Wait(asking, memory, device);
    } else if (device == nullptr || FindPlaces(asking.op, device)) {
      Grant(asking.op, asking.need, memory);
    } else {
      if (!device->diverged) Diverge(device);
      Wait(asking, memory, device);
    }
  }
  asked->clear();
  if (memory->somebody_waits()) Serve(memory, device);
}

bool SimulationRun::FindPlaces(OpId id, Device* device) {
  const Op& placed = op(id);
  BestFitAllocator& allocator = device->allocator;
  const auto writes = workload_->Writes(placed);
  bool all = true;
  for (const PreparedWorkload::Write& write : writes) {
    // A buffer reused in place is already placed.
    if (is_held(write.buffer)) continue;
    chunks_[write.buffer] = allocator.Allocate(write.bytes);
    // Polls, as one operation may write very much, and be tried again when memory is freed.
    all = chunks_[write.buffer] != BestFitAllocator::kNoChunk && !poll_->Tick();
    if (!all) break;
  }
  if (all && placed.kind() == OpKind::kCompute && placed.bytes > 0) {
    workspaces_[id] = allocator.Allocate(placed.bytes);
    all = workspaces_[id] != BestFitAllocator::kNoChunk;
  }
  if (all) return true;
  for (const PreparedWorkload::Write& write : writes) {
    if (is_held(write.buffer) || chunks_[write.buffer] == BestFitAllocator::kNoChunk) continue;
    allocator.Free(std::exchange(chunks_[write.buffer], BestFitAllocator::kNoChunk));
  }
  return false;
}

void SimulationRun::Grant(OpId id, int64_t bytes, MemoryPool* memory) {
  const Op& granted = op(id);
  const bool new_peak = memory->Take(id, bytes);
  --left_;
  for (const PreparedWorkload::Write& write : workload_->Writes(granted)) {
    // A buffer reused in place is already held.
    if (options_->record_timeline && !is_held(write.buffer)) from_step_[write.buffer] = step_ + 1;
    states_[write.buffer] |= 1;
  }
  if (options_->record_timeline) RecordGrant(granted.memory(), bytes, new_peak);
  if (granted.kind() == OpKind::kCompute) {
    if (options_->record_order) result_.order.push_back(workload_->IdOf(id));
    if (ahead_) {
      Launch(id, granted);
      return;
    }
  }
  StartNow(id, granted);
}

void SimulationRun::Launch(OpId id, const Op& launched) {
  Device& device = devices_[launched.device()];
  Pop(&device.compute);
  const int64_t duration = TimeOf(launched);
  const int64_t end_ns = std::max(now_, device.compute_end_ns) + duration;
  device.compute_end_ns = end_ns;
  device.compute_left_ns -= LeastTime(launched);
  least_time_ns_ = std::max(least_time_ns_, end_ns + device.compute_left_ns);
  if (duration > 0) {
    CountKernel(launched.device(), duration);
    device.kernel_end_ns = end_ns;
    device.launcher_free_ns = now_ + options_->launch_ns;
  }
  RecordTimes(id, duration, end_ns);
  if (!options_->workspace_limits.empty()) CountSlowed(id, launched, duration);
  FreeWorkspace(id, launched, &device);
  LetGo(launched);
  Satisfy(workload_->ToLaunch(launched));
  const absl::Span<const OpId> copies = workload_->ToCopyOut(launched);
  // On one device, operations end in the order of their launch.
  for (OpId copy : copies) not_before_ns_[copy] = end_ns;
  Satisfy(copies);
  last_end_ns_ = std::max(last_end_ns_, end_ns);
  if (launched.ended != launched.after_end) AddEvent(end_ns, id);
  Touch(launched.device());
}

void SimulationRun::CountSlowed(OpId id, const Op& launched, int64_t duration_ns) {
  const std::vector<int64_t>& wanted = workload_->wanted_bytes;
  if (static_cast<size_t>(id) >= wanted.size() || wanted[id] == 0) return;
  const GpuIndex index(launched.device());
  const Device& device = devices_[index];
  int64_t free = device.placed ? device.allocator.largest_free_bytes() : device.memory.free_bytes();
  if (static_cast<size_t>(index) < options_->spare_bytes.size()) {
    free = std::max(free, options_->spare_bytes[index]);
  }
  const int64_t copy_bytes = launched.need_bytes - launched.bytes + options_->redzone_bytes;
  if (copy_bytes <= free) free -= copy_bytes;
  std::vector<int64_t>& slowed_ns = result_.devices[index].slowed_ns;
  for (size_t i = 0; i < options_->workspace_limits.size(); ++i) {
    const int64_t bytes = AllocatedBytes(std::min(wanted[id], options_->workspace_limits[i]));
    if (bytes == 0 || bytes + options_->redzone_bytes <= free) continue;
    slowed_ns[i] += TimesRatio(duration_ns, kWithoutWorkspacePercent - 100, 100);
  }
}

void SimulationRun::StartNow(OpId id, const Op& started) {
  const int64_t duration_ns = TimeOf(started);
  int64_t end_ns = now_ + duration_ns;
  if (started.kind() == OpKind::kCompute) {
    Device& device = devices_[started.device()];
    Pop(&device.compute);
    device.compute.busy = true;
    if (duration_ns > 0) {
      CountKernel(started.device(), duration_ns);
      device.kernel_end_ns = end_ns;
    }
  } else if (started.kind() != OpKind::kHost) {
    StartCopy(started, duration_ns, &end_ns);
  } else if (started.on_host_engine) {
    host_end_ns_ = end_ns = std::max(now_, host_end_ns_) + duration_ns;
    result_.host_ns += duration_ns;
  }
  RecordTimes(id, duration_ns, end_ns);
  last_end_ns_ = std::max(last_end_ns_, end_ns);
  if (end_ns == now_) {
    end_now_.push_back(id);
  } else {
    AddEvent(end_ns, id);
  }
}

int64_t SimulationRun::UsualTime(const Op& op) const {
  const bool is_copy = op.kind() == OpKind::kCopyOut || op.kind() == OpKind::kCopyIn;
  return is_copy ? TimesRatio(op.duration_ns, options_->copy_percent, 100) : op.duration_ns;
}

int64_t SimulationRun::LeastTime(const Op& op) const {
  return TimesRatio(UsualTime(op), 100, options_->spread_percent);
}

int64_t SimulationRun::TimeOf(const Op& op) {
  const int64_t time_ns = UsualTime(op);
  if (options_->spread_percent == 100 || time_ns == 0 || op.kind() == OpKind::kHost) return time_ns;
  ReadyDraws& draws = devices_[op.device()].draws;
  const bool is_longer = draws.Next(2) == 1;
  const int32_t percent = 100 + static_cast<int32_t>(draws.Next(options_->spread_percent - 99));
  return is_longer ? TimesRatio(time_ns, percent, 100)
                   : std::max<int64_t>(TimesRatio(time_ns, 100, percent), 1);
}

void SimulationRun::StartCopy(const Op& copy, int64_t duration_ns, int64_t* end_ns) {
  Device& device = devices_[copy.device()];
  DeviceUse& use = result_.devices[copy.device()];
  if (copy.kind() == OpKind::kCopyOut) {
    Pop(&device.out);
    device.out.busy = true;
    use.copy_out_ns += duration_ns;
    use.copy_out_bytes += copy.bytes;
    return;
  }
  use.copy_in_ns += duration_ns;
  use.copy_in_bytes += copy.bytes;
  if (ahead_) {
    *end_ns = std::max({now_, device.compute_end_ns, device.in_end_ns}) + duration_ns;
    device.in_end_ns = *end_ns;
    device.in_left_ns -= LeastTime(copy);
    least_time_ns_ = std::max(least_time_ns_, *end_ns + device.in_left_ns);
  } else {
    Pop(&device.in);
    device.in.busy = true;
  }
}

void SimulationRun::CountKernel(GpuIndex device, int64_t duration_ns) {
  Stall(device);
  --devices_[device].kernels_left;
  result_.devices[device].compute_ns += duration_ns;
}

void SimulationRun::Stall(GpuIndex index) {
  const Device& device = devices_[index];
  if (device.kernels_left == 0) return;
  // Until its launcher is free, the engine waits for the launcher.
  const int64_t since_ns = std::max(device.kernel_end_ns, device.launcher_free_ns);
  result_.devices[index].stall_ns += std::max<int64_t>(0, now_ - since_ns);
}

void SimulationRun::End(OpId id) {
  const Op& ended = op(id);
  if (ended.kind() == OpKind::kCompute) {
    if (ahead_) {
      Satisfy(workload_->Ended(ended));  // The rest was done when it was launched.
      return;
    }
    Device& device = devices_[ended.device()];
    device.compute.busy = false;
    FreeWorkspace(id, ended, &device);
    Touch(ended.device());
  } else if (ended.kind() != OpKind::kHost) {
    Device& device = devices_[ended.device()];
    (ended.kind() == OpKind::kCopyOut ? device.out : device.in).busy = false;
    Touch(ended.device());
  }
  LetGo(ended);
  Satisfy(workload_->AllAfter(ended));
}

void SimulationRun::LetGo(const Op& done) {
  for (BufferId buffer : workload_->Holds(done)) {
    int32_t& state = states_[buffer];
    state -= 2;
    if (state != 1) continue;  // Held by others, or without memory as it was reused in place.
    state = 0;
    FreeBuffer(buffer);
    if (poll_->Tick()) return;
  }
}

void SimulationRun::FreeBuffer(BufferId id) {
  const PreparedWorkload::Buffer& buffer = workload_->buffers[id];
  if (options_->record_timeline) to_step_[id] = ++step_;
  if (buffer.device < 0) {
    host_.GiveBack(buffer.bytes);
    host_touched_ = host_touched_ || host_.somebody_waits();
    return;
  }
  Device& device = devices_[buffer.device];
  if (device.placed) device.allocator.Free(std::exchange(chunks_[id], BestFitAllocator::kNoChunk));
  GiveBack(buffer.device, &device, buffer.bytes);
}

void SimulationRun::FreeWorkspace(OpId id, const Op& done, Device* device) {
  if (done.bytes == 0) return;
  if (device->placed) device->allocator.Free(workspaces_[id]);
  GiveBack(done.device(), device, done.bytes);
}

void SimulationRun::GiveBack(GpuIndex index, Device* device, int64_t bytes) {
  device->memory.GiveBack(bytes);
  if (options_->record_timeline) Record(index, /*taken=*/false);
  if (device->memory.somebody_waits()) Touch(index);
}

void SimulationRun::Push(Queue* queue, OpId id) {
  next_[id] = kNoOp;
  (queue->head == kNoOp ? queue->head : next_[queue->tail]) = id;
  queue->tail = id;
}

void SimulationRun::Pop(Queue* queue) {
  queue->head = next_[queue->head];
  queue->asked = false;
}

void SimulationRun::AddEvent(int64_t time_ns, int32_t what) {
  events_.push_back({time_ns, what});
  if (events_.size() > 1) std::push_heap(events_.begin(), events_.end(), kLater);
}

}  // namespace spillway::core
