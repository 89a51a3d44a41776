// PreparedPatch: changes of a prepared workload, and the way back. Lists that change are appended
// to its pools; what is replaced is kept. Operations are named by the workload's ids; new ones come
// behind.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_PREPARED_PATCH_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_PREPARED_PATCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/simulate/prepared_workload.h"
#include "rewrite_core/simulate/workload.h"

namespace spillway::core {

class PreparedPatch {
 public:
  // `prepared` must outlive the patch.
  explicit PreparedPatch(PreparedWorkload* prepared);

  // Makes room for so many more, and no more.
  void Reserve(size_t ops, size_t buffers);
  // A buffer that is written, and that nobody reads as yet. Errors: those of Prepare.
  absl::Status AddBuffer(const WorkloadBuffer& buffer);
  absl::Status AddOp(const WorkloadOp& op, int64_t rank);
  void AddHolders(BufferId buffer, int32_t by) { prepared_.holders[buffer] += by; }
  // As PreparedWorkload::SetLists. REQUIRES: all buffers are there.
  void SetLists(OpId op, absl::Span<const BufferId> reads, absl::Span<const BufferId> writes,
                absl::Span<const BufferId> reuses);
  // Edges count once FinishEdges is called; SetWaits says how many lead to an operation.
  void AddEdge(OpId from, OpId to);
  void RemoveEdge(OpId from, OpId to);
  void SetWaits(OpId op, int32_t waits);
  bool FinishEdges(StopPoller* poll);  // False: stopped.

  // As it was before the changes, but for what AddHolders did.
  void Undo();

 private:
  // By numbers, as prepared_ has them.
  struct Change {
    OpId from, to;
    bool is_new;
  };
  struct Saved {
    OpId number;
    PreparedWorkload::Op op;
    int32_t waits;
  };

  void Save(OpId number);
  // All changes of those who wait for one operation.
  void ChangeAfter(absl::Span<const Change> changes);

  PreparedWorkload& prepared_;
  // As before.
  const int32_t num_ops_;
  const size_t num_buffers_, after_size_, writes_size_, holds_size_;
  const int64_t bytes_in_all_, time_in_all_;
  const std::vector<OpId> first_;

  std::vector<Change> changes_;
  std::vector<Saved> saved_;
  std::vector<char> is_saved_;  // By number.
  std::vector<OpId> became_first_;
  bool first_changed_ = false;
  int64_t mark_ = 0;              // Grows from change to change.
  std::vector<int64_t> removed_;  // By number: who no longer waits, by its mark.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_PREPARED_PATCH_H_
