// What both modes of the simulator, and the lower bounds, need to know of a workload before it is
// played: checked, with edges the other way round and sizes as they count.
//
// Thread safety: immutable after Prepare.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_PREPARED_WORKLOAD_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_PREPARED_WORKLOAD_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/simulate/workload.h"

namespace spillway::core {

struct PreparedWorkload {
  // `workload` must outlive the result. Errors as Simulate's.
  static absl::StatusOr<PreparedWorkload> Prepare(const Workload& workload, int64_t launch_ns,
                                                  const StopToken& stop);

  const Workload* workload = nullptr;
  // By buffer: the bytes that count, 0 for those that do not; and who holds it: its readers, and
  // one more for its writer. Resident ones are never let go of: one more.
  std::vector<int64_t> counted_bytes;
  std::vector<int32_t> holders;
  std::vector<int64_t> resident_bytes;  // By device.

  // Who waits for `op`, in order of ids in either list: those for which its launch is enough when
  // kernels are launched ahead, and those that wait until it is done.
  absl::Span<const OpId> after_launch(OpId op) const {
    return absl::MakeSpan(waiting_).subspan(begin_[op], middle_[op] - begin_[op]);
  }
  absl::Span<const OpId> after_end(OpId op) const {
    return absl::MakeSpan(waiting_).subspan(middle_[op], begin_[op + 1] - middle_[op]);
  }

 private:
  absl::Status CheckAndCount(int64_t launch_ns, const StopToken& stop);
  absl::Status Reverse(const StopToken& stop);

  std::vector<int32_t> begin_, middle_;
  std::vector<OpId> waiting_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_PREPARED_WORKLOAD_H_
