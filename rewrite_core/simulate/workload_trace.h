// What making a step's workload leaves behind for who patches plans into it (plan_patch.h).
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

// Copies are numbered by what they copy: this order.
struct CopyKey {
  int32_t tensor;  // NodeLinker::Index.
  Place want;      // Where it goes; through host memory perhaps.
  int32_t step;    // Of two copies in a row which one.

  friend bool operator<(const CopyKey& a, const CopyKey& b) {
    return std::tie(a.tensor, a.want, a.step) < std::tie(b.tensor, b.want, b.step);
  }
  friend bool operator==(const CopyKey& a, const CopyKey& b) {
    return std::tie(a.tensor, a.want, a.step) == std::tie(b.tensor, b.want, b.step);
  }
};

struct WorkloadTrace {
  // An output that may reuse, in place, the memory of one of some inputs.
  struct Reuse {
    OpId op;
    BufferId output;
    int32_t begin, end;  // In candidates.
  };

  std::vector<OpId> op_of;          // By node; kNoOp: it does not run.
  std::vector<BufferId> buffer_of;  // By tensor (Buffers::index).
  std::vector<CopyKey> copies;      // Of the last operations, in their order.
  std::vector<int32_t> copy_uses;   // By copy: how many inputs of nodes need it.
  std::vector<int32_t> readers;     // By buffer.
  std::vector<char> is_larger;      // By buffer: an alias is larger than the first.
  std::vector<char> travels;        // By buffer: a copy reads or writes it.
  std::vector<Reuse> reuses;        // Those of one operation side by side.
  std::vector<BufferId> candidates;
};

// The candidate whose memory `output` may reuse in place: of those that are as large and in
// the same memory the one with the fewest readers: the likeliest to be nobody else's at that time.
// `buffer_of(id)` has bytes, device, resident.
template <typename BufferOf>
BufferId ChooseReuse(BufferId output, absl::Span<const BufferId> candidates,
                     const std::vector<int32_t>& readers, BufferOf buffer_of) {
  BufferId best = kNoBufferId;
  const auto& written = buffer_of(output);
  for (BufferId candidate : candidates) {
    if (candidate < 0) continue;  // In host memory, and not kept.
    const auto& buffer = buffer_of(candidate);
    if (buffer.resident || buffer.device != written.device || buffer.bytes != written.bytes ||
        buffer.bytes <= 0) {
      continue;
    }
    if (best < 0 || readers[candidate] < readers[best]) best = candidate;
  }
  return best;
}

// As BuildWorkload without a plan, but for buffers in host memory that nobody copies: they are
// kept, of no bytes, and nobody reads or writes them.
absl::StatusOr<Workload> BuildTracedWorkload(const StepFacts& facts, WorkloadNotes* notes,
                                             WorkloadTrace* trace, const StopToken& stop);

// The operations in about the order in which they run, for PreparedWorkload::Prepare.
std::vector<OpId> LayoutOf(const StepFacts& facts, const Workload& workload,
                           const WorkloadTrace& trace);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_WORKLOAD_TRACE_H_
