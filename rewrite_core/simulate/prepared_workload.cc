#include "rewrite_core/simulate/prepared_workload.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/simulate/simulator.h"

namespace spillway::core {
namespace {

// All bytes together, and all times, stay below this, so no sum of a few of them overflows.
constexpr int64_t kMaxInAll = std::numeric_limits<int64_t>::max() / 4;

absl::Status Broken(absl::string_view what, int32_t id, absl::string_view rule) {
  return Error(
      absl::StatusCode::kInternal, v1::ERROR_REASON_INTERNAL,
      absl::StrCat("The workload's ", what, " ", id, " ", rule, "; this is an error in Spillway."));
}

absl::Status TooMuch(absl::string_view what) {
  return InvalidError(
      v1::ERROR_REASON_LIMIT_EXCEEDED,
      absl::StrCat("the step's ", what, " add up to more than ", kMaxInAll,
                   "; check the batch size, the feed shapes and the hardware's numbers"));
}

// Adds `more`, at least 0; returns false if the sum gets too large.
bool AddTo(int64_t* sum, int64_t more) {
  if (more > kMaxInAll - *sum) return false;
  *sum += more;
  return true;
}

// A list counts by its items: an operation may read, write or wait for very many.
template <typename List>
int64_t ListSize(const List& list) {
  return static_cast<int64_t>(list.size());
}

// Whether `op` may read a buffer of device `where`.
bool MayRead(const WorkloadOp& op, Place where) {
  if (op.kind == OpKind::kCompute) return where == op.device || where == kHostPlace;
  return where == (op.kind == OpKind::kCopyOut ? op.device : kHostPlace);
}
bool MayWrite(const WorkloadOp& op, Place where) {
  if (op.kind == OpKind::kCompute) return where == op.device || where == kHostPlace;
  return where == (op.kind == OpKind::kCopyIn ? op.device : kHostPlace);
}

}  // namespace

absl::StatusOr<PreparedWorkload> PreparedWorkload::Prepare(const Workload& workload,
                                                           int64_t launch_ns, const StopToken& stop,
                                                           std::vector<OpId> layout) {
  PreparedWorkload prepared;
  prepared.launch_ns = launch_ns;
  if (!layout.empty()) {
    prepared.numbers.resize(layout.size());
    for (size_t i = 0; i < layout.size(); ++i) prepared.numbers[layout[i]] = static_cast<OpId>(i);
    prepared.rank.assign(layout.begin(), layout.end());
    prepared.ids = std::move(layout);
  }
  StopPoller poll(stop);
  const int32_t num_ops = static_cast<int32_t>(workload.ops.size());
  if (workload.waits_for.size() != num_ops || workload.reads.size() != num_ops ||
      workload.writes.size() != num_ops || workload.reuses.size() != num_ops) {
    return Broken("count of operations", num_ops, "is not that of its lists");
  }
  if (absl::Status s = prepared.AddBuffers(workload, &poll, stop); !s.ok()) return s;
  if (absl::Status s = prepared.AddOps(workload, &poll, stop); !s.ok()) return s;
  if (absl::Status s = prepared.Reverse(workload, &poll, stop); !s.ok()) return s;
  return prepared;
}

absl::Status PreparedWorkload::CheckTimes(int32_t copy_percent) const {
  // As if all were copies.
  if (copy_percent > 100 && time_in_all > kMaxInAll / copy_percent * 100) {
    return TooMuch("times in ns");
  }
  return absl::OkStatus();
}

absl::Status PreparedWorkload::CountOp(int64_t duration_ns, int64_t workspace_bytes) {
  if (!AddTo(&time_in_all, duration_ns) || !AddTo(&time_in_all, launch_ns)) {
    return TooMuch("times in ns");
  }
  return CountBuffer(workspace_bytes);
}

absl::Status PreparedWorkload::CountBuffer(int64_t bytes) {
  // Adds one allocation unit for rounding up.
  if (!AddTo(&bytes_in_all, bytes) || !AddTo(&bytes_in_all, kAllocationBytes)) {
    return TooMuch("bytes");
  }
  return absl::OkStatus();
}

absl::Status PreparedWorkload::AddBuffers(const Workload& workload, StopPoller* poll,
                                          const StopToken& stop) {
  num_devices = static_cast<int32_t>(workload.devices.size());
  const int32_t num_buffers = static_cast<int32_t>(workload.buffers.size());
  buffers.resize(num_buffers);
  holders.assign(num_buffers, 0);
  resident_bytes.assign(num_devices, 0);
  for (BufferId id(0); id < num_buffers; ++id) {
    if (poll->Tick()) return stop.status("simulate");
    const WorkloadBuffer& buffer = workload.buffers[id];
    if (buffer.device < kHostPlace || buffer.device >= num_devices || buffer.bytes < 0) {
      return Broken("buffer", id, "has no device or no size");
    }
    if (absl::Status s = CountBuffer(buffer.bytes); !s.ok()) return s;
    buffers[id].device = buffer.device;
    buffers[id].resident = buffer.resident;
    buffers[id].copied = buffer.copied;
    buffers[id].exact_bytes = buffer.bytes;
    if (buffer.device < 0) continue;  // Counts if a copy or a host operation writes it.
    buffers[id].bytes = AllocatedBytes(buffer.bytes);
    if (!buffer.resident || buffer.bytes == 0) continue;
    residents.push_back(id);
    resident_bytes[buffer.device] += buffers[id].bytes;
  }
  return absl::OkStatus();
}

absl::Status PreparedWorkload::AddOps(const Workload& workload, StopPoller* poll,
                                      const StopToken& stop) {
  const int32_t num_ops = static_cast<int32_t>(workload.ops.size());
  ops.resize(num_ops);
  kernels.assign(num_devices, 0);
  writes.reserve(workload.writes.num_items());
  holds.reserve(workload.reads.num_items() + workload.writes.num_items());
  std::vector<bool> has_writer(buffers.size(), false);
  // First the writes, which determine the host's counted buffers; then the holders.
  for (OpId number(0); number < num_ops; ++number) {
    const OpId id = IdOf(number);
    if (poll->Tick(1 + ListSize(workload.reads[id]) + ListSize(workload.writes[id]))) {
      return stop.status("simulate");
    }
    const WorkloadOp& from = workload.ops[id];
    const bool on_host = from.kind == OpKind::kHost;
    if (on_host ? from.device != kHostPlace : from.device < 0 || from.device >= num_devices) {
      return Broken("operation", id, "has the wrong device");
    }
    if (from.duration_ns < 0 || from.workspace_bytes < 0 ||
        (from.workspace_bytes > 0 && from.kind != OpKind::kCompute)) {
      return Broken("operation", id, "has a wrong duration or workspace");
    }
    if (absl::Status s = CountOp(from.duration_ns, from.workspace_bytes); !s.ok()) return s;
    for (BufferId read : workload.reads[id]) {
      if (!MayRead(from, buffers[read].device)) return Broken("operation", id, "reads from afar");
    }
    for (BufferId written : workload.writes[id]) {
      Buffer& buffer = buffers[written];
      if (!MayWrite(from, buffer.device)) return Broken("operation", id, "writes afar");
      if (buffer.resident || has_writer[written]) {
        return Broken("operation", id, "writes a buffer that is there already");
      }
      has_writer[written] = true;
      if (buffer.device < 0 && from.kind != OpKind::kCompute) {
        buffer.bytes = AllocatedBytes(workload.buffers[written].bytes);
      }
    }
    const bool is_copy = from.kind == OpKind::kCopyOut || from.kind == OpKind::kCopyIn;
    if (is_copy && (workload.reads[id].size() != 1 || workload.writes[id].size() != 1)) {
      return Broken("copy", id, "has not one buffer on either side");
    }
    const size_t reuses = workload.reuses[id].size();
    if (reuses != 0 && (is_copy || reuses != workload.writes[id].size())) {
      return Broken("operation", id, "reuses memory for outputs that it does not have");
    }
    Op& op = ops[number];
    op.kind_bits = static_cast<uint32_t>(from.kind);
    op.device_bits = from.device;
    op.on_host_engine = from.on_host_engine;
    op.duration_ns = from.duration_ns;
    op.node = from.node;
    op.bytes = is_copy ? workload.buffers[workload.reads[id][0]].bytes
                       : AllocatedBytes(from.workspace_bytes);
    if (from.kind == OpKind::kCompute && from.duration_ns > 0) ++kernels[from.device];
    const size_t place = static_cast<size_t>(id);
    if (place >= workload.wanted_bytes.size() || workload.wanted_bytes[place] == 0) continue;
    wanted_bytes.resize(number + 1, 0);
    wanted_bytes[number] = workload.wanted_bytes[place];
  }
  for (OpId number(0); number < num_ops; ++number) {
    const OpId id = IdOf(number);
    if (poll->Tick(1 + ListSize(workload.reads[id]) + ListSize(workload.writes[id]))) {
      return stop.status("simulate");
    }
    SetLists(workload.reads[id], workload.writes[id], workload.reuses[id], &ops[number]);
    for (BufferId held : Holds(ops[number])) ++holders[held];
  }
  return absl::OkStatus();
}

void PreparedWorkload::SetLists(absl::Span<const BufferId> reads,
                                absl::Span<const BufferId> written,
                                absl::Span<const BufferId> reuses, Op* op) {
  op->need_bytes = op->kind() == OpKind::kCompute ? op->bytes : 0;
  op->writes = static_cast<int32_t>(writes.size());
  op->holds = static_cast<int32_t>(holds.size());
  op->may_reuse = 0;
  for (BufferId read : reads) {
    if (buffers[read].bytes > 0 && !buffers[read].resident) holds.push_back(read);
  }
  for (size_t i = 0; i < written.size(); ++i) {
    const Buffer& output = buffers[written[i]];
    if (output.bytes == 0) continue;
    Write write{output.bytes, written[i], i < reuses.size() ? reuses[i] : kNoBufferId};
    if (write.reuse >= 0) {
      const Buffer& input = buffers[write.reuse];
      if (input.resident || input.device != output.device ||
          input.exact_bytes != output.exact_bytes) {
        write.reuse = kNoBufferId;
      }
    }
    if (write.reuse >= 0) op->may_reuse = 1;
    writes.push_back(write);
    op->need_bytes += write.bytes;
    holds.push_back(write.buffer);
  }
  op->writes_end = static_cast<int32_t>(writes.size());
  op->holds_end = static_cast<int32_t>(holds.size());
}

absl::Status PreparedWorkload::Reverse(const Workload& workload, StopPoller* poll,
                                       const StopToken& stop) {
  const int32_t num_ops = static_cast<int32_t>(ops.size());
  waits.resize(num_ops);
  after.resize(workload.waits_for.num_items());
  // Counting sort: first count each kind, then move each to its place.
  const auto place_of = [this](OpId before, const Op& op) {
    Op& by = ops[before];
    switch (HowFollows(by.kind(), by.device(), op.kind(), op.device())) {
      case Follows::kLaunchToLaunch:
        return &by.copies;
      case Follows::kLaunchToCopyOut:
        return &by.ended;
      case Follows::kEnd:
        break;
    }
    return &by.after_end;
  };
  for (OpId id(0); id < num_ops; ++id) {
    const auto before = workload.waits_for[IdOf(id)];
    if (poll->Tick(1 + ListSize(before))) return stop.status("simulate");
    waits[id] = static_cast<int32_t>(before.size());
    if (before.empty()) first.push_back(id);
    for (OpId other : before) ++*place_of(NumberOf(other), ops[id]);
  }
  // Each end becomes the beginning of its part, which the second pass advances.
  int32_t at = 0;
  for (OpId id(0); id < num_ops; ++id) {
    Op& op = ops[id];
    op.after = at;
    for (int32_t* end : {&op.copies, &op.ended, &op.after_end}) at += std::exchange(*end, at);
  }
  for (OpId id(0); id < num_ops; ++id) {
    const auto before = workload.waits_for[IdOf(id)];
    if (poll->Tick(1 + ListSize(before))) return stop.status("simulate");
    for (OpId other : before) {
      after[(*place_of(NumberOf(other), ops[id]))++] = id;
    }
  }
  return absl::OkStatus();
}

}  // namespace spillway::core
