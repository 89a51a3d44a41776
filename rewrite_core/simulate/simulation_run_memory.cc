// SimulationRun: granting memory, and the result of a run.
#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "rewrite_core/simulate/simulation_run.h"

namespace spillway::core {
namespace {

// Removes the points at which as much was released as was taken, with no peak in between.
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

}  // namespace

bool SimulationRun::TakeResident() {
  const std::vector<int64_t>& resident = workload_->resident_bytes;
  for (GpuIndex d(0); d < workload_->num_devices; ++d) {
    result_.devices[d].resident_bytes = resident[d];
  }
  for (GpuIndex d(0); d < workload_->num_devices; ++d) {
    if (pool(d).Fits(resident[d])) continue;
    Fail(d, kNoOp, resident[d], /*in_use_bytes=*/0);
    return false;
  }
  if (options_->placed && !PlaceResident()) return false;
  for (GpuIndex d(0); d < workload_->num_devices; ++d) {
    pool(d).Take(kNoOp, resident[d]);
    if (options_->record_timeline) Record(d, /*taken=*/true);
  }
  return true;
}

bool SimulationRun::PlaceResident() {
  if (options_->initializer_seed > 0) {
    std::vector<std::vector<BufferId>> buffers(devices_.size());  // By device.
    for (BufferId id : workload_->residents) {
      if (poll_->Tick()) return false;
      buffers[workload_->buffers[id].device].push_back(id);
    }
    for (GpuIndex d(0); d < workload_->num_devices; ++d) {
      if (devices_[d].placed && !PlaceInitialized(d, std::move(buffers[d]))) return false;
    }
    return true;
  }
  std::vector<int64_t> placed(devices_.size(), 0);  // Bytes.
  for (BufferId id : workload_->residents) {
    if (poll_->Tick()) return false;
    const PreparedWorkload::Buffer& buffer = workload_->buffers[id];
    Device& device = devices_[buffer.device];
    if (!device.placed) continue;
    if (device.allocator.Allocate(buffer.bytes) == BestFitAllocator::kNoChunk) {
      FailResident(buffer.device, buffer.bytes, placed[buffer.device]);
      return false;
    }
    placed[buffer.device] += buffer.bytes;
  }
  return true;
}

bool SimulationRun::PlaceInitialized(GpuIndex index, std::vector<BufferId> order) {
  BestFitAllocator& allocator = devices_[index].allocator;
  InitializerDraws draws(options_->initializer_seed, index);
  draws.Shuffle(&order);
  const size_t at_once = draws.NumAtOnce();
  std::deque<Chunk> temporaries;
  const auto free_oldest = [&] {
    allocator.Free(temporaries.front());
    temporaries.pop_front();
  };
  int64_t placed = 0;
  for (BufferId id : order) {
    if (poll_->Tick()) return false;
    const PreparedWorkload::Buffer& buffer = workload_->buffers[id];
    const int64_t size = buffer.bytes;
    const Chunk temporary = buffer.copied ? allocator.Allocate(size) : BestFitAllocator::kNoChunk;
    if (temporary != BestFitAllocator::kNoChunk) temporaries.push_back(temporary);
    while (allocator.Allocate(size) == BestFitAllocator::kNoChunk) {
      if (temporaries.empty()) {
        FailResident(index, size, placed);
        return false;
      }
      free_oldest();
    }
    placed += size;
    if (temporaries.size() == at_once) free_oldest();
  }
  while (!temporaries.empty()) free_oldest();
  return true;
}

void SimulationRun::FailResident(GpuIndex device, int64_t bytes, int64_t placed_bytes) {
  diverged_ = true;
  Fail(device, kNoOp, bytes, placed_bytes);
  if (!result_.out_of_memory->fragmented) return;
  const int64_t largest = devices_[device].allocator.largest_free_bytes();
  result_.out_of_memory->missing_bytes = bytes - largest;
}

void SimulationRun::Wait(const Asked& asking, MemoryPool* memory, const Device* device) {
  const OpId id = asking.op;
  result_.waited = true;
  need_[id] = asking.need;
  waited_.push_back({now_, id, asking.number});
  if (options_->record_times) result_.times[workload_->IdOf(id)].asked_ns = now_;
  memory->Wait(id, device != nullptr && device->diverged ? LargestPiece(id) : asking.need);
}

// A launched operation immediately releases memory, so an earlier one may be served next.
void SimulationRun::Serve(MemoryPool* memory, Device* device) {
  // If memory is fragmented, the largest piece is a better key than the sum: it decides for
  // operations with a single piece, so that a thousand waiting copies are not tried one by one.
  bool all_placed = true;
  const auto place = [&](OpId id) {
    if (device == nullptr || poll_->Tick()) return true;
    // Pieces that are each small enough may be too much in sum: then they need not be tried.
    if (memory->Fits(need_[id]) && FindPlaces(id, device)) return true;
    return all_placed = false;
  };
  while (memory->somebody_waits() && !poll_->Tick()) {
    const bool by_piece = device != nullptr && device->diverged;
    const int64_t bytes = by_piece ? device->allocator.largest_free_bytes() : memory->free_bytes();
    const OpId id = memory->NextServed(bytes, place);
    if (!all_placed && !device->diverged) Diverge(device);
    if (id == kNoOp || poll_->Tick()) return;
    Grant(id, std::exchange(need_[id], kNever), memory);
  }
}

void SimulationRun::Diverge(Device* device) {
  diverged_ = device->diverged = true;
  device->memory.Rekey([this](OpId id) { return poll_->Tick() ? 0 : LargestPiece(id); });
}

int64_t SimulationRun::LargestPiece(OpId id) const {
  int64_t largest = op(id).kind() == OpKind::kCompute ? op(id).bytes : 0;
  for (const PreparedWorkload::Write& write : workload_->Writes(op(id))) {
    if (!is_held(write.buffer)) largest = std::max(largest, write.bytes);
  }
  return largest;
}

int64_t SimulationRun::MissingInOnePiece(OpId id) {
  BestFitAllocator& allocator = devices_[op(id).device()].allocator;
  const auto missing = [&allocator](int64_t bytes) {
    if (bytes == 0 || allocator.Allocate(bytes) != BestFitAllocator::kNoChunk) return int64_t{0};
    return bytes - allocator.largest_free_bytes();
  };
  for (const PreparedWorkload::Write& write : workload_->Writes(op(id))) {
    if (is_held(write.buffer)) continue;
    if (poll_->Tick()) return 0;
    if (const int64_t bytes = missing(write.bytes); bytes > 0) return bytes;
  }
  return missing(op(id).bytes);
}

void SimulationRun::RecordPieces(OpId id, GpuIndex index) {
  const BestFitAllocator& allocator = devices_[index].allocator;
  const int64_t missing = MissingInOnePiece(id);
  if (result_.out_of_memory->fragmented) result_.out_of_memory->missing_bytes = missing;
  result_.piece_bytes = missing + allocator.largest_free_bytes();
  absl::flat_hash_map<Chunk, BufferId> owners;
  for (BufferId buffer(0); buffer < static_cast<int32_t>(states_.size()); ++buffer) {
    if (poll_->Tick()) return;
    const Chunk chunk = chunks_[buffer];
    if (chunk == BestFitAllocator::kNoChunk || workload_->buffers[buffer].device != index) continue;
    owners[chunk] = buffer;
  }
  allocator.ForEach([&](Chunk chunk, bool is_free) {
    if (poll_->Tick()) return;
    const auto owner = owners.find(chunk);
    if (!is_free && owner == owners.end()) return;
    result_.pieces.push_back(
        {allocator.address(chunk), allocator.bytes(chunk), is_free ? kNoBufferId : owner->second});
  });
}

void SimulationRun::Fail(Place device, OpId id, int64_t requested_bytes, int64_t in_use_bytes) {
  OutOfMemory oom;
  oom.device = device;
  oom.op = id == kNoOp ? kNoOp : workload_->IdOf(id);
  if (id != kNoOp) {
    oom.node = op(id).node;
    oom.kind = op(id).kind();
  }
  oom.requested_bytes = requested_bytes;
  oom.in_use_bytes = in_use_bytes;
  oom.budget_bytes = pool(device).budget_bytes();
  oom.time_ns = now_;
  oom.missing_bytes = requested_bytes - (oom.budget_bytes - in_use_bytes);
  oom.fragmented = oom.missing_bytes <= 0;
  if (oom.fragmented && device >= 0) {
    oom.in_chunks = devices_[device].allocator.free_bytes() < requested_bytes;
  }
  result_.out_of_memory = oom;
}

void SimulationRun::Record(GpuIndex device, bool taken) {
  std::vector<MemoryPoint>& timeline = result_.devices[device].timeline;
  const int64_t bytes = pool(device).in_use_bytes();
  if (timeline.empty() || timeline.back().time_ns != now_) timeline.push_back({now_, 0, 0});
  // Between two releases at one moment the value depends on their order, and is meaningless.
  if (taken) timeline.back().high_bytes = std::max(timeline.back().high_bytes, bytes);
  timeline.back().bytes = bytes;
}

void SimulationRun::RecordGrant(Place device, int64_t bytes, bool new_peak) {
  if (device < 0) return;
  ++step_;
  if (new_peak) peak_step_[device] = step_;
  if (bytes > 0) Record(device, /*taken=*/true);
}

void SimulationRun::FindAtPeak() {
  for (DeviceUse& use : result_.devices) KeepChanges(&use.timeline);
  for (BufferId id(0); id < static_cast<int32_t>(states_.size()); ++id) {
    const Place device = workload_->buffers[id].device;
    if (device < 0 || from_step_[id] == kNever) continue;
    if (from_step_[id] <= peak_step_[device] && peak_step_[device] < to_step_[id]) {
      result_.devices[device].at_peak.push_back(id);
    }
  }
}

SimulationResult SimulationRun::TakeResult() {
  if (!result_.fits()) {
    for (GpuIndex d(0); d < workload_->num_devices; ++d) Stall(d);
  }
  result_.step_time_ns = !result_.fits() ? now_ : GivenUp() ? least_time_ns_ : last_end_ns_;
  result_.host_peak_bytes = host_.peak_bytes();
  for (GpuIndex d(0); d < workload_->num_devices; ++d) {
    DeviceUse& use = result_.devices[d];
    use.peak_bytes = pool(d).peak_bytes();
    if (pool(d).peak_op() == kNoOp) continue;
    use.peak_op = workload_->IdOf(pool(d).peak_op());
    use.peak_node = op(pool(d).peak_op()).node;
  }
  if (options_->record_timeline) FindAtPeak();
  return std::move(result_);
}

}  // namespace spillway::core
