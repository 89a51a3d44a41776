// WorkloadTrace: recorded while a step's workload is built, for patching plans into it
// (plan_patch.h).
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_WORKLOAD_TRACE_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_WORKLOAD_TRACE_H_

#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/simulate/workload.h"
#include "rewrite_core/simulate/workload_builder.h"

namespace spillway::core {

// Copies are numbered in order of these keys.
struct CopyKey {
  int32_t tensor;   // NodeLinker::Index.
  TensorForm want;  // The target, maybe through host memory.
  int32_t step;     // Which of two copies in a row.

  friend bool operator<(const CopyKey& a, const CopyKey& b) {
    return std::tie(a.tensor, a.want, a.step) < std::tie(b.tensor, b.want, b.step);
  }
  friend bool operator==(const CopyKey& a, const CopyKey& b) {
    return std::tie(a.tensor, a.want, a.step) == std::tie(b.tensor, b.want, b.step);
  }
};

struct WorkloadTrace {
  // An output that may reuse one of several inputs in place.
  struct Reuse {
    OpId op;
    BufferId output;
    int32_t begin, end;  // In candidates.
  };

  std::vector<OpId> op_of;          // By node; kNoOp: it does not run.
  std::vector<BufferId> buffer_of;  // By tensor (Buffers::index).
  std::vector<CopyKey> copies;      // The keys of the last operations, in order.
  std::vector<int32_t> copy_uses;   // By copy: how many node inputs need it.
  std::vector<int32_t> readers;     // By buffer.
  std::vector<char> is_larger;      // By buffer: an alias is larger than the first.
  std::vector<char> travels;        // By buffer: a copy reads or writes it.
  std::vector<Reuse> reuses;        // Those of one operation are adjacent.
  std::vector<BufferId> candidates;
};

// Returns the candidate whose memory `output` may reuse in place, or -1: among those of the same
// size in the same memory, the one with the fewest readers, as it most likely has no other reader
// left then. `buffer_of(id)` has bytes, device, resident.
template <typename BufferOf>
BufferId ChooseReuse(BufferId output, absl::Span<const BufferId> candidates,
                     const std::vector<int32_t>& readers, BufferOf buffer_of) {
  BufferId best = kNoBufferId;
  const auto& written = buffer_of(output);
  for (BufferId candidate : candidates) {
    if (candidate < 0) continue;  // In host memory, not kept.
    const auto& buffer = buffer_of(candidate);
    if (buffer.resident || buffer.device != written.device || buffer.bytes != written.bytes ||
        buffer.bytes <= 0) {
      continue;
    }
    if (best < 0 || readers[candidate] < readers[best]) best = candidate;
  }
  return best;
}

// Like BuildWorkload without a plan, except that buffers in host memory that are not copied are
// kept, with 0 bytes, and without readers or a writer.
absl::StatusOr<Workload> BuildTracedWorkload(const StepFacts& facts, WorkloadNotes* notes,
                                             WorkloadTrace* trace, const StopToken& stop);

// Returns the operations in about the order in which they run, for PreparedWorkload::Prepare.
std::vector<OpId> LayoutOf(const StepFacts& facts, const Workload& workload,
                           const WorkloadTrace& trace);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_WORKLOAD_TRACE_H_
