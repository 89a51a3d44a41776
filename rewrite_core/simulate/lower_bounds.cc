#include "rewrite_core/simulate/lower_bounds.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/simulate/prepared_workload.h"
#include "rewrite_core/simulate/simulator.h"

namespace spillway::core {
namespace {

constexpr char kStage[] = "lower bounds";
constexpr int32_t kNoStep = -1;
constexpr double kNeverAgain = -1;
// Like the simulator's limit: sums of a few do not overflow.
constexpr int64_t kLongestNs = std::numeric_limits<int64_t>::max() / 4;

int64_t CopyNs(int64_t bytes, double bytes_per_s) {
  const double ns = std::floor(static_cast<double>(bytes) / bytes_per_s * 1e9);
  return ns < static_cast<double>(kLongestNs) ? static_cast<int64_t>(ns) : kLongestNs;
}

int64_t CopyNsRoundedUp(int64_t bytes, double bytes_per_s) {
  return bytes > 0 ? CopyNs(bytes, bytes_per_s) + 1 : 0;
}

// Returns the intervals with time reversed.
std::vector<StepInterval> Reversed(const std::vector<StepInterval>& intervals, int32_t steps) {
  std::vector<StepInterval> reversed;
  reversed.reserve(intervals.size());
  for (const StepInterval& i : intervals) {
    reversed.push_back({steps - 1 - i.last, steps - 1 - i.first, i.bytes});
  }
  return reversed;
}

// Returns, by step, the bytes of all intervals over it.
std::vector<int64_t> BytesOver(const std::vector<StepInterval>& intervals, int32_t steps) {
  std::vector<int64_t> bytes(steps + 1, 0);
  for (const StepInterval& i : intervals) {
    bytes[i.first] += i.bytes;
    bytes[i.last + 1] -= i.bytes;
  }
  for (int32_t step = 0; step < steps; ++step) bytes[step + 1] += bytes[step];
  return bytes;
}

// Computes the bounds of one device at a time.
class Bounds {
 public:
  Bounds(const Workload& workload, const PreparedWorkload& prepared,
         const LowerBoundOptions& options)
      : prepared_(prepared), workload_(workload), options_(options) {}

  absl::Status Prepare(absl::Span<const OpId> order, const StopToken& stop);
  absl::StatusOr<DeviceBounds> OfDevice(GpuIndex device, const StopToken& stop);

 private:
  // The uses of a buffer on the device up to the current step.
  struct Use {
    int32_t made_at = kNoStep;
    OpId writer = kNoOp;  // Of the compute operations.
    int32_t last_step = kNoStep;
    bool may_be_taken_over = false;  // At last_step.
    bool on_host_anyway = false;
    StepInterval all_gaps{kNoStep, kNoStep, 0};
  };

  int64_t size(BufferId id) const { return prepared_.buffers[id].bytes; }
  bool Moves(BufferId id, GpuIndex device) const {
    const WorkloadBuffer& buffer = workload_.buffers[id];
    return buffer.device == device && !buffer.resident;
  }
  // Fills in reused_ for `id`.
  void FindTakenOver(OpId id);
  // REQUIRES: reused_ is that of `id`.
  int64_t Need(OpId id, GpuIndex device) const;
  void UseAt(int32_t step, BufferId id);
  // kNeverAgain if it cannot be recomputed.
  double AgainNsPerByte(BufferId id);
  // Returns, by step, its earliest possible start.
  std::vector<int64_t> EarliestStarts(const std::vector<int64_t>& out_until, GpuIndex device,
                                      const StopToken& stop) const;
  int64_t JointTime(const std::vector<int64_t>& demand, GpuIndex device,
                    const StopToken& stop) const;
  int64_t StepTime(const DeviceBounds& bounds, const std::vector<int64_t>& demand,
                   const std::vector<int64_t>& out_until, GpuIndex device,
                   const StopToken& stop) const;

  const PreparedWorkload& prepared_;
  const Workload& workload_;
  const LowerBoundOptions& options_;
  absl::flat_hash_map<OpId, double> again_by_writer_;  // AgainNsPerByte.
  std::vector<std::vector<OpId>> steps_;               // By device.
  // By device: the time of the step's own copies, in ns; the operation that copies the most in.
  std::vector<int64_t> copy_out_ns_, copy_in_ns_;
  int64_t host_ns_ = 0;  // Of the host's engine.
  std::vector<OpId> largest_copy_in_;
  // By output of one operation: the input that it may reuse, or kNoBufferId.
  std::vector<BufferId> reused_;
  std::vector<OpId> taken_over_by_;  // By buffer: the latest operation that may reuse it.
  std::vector<Use> uses_;            // By buffer.
  std::vector<BufferId> used_;       // On this device.
  std::vector<StepInterval> gaps_, stays_;
  std::vector<StepInterval> gaps_on_host_anyway_;
  // With recomputation: by gap, the time to recompute a byte of its buffer, in ns; kNeverAgain: it
  // cannot be.
  std::vector<double> again_ns_per_byte_;
};

absl::Status Bounds::Prepare(absl::Span<const OpId> order, const StopToken& stop) {
  const size_t num_devices = workload_.devices.size();
  const int32_t num_ops = static_cast<int32_t>(workload_.ops.size());
  StopPoller poll(stop);
  steps_.resize(num_devices);
  copy_out_ns_.assign(num_devices, 0);
  copy_in_ns_.assign(num_devices, 0);
  largest_copy_in_.assign(num_devices, kNoOp);
  uses_.resize(workload_.buffers.size());
  taken_over_by_.assign(workload_.buffers.size(), kNoOp);
  std::vector<bool> seen(num_ops, false);
  for (OpId id : order) {
    if (poll.Tick()) return stop.status(kStage);
    if (id < 0 || id >= num_ops || seen[id] || workload_.ops[id].kind != OpKind::kCompute) {
      return Error(absl::StatusCode::kInternal, v1::ERROR_REASON_INTERNAL,
                   absl::StrCat("Operation ", id.value(),
                                " has no place in an order of the workload's compute operations; "
                                "this is an error in Spillway."));
    }
    seen[id] = true;
    steps_[workload_.ops[id].device].push_back(id);
  }
  for (OpId id(0); id < num_ops; ++id) {
    if (poll.Tick()) return stop.status(kStage);
    const WorkloadOp& op = workload_.ops[id];
    if (op.on_host_engine) host_ns_ += op.duration_ns;
    if (op.kind == OpKind::kCopyOut) {
      copy_out_ns_[op.device] += op.duration_ns;
      uses_[workload_.reads[id][0]].on_host_anyway = true;
    } else if (op.kind == OpKind::kCopyIn) {
      copy_in_ns_[op.device] += op.duration_ns;
      const BufferId written = workload_.writes[id][0];
      uses_[written].on_host_anyway = true;
      OpId& largest = largest_copy_in_[op.device];
      if (largest == kNoOp || size(written) > size(workload_.writes[largest][0])) largest = id;
    }
  }
  return absl::OkStatus();
}

void Bounds::FindTakenOver(OpId id) {
  const auto reuses = workload_.reuses[id];
  reused_.assign(workload_.writes[id].size(), kNoBufferId);
  for (size_t i = 0; i < reuses.size(); ++i) {
    if (reuses[i] < 0 || taken_over_by_[reuses[i]] == id) continue;  // Each input once.
    const WorkloadBuffer& input = workload_.buffers[reuses[i]];
    const WorkloadBuffer& output = workload_.buffers[workload_.writes[id][i]];
    if (input.resident || input.device == kHostPlace || input.device != output.device ||
        input.bytes != output.bytes) {
      continue;
    }
    reused_[i] = reuses[i];
    taken_over_by_[reuses[i]] = id;
  }
}

int64_t Bounds::Need(OpId id, GpuIndex device) const {
  int64_t need = prepared_.resident_bytes[device];
  need += AllocatedBytes(workload_.ops[id].workspace_bytes);
  for (BufferId read : workload_.reads[id]) {
    if (Moves(read, device)) need += size(read);
  }
  const auto writes = workload_.writes[id];
  for (size_t i = 0; i < writes.size(); ++i) {
    if (reused_[i] < 0 && Moves(writes[i], device)) need += size(writes[i]);
  }
  return need;
}

void Bounds::UseAt(int32_t step, BufferId id) {
  Use& use = uses_[id];
  if (use.last_step != kNoStep && workload_.buffers[id].stays) {
    if (use.last_step + 1 < step) stays_.push_back({use.last_step + 1, step - 1, size(id)});
  } else if (use.last_step != kNoStep) {
    const StepInterval gap{use.may_be_taken_over ? use.last_step : use.last_step + 1, step - 1,
                           workload_.buffers[id].bytes};
    if (gap.first <= gap.last && gap.bytes > 0) {
      gaps_.push_back(gap);
      if (!options_.may_run_again.empty()) again_ns_per_byte_.push_back(AgainNsPerByte(id));
      if (use.on_host_anyway) gaps_on_host_anyway_.push_back(gap);
      if (use.all_gaps.first == kNoStep) use.all_gaps.first = gap.first;
      use.all_gaps.last = gap.last;
      use.all_gaps.bytes = gap.bytes;
    }
  }
  if (use.last_step == kNoStep) {
    used_.push_back(id);
    use.made_at = step;
  }
  use.last_step = step;
  use.may_be_taken_over = false;
}

double Bounds::AgainNsPerByte(BufferId id) {
  const OpId writer = uses_[id].writer;
  if (writer == kNoOp || !options_.may_run_again[writer]) return kNeverAgain;
  // One recomputation makes all its outputs, which may be many.
  const auto [found, is_new] = again_by_writer_.try_emplace(writer, 0.0);
  if (is_new) {
    int64_t bytes = 0;
    for (BufferId written : workload_.writes[writer]) bytes += workload_.buffers[written].bytes;
    found->second = static_cast<double>(workload_.ops[writer].duration_ns) /
                    static_cast<double>(std::max<int64_t>(1, bytes));
  }
  return found->second;
}

absl::StatusOr<DeviceBounds> Bounds::OfDevice(GpuIndex device, const StopToken& stop) {
  const std::vector<OpId>& order = steps_[device];
  const int32_t steps = static_cast<int32_t>(order.size());
  StopPoller poll(stop);
  DeviceBounds bounds;
  bounds.memory_bytes = prepared_.resident_bytes[device];
  const auto raise_memory = [&bounds](OpId id, int64_t need) {
    if (need <= bounds.memory_bytes) return;
    bounds.memory_bytes = need;
    bounds.memory_op = id;
  };
  gaps_.clear();
  stays_.clear();
  used_.clear();
  gaps_on_host_anyway_.clear();
  again_ns_per_byte_.clear();
  std::vector<int64_t> demand(steps, 0);  // First the bytes needed, then those that must be away.
  for (int32_t step = 0; step < steps; ++step) {
    const OpId id = order[step];
    const size_t used = workload_.reads[id].size() + workload_.writes[id].size();
    if (poll.Tick(1 + static_cast<int64_t>(used))) return stop.status(kStage);
    FindTakenOver(id);
    demand[step] = Need(id, device);
    for (BufferId read : workload_.reads[id]) {
      if (Moves(read, device)) UseAt(step, read);
    }
    for (BufferId written : workload_.writes[id]) {
      if (!Moves(written, device)) continue;
      uses_[written].writer = id;
      UseAt(step, written);
    }
    for (BufferId taken : reused_) {
      if (taken >= 0) uses_[taken].may_be_taken_over = true;
    }
  }
  const std::vector<int64_t> staying = BytesOver(stays_, steps);
  for (int32_t step = 0; step < steps; ++step) {
    demand[step] += staying[step];
    raise_memory(order[step], demand[step]);
  }
  if (const OpId id = largest_copy_in_[device]; id != kNoOp) {
    raise_memory(id, prepared_.resident_bytes[device] + size(workload_.writes[id][0]));
  }

  const int64_t budget = device < static_cast<int32_t>(options_.device_budget_bytes.size())
                             ? options_.device_budget_bytes[device]
                             : kUnlimited;
  std::vector<int64_t> demand_out(steps, 0);
  {  // Large for many steps: freed after use.
    const std::vector<int64_t> waiting = BytesOver(gaps_, steps);
    const std::vector<int64_t> free = BytesOver(gaps_on_host_anyway_, steps);
    for (int32_t step = 0; step < steps; ++step) {
      const int64_t alive = demand[step] + waiting[step];
      demand[step] = alive > budget ? alive - budget : 0;
      demand_out[step] = std::max<int64_t>(0, demand[step] - free[step]);
      bounds.excess_bytes = std::max(bounds.excess_bytes, demand[step]);
    }
  }
  std::vector<int64_t> out_until(steps, 0);
  if (bounds.excess_bytes > 0) {
    std::vector<StepInterval> buffers;
    for (BufferId id : used_) {
      const Use& use = uses_[id];
      if (!use.on_host_anyway && use.all_gaps.bytes > 0) buffers.push_back(use.all_gaps);
    }
    out_until = LeastCover(std::move(buffers), demand_out, stop);
    std::vector<int64_t>().swap(demand_out);
    if (absl::Status s = stop.status(kStage); !s.ok()) return s;
    bounds.swap_out_bytes = out_until.back();
    bounds.swap_in_bytes = LeastCover(gaps_, demand, stop).back();
    if (absl::Status s = stop.status(kStage); !s.ok()) return s;
  }
  bounds.step_time_ns = options_.may_run_again.empty()
                            ? StepTime(bounds, demand, out_until, device, stop)
                            : JointTime(demand, device, stop);
  bounds.step_time_ns = std::max(bounds.step_time_ns, host_ns_);
  if (absl::Status s = stop.status(kStage); !s.ok()) return s;
  return bounds;
}

std::vector<int64_t> Bounds::EarliestStarts(const std::vector<int64_t>& out_until, GpuIndex device,
                                            const StopToken& stop) const {
  const int32_t steps = static_cast<int32_t>(out_until.size());
  const double rate = options_.copy_out_bytes_per_s;
  // By step: bytes that it writes and that may have to leave.
  std::vector<int64_t> made(steps, 0);
  StopPoller poll(stop);
  for (BufferId id : used_) {
    if (poll.Tick()) return {};
    const Use& use = uses_[id];
    if (!use.on_host_anyway && use.all_gaps.bytes > 0) made[use.made_at] += use.all_gaps.bytes;
  }
  std::vector<int64_t> starts(steps, 0);
  // The maximum over the steps s so far: the end of s, less the copy time of bytes made before.
  int64_t first_ns = 0, made_before = 0;
  for (int32_t step = 0; step < steps; ++step) {
    if (poll.Tick()) return {};
    int64_t start_ns = 0;
    if (step > 0) {
      const int64_t ended_ns =
          starts[step - 1] + workload_.ops[steps_[device][step - 1]].duration_ns;
      first_ns = std::max(first_ns, ended_ns - CopyNsRoundedUp(made_before, rate));
      made_before += made[step - 1];
      start_ns = ended_ns;
    }
    if (out_until[step] > 0) {
      start_ns = std::max(start_ns, first_ns + CopyNs(out_until[step], rate));
    }
    starts[step] = start_ns;
  }
  return starts;
}

int64_t Bounds::JointTime(const std::vector<int64_t>& demand, GpuIndex device,
                          const StopToken& stop) const {
  StopPoller poll(stop);
  double compute_ns = 0, copy_in_ns = static_cast<double>(copy_in_ns_[device]);
  for (OpId id : steps_[device]) compute_ns += static_cast<double>(workload_.ops[id].duration_ns);
  const auto largest = std::max_element(demand.begin(), demand.end());
  const auto step = static_cast<int32_t>(largest - demand.begin());
  std::vector<std::pair<double, double>> again;  // Time per byte, and bytes.
  for (size_t i = 0; i < gaps_.size(); ++i) {
    if (poll.Tick()) return 0;
    if (gaps_[i].first > step || gaps_[i].last < step) continue;
    if (again_ns_per_byte_[i] == kNeverAgain) continue;
    again.emplace_back(again_ns_per_byte_[i], static_cast<double>(gaps_[i].bytes));
  }
  if (!PolledSort(again.begin(), again.end(), std::less<>(), &poll)) return 0;
  const double copy_ns_per_byte = 1e9 / options_.copy_in_bytes_per_s;
  double left = demand.empty() ? 0 : static_cast<double>(*largest);
  for (const auto& [ns_per_byte, bytes] : again) {
    // So much recomputed that both take as long.
    const double longer_ns = copy_in_ns + left * copy_ns_per_byte - compute_ns;
    if (left <= 0 || longer_ns <= 0) break;
    const double made = std::min({bytes, left, longer_ns / (ns_per_byte + copy_ns_per_byte)});
    compute_ns += made * ns_per_byte;
    left -= made;
  }
  const double copied_ns = copy_in_ns + std::max(0.0, left) * copy_ns_per_byte;
  const double copied_out_ns = static_cast<double>(copy_out_ns_[device]);
  double time_ns = std::max({compute_ns, copied_ns, copied_out_ns});
  // The additions above round: by less than one part in 2^32 for a million gaps.
  if (!again.empty()) time_ns -= std::ldexp(time_ns, -32);
  return time_ns < static_cast<double>(kLongestNs) ? static_cast<int64_t>(time_ns) : kLongestNs;
}

int64_t Bounds::StepTime(const DeviceBounds& bounds, const std::vector<int64_t>& demand,
                         const std::vector<int64_t>& out_until, GpuIndex device,
                         const StopToken& stop) const {
  const int32_t steps = static_cast<int32_t>(demand.size());
  const double rate_out = options_.copy_out_bytes_per_s, rate_in = options_.copy_in_bytes_per_s;
  int64_t compute_ns = 0;
  for (OpId id : steps_[device]) compute_ns += workload_.ops[id].duration_ns;
  int64_t time_ns =
      std::max({compute_ns, copy_out_ns_[device] + CopyNs(bounds.swap_out_bytes, rate_out),
                copy_in_ns_[device] + CopyNs(bounds.swap_in_bytes, rate_in)});
  if (bounds.excess_bytes == 0) return time_ns;
  const std::vector<int64_t> in_from = LeastCover(
      Reversed(gaps_, steps), std::vector<int64_t>(demand.rbegin(), demand.rend()), stop);
  if (!stop.status(kStage).ok()) return time_ns;
  const std::vector<int64_t> starts = EarliestStarts(out_until, device, stop);
  if (!stop.status(kStage).ok()) return time_ns;
  // By step: the bytes of the gaps that it ends.
  std::vector<int64_t> back(steps + 1, 0);
  for (const StepInterval& gap : gaps_) back[gap.last + 1] += gap.bytes;
  StopPoller poll(stop);
  // rest_ns: the minimum time from the start of a step to the end of all. last_ns: the maximum over
  // the later steps u of rest(u), less the time to copy bytes read after u.
  int64_t rest_ns = 0, last_ns = 0, wanted_behind = 0;
  for (int32_t step = steps - 1; step >= 0 && !poll.Tick(); --step) {
    if (step + 1 < steps) {
      last_ns = std::max(last_ns, rest_ns - CopyNsRoundedUp(wanted_behind, rate_in));
      wanted_behind += back[step + 1];
    }
    const int64_t in_bytes = in_from[steps - 1 - step];
    if (in_bytes > 0) rest_ns = std::max(rest_ns, last_ns + CopyNs(in_bytes, rate_in));
    rest_ns += workload_.ops[steps_[device][step]].duration_ns;
    time_ns = std::max(time_ns, starts[step] + rest_ns);
  }
  return time_ns;
}

}  // namespace

std::vector<int64_t> LeastCover(std::vector<StepInterval> intervals,
                                absl::Span<const int64_t> demand, const StopToken& stop) {
  const int32_t steps = static_cast<int32_t>(demand.size());
  StopPoller poll(stop);
  std::vector<int64_t> taken_until(steps, 0);
  const auto begins_before = [](const StepInterval& a, const StepInterval& b) {
    return a.first < b.first;
  };
  if (!PolledSort(intervals.begin(), intervals.end(), begins_before, &poll)) return taken_until;
  const auto ends_before = [](const StepInterval& a, const StepInterval& b) {
    return a.last < b.last;
  };
  std::vector<StepInterval> open;           // A heap: its front ends last.
  std::vector<int64_t> ends(steps + 1, 0);  // Bytes taken from intervals that end before the step.
  int64_t taken = 0, covered = 0;
  size_t next = 0;
  for (int32_t step = 0; step < steps; ++step) {
    for (; next < intervals.size() && intervals[next].first <= step; ++next) {
      if (poll.Tick()) return taken_until;
      open.push_back(intervals[next]);
      std::push_heap(open.begin(), open.end(), ends_before);
    }
    covered -= ends[step];
    if (poll.Tick()) return taken_until;
    while (covered < demand[step] && !open.empty()) {
      if (poll.Tick()) return taken_until;
      StepInterval& best = open.front();
      if (best.last < step) break;  // All others have ended, too.
      const int64_t bytes = std::min(best.bytes, demand[step] - covered);
      taken += bytes;
      covered += bytes;
      ends[best.last + 1] += bytes;
      best.bytes -= bytes;
      if (best.bytes == 0) {
        std::pop_heap(open.begin(), open.end(), ends_before);
        open.pop_back();
      }
    }
    taken_until[step] = taken;
  }
  return taken_until;
}

absl::StatusOr<std::vector<DeviceBounds>> ComputeLowerBounds(const Workload& workload,
                                                             absl::Span<const OpId> order,
                                                             const LowerBoundOptions& options,
                                                             const StopToken& stop) {
  auto prepared = PreparedWorkload::Prepare(workload, /*launch_ns=*/0, stop);
  if (!prepared.ok()) return prepared.status();
  return ComputeLowerBounds(workload, *prepared, order, options, stop);
}

absl::StatusOr<std::vector<DeviceBounds>> ComputeLowerBounds(const Workload& workload,
                                                             const PreparedWorkload& prepared,
                                                             absl::Span<const OpId> order,
                                                             const LowerBoundOptions& options,
                                                             const StopToken& stop) {
  Bounds bounds(workload, prepared, options);
  if (absl::Status status = bounds.Prepare(order, stop); !status.ok()) return status;
  std::vector<DeviceBounds> result;
  for (GpuIndex device(0); device < static_cast<int32_t>(workload.devices.size()); ++device) {
    auto of_device = bounds.OfDevice(device, stop);
    if (!of_device.ok()) return of_device.status();
    result.push_back(*of_device);
  }
  return result;
}

}  // namespace spillway::core
