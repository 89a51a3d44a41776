#include "rewrite_core/simulate/prepared_workload.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/simulate/simulator.h"

namespace spillway::core {
namespace {

// All bytes together, and all times, stay below: then no sum of a few of them overflows.
constexpr int64_t kMostInAll = std::numeric_limits<int64_t>::max() / 4;

absl::Status Broken(absl::string_view what, int32_t id, absl::string_view rule) {
  return Error(
      absl::StatusCode::kInternal, v1::ERROR_REASON_INTERNAL,
      absl::StrCat("The workload's ", what, " ", id, " ", rule, "; this is an error in Spillway."));
}

absl::Status TooMuch(absl::string_view what) {
  return InvalidError(
      v1::ERROR_REASON_LIMIT_EXCEEDED,
      absl::StrCat("the step's ", what, " add up to more than ", kMostInAll,
                   "; check the batch size, the feed shapes and the hardware's numbers"));
}

// Adds `more`, at least 0; false if the sum gets too large.
bool AddTo(int64_t* sum, int64_t more) {
  if (more > kMostInAll - *sum) return false;
  *sum += more;
  return true;
}

// Whether an operation of `kind` on `device` may touch a buffer of device `where`.
bool MayRead(const WorkloadOp& op, int32_t where) {
  if (op.kind == OpKind::kCompute) return where == op.device || where == -1;
  return where == (op.kind == OpKind::kCopyOut ? op.device : -1);
}
bool MayWrite(const WorkloadOp& op, int32_t where) {
  if (op.kind == OpKind::kCompute) return where == op.device || where == -1;
  return where == (op.kind == OpKind::kCopyIn ? op.device : -1);
}

// Whether `next`, which waits for `op`, goes on when `op` is launched.
bool FollowsLaunch(const WorkloadOp& op, const WorkloadOp& next) {
  return op.kind == OpKind::kCompute && next.device == op.device &&
         (next.kind == OpKind::kCompute || next.kind == OpKind::kCopyOut);
}

}  // namespace

absl::StatusOr<PreparedWorkload> PreparedWorkload::Prepare(const Workload& workload,
                                                           int64_t launch_ns,
                                                           const StopToken& stop) {
  PreparedWorkload prepared;
  prepared.workload = &workload;
  if (absl::Status status = prepared.CheckAndCount(launch_ns, stop); !status.ok()) return status;
  if (absl::Status status = prepared.Reverse(stop); !status.ok()) return status;
  return prepared;
}

absl::Status PreparedWorkload::CheckAndCount(int64_t launch_ns, const StopToken& stop) {
  const auto& ops = workload->ops;
  const auto& buffers = workload->buffers;
  const int32_t num_ops = static_cast<int32_t>(ops.size());
  const int32_t num_buffers = static_cast<int32_t>(buffers.size());
  const int32_t num_devices = static_cast<int32_t>(workload->devices.size());
  if (workload->waits_for.size() != num_ops || workload->reads.size() != num_ops ||
      workload->writes.size() != num_ops || workload->reuses.size() != num_ops) {
    return Broken("count of operations", num_ops, "is not that of its lists");
  }
  StopPoller poll(stop);
  counted_bytes.assign(num_buffers, 0);
  holders.assign(num_buffers, 0);
  resident_bytes.assign(num_devices, 0);
  int64_t bytes_in_all = 0;
  const auto count = [&](int64_t bytes) {
    return AddTo(&bytes_in_all, bytes) && AddTo(&bytes_in_all, kAllocationBytes);
  };
  std::vector<bool> has_writer(num_buffers, false);
  for (BufferId id = 0; id < num_buffers; ++id) {
    if (poll.Tick()) return stop.status("simulate");
    const WorkloadBuffer& buffer = buffers[id];
    if (buffer.device < -1 || buffer.device >= num_devices || buffer.bytes < 0) {
      return Broken("buffer", id, "has no device or no size");
    }
    if (!count(buffer.bytes)) return TooMuch("bytes");
    if (buffer.device >= 0) counted_bytes[id] = AllocatedBytes(buffer.bytes);
    if (!buffer.resident) continue;
    ++holders[id];
    if (buffer.device >= 0) resident_bytes[buffer.device] += counted_bytes[id];
  }
  int64_t time_in_all = 0;
  for (OpId id = 0; id < num_ops; ++id) {
    if (poll.Tick()) return stop.status("simulate");
    const WorkloadOp& op = ops[id];
    const bool on_host = op.kind == OpKind::kHost;
    if (on_host ? op.device != -1 : op.device < 0 || op.device >= num_devices) {
      return Broken("operation", id, "has the wrong device");
    }
    if (op.duration_ns < 0 || op.workspace_bytes < 0 ||
        (op.workspace_bytes > 0 && op.kind != OpKind::kCompute)) {
      return Broken("operation", id, "has a wrong duration or workspace");
    }
    if (!AddTo(&time_in_all, op.duration_ns) || !AddTo(&time_in_all, launch_ns)) {
      return TooMuch("times in ns");
    }
    if (!count(op.workspace_bytes)) return TooMuch("bytes");
    for (BufferId read : workload->reads[id]) {
      ++holders[read];
      if (!MayRead(op, buffers[read].device)) return Broken("operation", id, "reads from afar");
    }
    for (BufferId written : workload->writes[id]) {
      const WorkloadBuffer& buffer = buffers[written];
      ++holders[written];
      if (!MayWrite(op, buffer.device)) return Broken("operation", id, "writes afar");
      if (buffer.resident || has_writer[written]) {
        return Broken("operation", id, "writes a buffer that is there already");
      }
      has_writer[written] = true;
      if (buffer.device < 0 && op.kind != OpKind::kCompute) {
        counted_bytes[written] = AllocatedBytes(buffer.bytes);
      }
    }
    const bool is_copy = op.kind == OpKind::kCopyOut || op.kind == OpKind::kCopyIn;
    if (is_copy && (workload->reads[id].size() != 1 || workload->writes[id].size() != 1)) {
      return Broken("copy", id, "has not one buffer on either side");
    }
    const size_t reuses = workload->reuses[id].size();
    if (reuses != 0 && (is_copy || reuses != workload->writes[id].size())) {
      return Broken("operation", id, "takes over memory for outputs that it does not have");
    }
  }
  return absl::OkStatus();
}

absl::Status PreparedWorkload::Reverse(const StopToken& stop) {
  const auto& ops = workload->ops;
  const int32_t num_ops = static_cast<int32_t>(ops.size());
  StopPoller poll(stop);
  // Counting sort: first how many of either list, then each to its place.
  begin_.assign(num_ops + 1, 0);
  middle_.assign(num_ops, 0);
  for (OpId id = 0; id < num_ops; ++id) {
    if (poll.Tick()) return stop.status("simulate");
    for (OpId before : workload->waits_for[id]) {
      ++begin_[before + 1];
      middle_[before] += FollowsLaunch(ops[before], ops[id]);
    }
  }
  for (OpId id = 0; id < num_ops; ++id) {
    begin_[id + 1] += begin_[id];
    middle_[id] += begin_[id];
  }
  waiting_.resize(begin_[num_ops]);
  std::vector<int32_t> at_launch(begin_.begin(), begin_.end() - 1), at_end = middle_;
  for (OpId id = 0; id < num_ops; ++id) {
    if (poll.Tick()) return stop.status("simulate");
    for (OpId before : workload->waits_for[id]) {
      auto& at = FollowsLaunch(ops[before], ops[id]) ? at_launch : at_end;
      waiting_[at[before]++] = id;
    }
  }
  return absl::OkStatus();
}

}  // namespace spillway::core
