#include "tests/testing/naive_simulator.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "tests/testing/naive_allocator.h"

namespace spillway::testing {
namespace {

using core::BufferId;
using core::OpId;
using core::OpKind;

class Naive {
 public:
  Naive(const core::Workload& workload, const core::SimulationOptions& options)
      : w_(workload),
        options_(options),
        ahead_(options.mode == core::SimulationMode::kLaunchAhead),
        num_ops_(static_cast<int32_t>(workload.ops.size())),
        num_devices_(static_cast<int>(workload.devices.size())) {
    result_.devices.resize(num_devices_);
    for (const int64_t wanted : w_.wanted_bytes) {
      if (wanted == 0 || !ahead_) continue;
      for (auto& use : result_.devices) use.slowed_ns.assign(options_.workspace_limits.size(), 0);
    }
  }

  core::SimulationResult Run() {
    for (int d = 0; d < num_devices_; ++d) result_.devices[d].resident_bytes = InUse(d);
    for (int d = 0; d < num_devices_; ++d) {
      const int64_t resident = InUse(d);
      if (resident > Budget(d)) {
        Fail(d, core::kNoOp, resident, 0);
        return result_;
      }
    }
    if (options_.placed && !PlaceResident()) return result_;
    for (int d = 0; d < num_devices_; ++d) result_.devices[d].peak_bytes = InUse(d);
    while (true) {
      high_.clear();
      while (Round()) {
      }
      EndOfMoment();
      // An operation has waited for memory for too long; of several, the first that asked is
      // reported.
      if (!asks_.empty() && now_ >= asked_at_.at(asks_.front()) + core::kMemoryWaitNs) {
        return OutOfMemory();
      }
      const std::optional<int64_t> next = NextEvent();
      if (!next.has_value()) {
        if (!asks_.empty()) return OutOfMemory();
        break;
      }
      int64_t until = *next;
      if (!asks_.empty()) {
        until = std::min(until, asked_at_.at(asks_.front()) + core::kMemoryWaitNs);
      }
      CountStall(until);
      now_ = until;
    }
    result_.step_time_ns = 0;
    for (const auto& [op, end] : end_) {
      result_.step_time_ns = std::max(result_.step_time_ns, end);
    }
    ListTimes();
    return result_;
  }

 private:
  // ---- The current state.
  int64_t Budget(int device) const {
    if (device == -1) return options_.host_budget_bytes;
    const auto& budgets = options_.device_budget_bytes;
    return device < static_cast<int>(budgets.size()) ? budgets[device] : core::kUnlimited;
  }
  bool Given(OpId op) const { return end_.count(op) > 0; }
  bool Ended(OpId op) const { return ended_.count(op) > 0; }
  bool IsCompute(OpId op) const { return w_.ops[op].kind == OpKind::kCompute; }
  // Whether `op` has released the buffers that it reads, and those that it wrote as their writer.
  bool HasLetGo(OpId op) const { return ahead_ && IsCompute(op) ? Given(op) : Ended(op); }

  OpId Writer(BufferId buffer) const {
    for (OpId op(0); op < num_ops_; ++op) {
      for (BufferId written : w_.writes[op]) {
        if (written == buffer) return op;
      }
    }
    return core::kNoOp;
  }
  bool Reads(OpId op, BufferId buffer) const {
    const auto reads = w_.reads[op];
    return std::find(reads.begin(), reads.end(), buffer) != reads.end();
  }
  // The operations that still hold the buffer.
  std::set<OpId> Holders(BufferId buffer) const {
    std::set<OpId> holders;
    for (OpId op(0); op < num_ops_; ++op) {
      if ((Reads(op, buffer) || Writer(buffer) == op) && !HasLetGo(op)) holders.insert(op);
    }
    return holders;
  }
  bool IsThere(BufferId buffer) const {
    if (w_.buffers[buffer].resident) return true;
    if (taken_from_.count(buffer) > 0) return false;
    const OpId writer = Writer(buffer);
    if (writer == core::kNoOp) return false;
    return (took_.count(buffer) > 0 || Given(writer)) && !Holders(buffer).empty();
  }
  static int64_t RoundUp(int64_t bytes) {
    while (bytes % 256 != 0) ++bytes;
    return bytes;
  }
  int64_t Size(BufferId buffer) const {
    const auto& b = w_.buffers[buffer];
    // Only outputs of copies and host operations take host memory.
    if (b.device == -1 && (b.resident || IsCompute(Writer(buffer)))) return 0;
    return RoundUp(b.bytes);
  }
  int64_t InUse(int device) const {
    int64_t bytes = 0;
    for (BufferId b(0); b < static_cast<int32_t>(w_.buffers.size()); ++b) {
      if (w_.buffers[b].device == device && IsThere(b)) bytes += Size(b);
    }
    for (OpId op(0); op < num_ops_ && !ahead_; ++op) {
      if (w_.ops[op].device == device && Given(op) && !Ended(op)) {
        bytes += RoundUp(w_.ops[op].workspace_bytes);
      }
    }
    return bytes;
  }
  // Of an operation that has been launched or started.
  int64_t Duration(OpId op) const { return durations_.at(op); }
  int64_t DrawDuration(OpId op) {
    const auto& o = w_.ops[op];
    const bool is_copy = o.kind == OpKind::kCopyOut || o.kind == OpKind::kCopyIn;
    const int64_t time = is_copy ? o.duration_ns * options_.copy_percent / 100 : o.duration_ns;
    if (time == 0 || o.kind == OpKind::kHost || options_.spread_percent == 100) return time;
    const bool longer = Draws(o.device).Next(2) == 1;
    const int64_t percent = 100 + Draws(o.device).Next(options_.spread_percent - 100 + 1);
    return longer ? time * percent / 100 : std::max<int64_t>(time * 100 / percent, 1);
  }
  int PoolOf(OpId op) const {
    const auto& o = w_.ops[op];
    return o.kind == OpKind::kCompute || o.kind == OpKind::kCopyIn ? o.device : -1;
  }
  // Whether `before` no longer holds back `op`, which waits for it.
  bool Satisfied(OpId before, OpId op) const {
    const auto &a = w_.ops[before], &b = w_.ops[op];
    const bool launch_is_enough = ahead_ && a.kind == OpKind::kCompute && a.device == b.device &&
                                  (b.kind == OpKind::kCompute || b.kind == OpKind::kCopyOut);
    return launch_is_enough ? Given(before) : Ended(before);
  }
  bool IsReady(OpId op) const {
    for (OpId before : w_.waits_for[op]) {
      if (!Satisfied(before, op)) return false;
    }
    return true;
  }
  core::ReadyDraws& Draws(int device) {
    return draws_.emplace(device, core::ReadyDraws(options_.ready_seed, core::GpuIndex(device)))
        .first->second;
  }
  std::vector<OpId> JoiningOrder() const {
    std::vector<std::pair<uint64_t, OpId>> keyed;
    for (OpId op(0); op < num_ops_; ++op) {
      const auto id = static_cast<int32_t>(op);
      keyed.emplace_back(options_.file_seed > 0 ? core::ShuffledRank(options_.file_seed, id)
                                                : static_cast<uint64_t>(id),
                         op);
    }
    std::sort(keyed.begin(), keyed.end());
    std::vector<OpId> order;
    for (const auto& [key, op] : keyed) order.push_back(op);
    return order;
  }
  // Whether `op`, which waits for nothing else, is a copy in that comes later.
  bool IsLate(OpId op) {
    if (w_.ops[op].kind != OpKind::kCopyIn) return false;
    if (late_.count(op) == 0) {
      const bool at_start = now_ < options_.late_ns;
      late_[op] = at_start ? now_ + 1 + Draws(w_.ops[op].device).Next(options_.late_ns) : now_;
    }
    return now_ < late_[op];
  }
  int64_t LauncherFree(int device) const {
    int64_t free = 0;
    for (const auto& [op, launched] : given_at_) {
      if (IsCompute(op) && w_.ops[op].device == device && w_.ops[op].duration_ns > 0) {
        free = std::max(free, launched + options_.launch_ns);
      }
    }
    return free;
  }
  // The latest end of the operations of `kind` on `device` that have been launched or started.
  int64_t EngineFree(int device, OpKind kind) const {
    int64_t free = 0;
    for (const auto& [op, end] : end_) {
      if (w_.ops[op].device == device && w_.ops[op].kind == kind) free = std::max(free, end);
    }
    return free;
  }
  bool IsBusy(int device, OpKind kind) const {
    for (const auto& [op, end] : end_) {
      if (w_.ops[op].device == device && w_.ops[op].kind == kind && !Ended(op)) return true;
    }
    return false;
  }

  // ---- Events.
  bool Round() {
    for (const auto& [op, end] : end_) {
      if (end <= now_) ended_.insert(op);
    }
    for (OpId op : JoiningOrder()) {
      if (ready_.count(op) > 0 || !IsReady(op) || IsLate(op)) continue;
      ready_.insert(op);
      const auto& o = w_.ops[op];
      if (o.kind == OpKind::kHost || (ahead_ && o.kind == OpKind::kCopyIn)) {
        Ask(op);
      } else {
        queues_[{o.device, o.kind}].push_back(op);
      }
    }
    for (int d = 0; d < num_devices_; ++d) {
      for (OpKind kind : {OpKind::kCompute, OpKind::kCopyOut, OpKind::kCopyIn}) {
        auto& queue = queues_[{d, kind}];
        if (queue.empty() || asked_at_.count(queue.front()) > 0) continue;
        if (ahead_ && kind == OpKind::kCompute) {
          if (now_ < LauncherFree(d)) continue;
        } else if (IsBusy(d, kind)) {
          continue;
        }
        bool all_done = true;
        for (OpId before : w_.waits_for[queue.front()]) all_done = all_done && Ended(before);
        if (kind == OpKind::kCopyOut && !all_done) continue;
        if (kind == OpKind::kCompute) MoveNextToFront(d, &queue);
        Ask(queue.front());
      }
    }
    bool gave = false;
    for (int device = -1; device < num_devices_; ++device) {
      while (GiveToFirst(device)) gave = true;
    }
    return gave;
  }

  // An operation that has requested memory stays at the front. Otherwise the ready order decides;
  // the queue is in the order of joining, except for the moves that kMixed makes.
  void MoveNextToFront(int device, std::vector<OpId>* queue) {
    OpId next = queue->front();
    if (options_.ready_order == core::ReadyOrder::kFirstReady) {
      return;
    } else if (options_.ready_order == core::ReadyOrder::kLastReady) {
      next = queue->back();
      queue->pop_back();
    } else {
      const size_t drawn = Draws(device).Next(queue->size());
      next = queue->at(drawn);
      queue->at(drawn) = queue->back();
      queue->pop_back();
    }
    queue->insert(queue->begin(), next);
  }

  void Ask(OpId op) {
    int64_t need = RoundUp(w_.ops[op].workspace_bytes);
    for (size_t i = 0; i < w_.writes[op].size(); ++i) {
      const BufferId output = w_.writes[op][i];
      const BufferId input = i < w_.reuses[op].size() ? w_.reuses[op][i] : core::kNoBufferId;
      if (input >= 0 && !w_.buffers[input].resident && taken_from_.count(input) == 0 &&
          w_.buffers[input].device == w_.buffers[output].device &&
          w_.buffers[input].bytes == w_.buffers[output].bytes && Size(input) == Size(output) &&
          Holders(input) == std::set<OpId>{op}) {
        taken_from_.insert(input);
        took_.insert(output);
        if (places_.count(input) > 0) {
          places_[output] = places_[input];
          places_.erase(input);
        }
      } else {
        need += Size(output);
      }
    }
    need_[op] = need;
    asked_at_[op] = now_;
    asks_.push_back(op);
  }

  bool GiveToFirst(int device) {
    for (auto it = asks_.begin(); it != asks_.end(); ++it) {
      const OpId op = *it;
      if (PoolOf(op) != device) continue;
      if (need_[op] > Budget(device) - InUse(device) || (options_.placed && !Place(op, device))) {
        result_.waited = true;
        continue;
      }
      asks_.erase(it);
      Give(op, device);
      return true;
    }
    return false;
  }

  // ---- Addresses, if memory is placed.
  bool IsPlaced(int device) const { return device >= 0 && Budget(device) != core::kUnlimited; }
  bool PlaceResident() {
    for (int d = 0; d < num_devices_; ++d) {
      if (IsPlaced(d))
        regions_.emplace(d, NaiveAllocator(Budget(d), options_.max_fragmentation_bytes));
    }
    if (options_.initializer_seed > 0) {
      for (auto& [device, region] : regions_) {
        if (!Initialize(device, &region)) return false;
      }
      return true;
    }
    for (BufferId b(0); b < static_cast<int32_t>(w_.buffers.size()); ++b) {
      const int device = w_.buffers[b].device;
      if (!w_.buffers[b].resident || Size(b) == 0 || !IsPlaced(device)) continue;
      if (regions_.at(device).Allocate(Size(b)).has_value()) continue;
      int64_t before = 0;
      for (BufferId c(0); c < b; ++c) {
        if (w_.buffers[c].resident && w_.buffers[c].device == device) before += Size(c);
      }
      Fail(device, core::kNoOp, Size(b), before);
      result_.out_of_memory->missing_bytes = Missing(device, Size(b));
      return false;
    }
    return true;
  }
  bool Initialize(int device, NaiveAllocator* region) {
    std::vector<BufferId> order;
    for (BufferId b(0); b < static_cast<int32_t>(w_.buffers.size()); ++b) {
      const bool counts = w_.buffers[b].resident && w_.buffers[b].device == device && Size(b) > 0;
      if (counts) order.push_back(b);
    }
    core::InitializerDraws draws(options_.initializer_seed, core::GpuIndex(device));
    draws.Shuffle(&order);
    const size_t at_once = draws.NumAtOnce();
    std::vector<int64_t> temporaries;  // Their addresses, oldest first.
    int64_t before = 0;
    for (BufferId b : order) {
      if (w_.buffers[b].copied) {
        if (const auto temporary = region->Allocate(Size(b))) temporaries.push_back(*temporary);
      }
      auto address = region->Allocate(Size(b));
      while (!address.has_value() && !temporaries.empty()) {
        region->Free(temporaries.front());
        temporaries.erase(temporaries.begin());
        address = region->Allocate(Size(b));
      }
      if (!address.has_value()) {
        Fail(device, core::kNoOp, Size(b), before);
        result_.out_of_memory->missing_bytes = Missing(device, Size(b));
        return false;
      }
      before += Size(b);
      if (temporaries.size() < at_once) continue;
      region->Free(temporaries.front());
      temporaries.erase(temporaries.begin());
    }
    for (int64_t address : temporaries) region->Free(address);
    return true;
  }
  // Frees the addresses of buffers that are gone.
  void Clear() {
    for (auto it = places_.begin(); it != places_.end();) {
      if (IsThere(it->first)) {
        ++it;
        continue;
      }
      regions_.at(w_.buffers[it->first].device).Free(it->second);
      it = places_.erase(it);
    }
    for (auto it = workspaces_.begin(); it != workspaces_.end();) {
      if (!HasLetGo(it->first)) {
        ++it;
        continue;
      }
      regions_.at(w_.ops[it->first].device).Free(it->second);
      it = workspaces_.erase(it);
    }
  }
  bool Place(OpId op, int device) {
    if (!IsPlaced(device)) return true;
    Clear();
    NaiveAllocator& region = regions_.at(device);
    std::map<BufferId, int64_t> found;
    bool all = true;
    for (BufferId output : w_.writes[op]) {
      if (took_.count(output) > 0 || Size(output) == 0) continue;
      const std::optional<int64_t> address = region.Allocate(Size(output));
      all = all && address.has_value();
      if (!all) break;
      found[output] = *address;
    }
    const int64_t workspace = RoundUp(w_.ops[op].workspace_bytes);
    if (all && workspace > 0) {
      const std::optional<int64_t> address = region.Allocate(workspace);
      all = address.has_value();
      if (all) workspaces_[op] = *address;
    }
    if (all) {
      places_.insert(found.begin(), found.end());
    } else {
      for (const auto& [buffer, address] : found) region.Free(address);
    }
    return all;
  }

  void Give(OpId op, int device) {
    const int64_t in_use = in_use_now_ = InUse(device) + need_[op];
    if (device == -1) {
      result_.host_peak_bytes = std::max(result_.host_peak_bytes, in_use);
    } else {
      core::DeviceUse& use = result_.devices[device];
      if (need_[op] > 0) high_[device] = std::max(high_[device], in_use);
      if (in_use > use.peak_bytes) {
        use.peak_bytes = in_use;
        use.peak_op = op;
        use.peak_node = w_.ops[op].node;
        use.at_peak.clear();
        for (BufferId b(0); b < static_cast<int32_t>(w_.buffers.size()); ++b) {
          if (w_.buffers[b].device != device || w_.buffers[b].resident || Size(b) == 0) continue;
          // Present already, or allocated now.
          if (IsThere(b) || Writer(b) == op) use.at_peak.push_back(b);
        }
      }
    }
    const auto& o = w_.ops[op];
    int64_t start = now_;
    if (ahead_ && o.kind == OpKind::kCompute) {
      start = std::max(now_, EngineFree(o.device, OpKind::kCompute));
    } else if (ahead_ && o.kind == OpKind::kCopyIn) {
      start = std::max(
          {now_, EngineFree(o.device, OpKind::kCompute), EngineFree(o.device, OpKind::kCopyIn)});
    }
    if (o.on_host_engine) {
      for (const auto& [other, end] : end_) {
        if (w_.ops[other].on_host_engine) start = std::max(start, end);
      }
    }
    durations_[op] = DrawDuration(op);
    for (size_t i = 0; i < options_.workspace_limits.size(); ++i) {
      const int64_t wanted = RoundUp(std::min(Wanted(op), options_.workspace_limits[i]));
      if (!ahead_ || wanted == 0 || HasFreeInFirstStep(op, wanted, device)) continue;
      result_.devices[device].slowed_ns[i] += Duration(op) * 3 / 10;
    }
    given_at_[op] = now_;
    end_[op] = start + Duration(op);
    if (o.on_host_engine) result_.host_ns += Duration(op);
    if (o.device >= 0) {
      auto& queue = queues_[{o.device, o.kind}];
      if (!queue.empty() && queue.front() == op) queue.erase(queue.begin());
      core::DeviceUse& use = result_.devices[o.device];
      if (o.kind == OpKind::kCompute) {
        use.compute_ns += Duration(op);
        result_.order.push_back(op);
      } else if (o.kind == OpKind::kCopyOut) {
        use.copy_out_ns += Duration(op);
        use.copy_out_bytes += w_.buffers[w_.reads[op][0]].bytes;
      } else {
        use.copy_in_ns += Duration(op);
        use.copy_in_bytes += w_.buffers[w_.reads[op][0]].bytes;
      }
    }
  }

  int64_t Wanted(OpId op) const {
    return op < static_cast<int32_t>(w_.wanted_bytes.size()) ? w_.wanted_bytes[op] : 0;
  }
  // Beside a copy of the output, unless that is too large.
  bool HasFreeInFirstStep(OpId op, int64_t workspace, int device) {
    const int64_t tried = workspace + options_.redzone_bytes;
    int64_t copy = options_.redzone_bytes;
    for (BufferId b : w_.writes[op]) copy += Size(b);
    return HasFree(copy + tried, device) || (!HasFree(copy, device) && HasFree(tried, device));
  }
  // Whether that many bytes are free while the current operation is launched.
  bool HasFree(int64_t bytes, int device) {
    const auto& spare = options_.spare_bytes;
    if (device < static_cast<int>(spare.size()) && bytes <= spare[device]) return true;
    if (!options_.placed || !IsPlaced(device)) return bytes <= Budget(device) - in_use_now_;
    NaiveAllocator region = regions_.at(device);
    return region.Allocate(bytes).has_value();
  }

  std::optional<int64_t> NextEvent() const {
    std::optional<int64_t> next;
    const auto consider = [&](int64_t time) {
      if (time > now_ && (!next.has_value() || time < *next)) next = time;
    };
    for (const auto& [op, end] : end_) consider(end);
    for (const auto& [op, time] : late_) consider(time);
    for (const auto& [key, queue] : queues_) {
      if (ahead_ && key.second == OpKind::kCompute && !queue.empty()) {
        consider(LauncherFree(key.first));
      }
    }
    return next;
  }

  void CountStall(int64_t until) {
    for (int d = 0; d < num_devices_; ++d) {
      bool work_left = false, runs = false;
      for (OpId op(0); op < num_ops_; ++op) {
        const auto& o = w_.ops[op];
        if (o.kind != OpKind::kCompute || o.device != d || o.duration_ns == 0) continue;
        if (!Given(op)) work_left = true;
        if (Given(op) && end_.at(op) > now_) runs = true;
      }
      const int64_t from = ahead_ ? std::max(now_, LauncherFree(d)) : now_;
      if (work_left && !runs && until > from) result_.devices[d].stall_ns += until - from;
    }
  }

  void EndOfMoment() {
    if (!options_.record_timeline) return;
    for (int d = 0; d < num_devices_; ++d) {
      auto& timeline = result_.devices[d].timeline;
      const int64_t bytes = InUse(d);
      const int64_t high =
          std::max({bytes, high_.count(d) > 0 ? high_[d] : 0,
                    timeline.empty() ? result_.devices[d].resident_bytes : int64_t{0}});
      if (timeline.empty() || high != bytes || timeline.back().bytes != bytes) {
        timeline.push_back({now_, high, bytes});
      }
    }
  }

  core::SimulationResult OutOfMemory() {
    const OpId op = asks_.front();
    const int device = PoolOf(op);
    Fail(device, op, need_[op], InUse(device));
    if (result_.out_of_memory->fragmented) {
      std::vector<int64_t> pieces;
      for (BufferId output : w_.writes[op]) {
        if (took_.count(output) == 0) pieces.push_back(Size(output));
      }
      pieces.push_back(RoundUp(w_.ops[op].workspace_bytes));
      Clear();
      for (int64_t bytes : pieces) {
        if (bytes == 0 || regions_.at(device).Allocate(bytes).has_value()) continue;
        result_.out_of_memory->missing_bytes = Missing(device, bytes);
        break;
      }
    }
    result_.step_time_ns = now_;
    ListTimes();
    return result_;
  }
  void Fail(int device, OpId op, int64_t requested, int64_t in_use) {
    core::OutOfMemory oom;
    oom.device = core::Place(device);
    oom.op = op;
    if (op != core::kNoOp) oom.node = w_.ops[op].node;
    oom.requested_bytes = requested;
    oom.in_use_bytes = in_use;
    oom.budget_bytes = Budget(device);
    oom.time_ns = now_;
    oom.fragmented = in_use + requested <= Budget(device);
    if (!oom.fragmented) oom.missing_bytes = in_use + requested - Budget(device);
    result_.out_of_memory = oom;
    ListTimes();
  }
  // By how much `bytes`, which fit in no free chunk, exceed the largest possible allocation.
  int64_t Missing(int device, int64_t bytes) {
    int64_t less = bytes;
    while (less > 0 && !regions_.at(device).Allocate(less).has_value()) --less;
    return bytes - less;
  }
  void ListTimes() {
    if (!options_.record_times) return;
    result_.times.assign(num_ops_, core::OpTimes());
    for (const auto& [op, given] : given_at_) {
      result_.times[op] = {given, end_.at(op) - Duration(op), end_.at(op), asked_at_.at(op)};
    }
  }

  const core::Workload& w_;
  const core::SimulationOptions& options_;
  const bool ahead_;
  const int32_t num_ops_;
  const int num_devices_;

  int64_t now_ = 0;
  std::set<OpId> ready_, ended_;
  std::map<OpId, int64_t> asked_at_, need_;
  std::map<OpId, int64_t> given_at_, durations_, end_;  // Of operations that have their memory.
  std::vector<OpId> asks_;  // Operations without memory, in the order of asking.
  std::map<std::pair<int, OpKind>, std::vector<OpId>> queues_;
  std::map<int, core::ReadyDraws> draws_;  // By device.
  std::map<OpId, int64_t> late_;           // When copies in come to their queue.
  std::set<BufferId> taken_from_, took_;
  std::map<int, NaiveAllocator> regions_;  // By device.
  std::map<BufferId, int64_t> places_;     // Addresses.
  std::map<OpId, int64_t> workspaces_;
  int64_t in_use_now_ = 0;       // On the device of the operation that is given memory.
  std::map<int, int64_t> high_;  // The peak within this moment, by device.
  core::SimulationResult result_;
};

}  // namespace

core::SimulationResult NaiveSimulate(const core::Workload& workload,
                                     const core::SimulationOptions& options) {
  core::SimulationResult result = Naive(workload, options).Run();
  if (!options.record_timeline) {
    for (auto& device : result.devices) device.at_peak.clear();
  }
  return result;
}

}  // namespace spillway::testing
