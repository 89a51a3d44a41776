// PreparedWorkload: a workload in the form that the simulator runs. It is checked and held in a few
// compact arrays, with edges reversed and sizes rounded as they count. A plan is patched into it in
// place (plan_patch.h), so each list of an operation is a range of a pool, and a changed list is
// appended to the pool.
//
// Thread safety: a plain value.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_PREPARED_WORKLOAD_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_PREPARED_WORKLOAD_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/simulate/workload.h"

namespace spillway::core {

struct PreparedWorkload {
  // A buffer that an operation allocates. Only those that count are listed.
  struct Write {
    int64_t bytes = 0;
    BufferId buffer = kNoBufferId;
    BufferId reuse = kNoBufferId;  // The buffer that it may reuse in place, of the same size.
  };
  // One cache line.
  struct Op {
    int64_t duration_ns = 0;
    int64_t bytes = 0;       // kCompute: the rounded workspace; copies: the bytes copied.
    int64_t need_bytes = 0;  // The workspace and everything that it writes.
    // The range in `after` of the operations that wait for it: from `after` on, kernels that,
    // launched ahead, need only its launch; from `copies` on, copies out of that kind; from `ended`
    // on, those that wait until it is done.
    int32_t after = 0, copies = 0, ended = 0, after_end = 0;
    int32_t writes = 0, writes_end = 0;  // In `writes`.
    int32_t holds = 0, holds_end = 0;    // In `holds`: the buffers it uses, then releases.
    NodeId node = kNoNode;
    int32_t device_bits : 28;
    uint32_t kind_bits : 2;
    uint32_t on_host_engine : 1;
    uint32_t may_reuse : 1;  // At least one of its writes may reuse a buffer.

    Op() : device_bits(0), kind_bits(0), on_host_engine(0), may_reuse(0) {}
    Place device() const { return Place(device_bits); }
    OpKind kind() const { return static_cast<OpKind>(kind_bits); }
    // The device whose memory it writes, or kHostPlace.
    Place memory() const { return kind() == OpKind::kCopyOut ? kHostPlace : device(); }
  };
  struct Buffer {
    int64_t bytes = 0;        // Rounded; 0 if the buffer does not count.
    int64_t exact_bytes = 0;  // Not rounded.
    Place device = kHostPlace;
    bool resident = false;
    bool copied = false;
  };

  // Prepares `workload`. `layout` has all operations in about the order in which they run; they are
  // renumbered in that order, for locality. Empty: the numbers stay. Errors: INTERNAL if the
  // workload breaks a rule of workload.h; INVALID_ARGUMENT if its sizes or times add up to more
  // than int64 holds; those of `stop`.
  static absl::StatusOr<PreparedWorkload> Prepare(const Workload& workload, int64_t launch_ns,
                                                  const StopToken& stop,
                                                  std::vector<OpId> layout = {});

  // Convert between the workload's id of an operation and its number here.
  OpId IdOf(OpId op) const { return op < static_cast<int32_t>(ids.size()) ? ids[op] : op; }
  OpId NumberOf(OpId id) const {
    return id < static_cast<int32_t>(numbers.size()) ? numbers[id] : id;
  }

  // INVALID_ARGUMENT, as above, if copies take this percentage of their time.
  absl::Status CheckTimes(int32_t copy_percent) const;
  // Adds an operation, or a buffer, to the totals.
  absl::Status CountOp(int64_t duration_ns, int64_t workspace_bytes);
  absl::Status CountBuffer(int64_t bytes);
  // Appends the lists of `op` to the pools: the buffers that it allocates, with their candidates
  // for reuse, and those that it holds.
  void SetLists(absl::Span<const BufferId> reads, absl::Span<const BufferId> written,
                absl::Span<const BufferId> reuses, Op* op);

  absl::Span<const OpId> ToLaunch(const Op& op) const { return Part(after, op.after, op.copies); }
  absl::Span<const OpId> ToCopyOut(const Op& op) const { return Part(after, op.copies, op.ended); }
  absl::Span<const OpId> Ended(const Op& op) const { return Part(after, op.ended, op.after_end); }
  absl::Span<const OpId> AllAfter(const Op& op) const {
    return Part(after, op.after, op.after_end);
  }
  absl::Span<const Write> Writes(const Op& op) const {
    return Part(writes, op.writes, op.writes_end);
  }
  absl::Span<const BufferId> Holds(const Op& op) const {
    return Part(holds, op.holds, op.holds_end);
  }

  int32_t num_devices = 0;
  int64_t launch_ns = 0;
  std::vector<OpId> ids, numbers;  // Empty: the same.
  std::vector<Op> ops;
  std::vector<int32_t> waits;  // By operation: the number of others it waits for.
  // By operation: the workspace that it takes if it is free. Those beyond the list take none.
  std::vector<int64_t> wanted_bytes;
  // By operation: the order among those that become ready at one moment. Empty: by number.
  std::vector<int64_t> rank;
  std::vector<OpId> first;  // Operations that wait for none.
  std::vector<Buffer> buffers;
  std::vector<BufferId> residents;
  std::vector<int32_t> holders;  // By buffer: its readers and its writer. Not for resident ones.
  std::vector<int64_t> resident_bytes;  // By device.
  std::vector<int32_t> kernels;         // By device: operations that take time.
  // The pools.
  std::vector<OpId> after;
  std::vector<Write> writes;
  std::vector<BufferId> holds;
  // Totals over all operations and buffers.
  int64_t bytes_in_all = 0;
  int64_t time_in_all = 0;

 private:
  template <typename T>
  static absl::Span<const T> Part(const std::vector<T>& pool, int32_t begin, int32_t end) {
    return absl::Span<const T>(pool.data() + begin, static_cast<size_t>(end - begin));
  }
  absl::Status AddBuffers(const Workload& workload, StopPoller* poll, const StopToken& stop);
  absl::Status AddOps(const Workload& workload, StopPoller* poll, const StopToken& stop);
  absl::Status Reverse(const Workload& workload, StopPoller* poll, const StopToken& stop);
};

// The event that the second of two dependent operations waits for.
enum class Follows : uint8_t { kLaunchToLaunch, kLaunchToCopyOut, kEnd };
inline Follows HowFollows(OpKind kind, Place device, OpKind next_kind, Place next_device) {
  if (kind != OpKind::kCompute || device != next_device) return Follows::kEnd;
  if (next_kind == OpKind::kCompute) return Follows::kLaunchToLaunch;
  return next_kind == OpKind::kCopyOut ? Follows::kLaunchToCopyOut : Follows::kEnd;
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_PREPARED_WORKLOAD_H_
