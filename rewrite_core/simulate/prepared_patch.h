// PreparedPatch: changes to a prepared workload, and their undoing. Lists that change are appended
// to its pools; replaced values are saved. Operations have the workload's ids; new ones follow.
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

  // Reserves space for exactly this many more.
  void Reserve(size_t ops, size_t buffers);
  // Adds a buffer that is written and has no reader yet. Errors: those of Prepare.
  absl::Status AddBuffer(const WorkloadBuffer& buffer);
  absl::Status AddOp(const WorkloadOp& op, int64_t rank);
  void AddHolders(BufferId buffer, int32_t by) { prepared_.holders[buffer] += by; }
  // As PreparedWorkload::SetLists. REQUIRES: all buffers were added.
  void SetLists(OpId op, absl::Span<const BufferId> reads, absl::Span<const BufferId> writes,
                absl::Span<const BufferId> reuses);
  // Edges take effect in FinishEdges; SetWaits sets how many lead to an operation.
  void AddEdge(OpId from, OpId to);
  void RemoveEdge(OpId from, OpId to);
  void SetWaits(OpId op, int32_t waits);
  bool FinishEdges(StopPoller* poll);  // False if stopped.

  // Restores the workload as it was before the changes, except for the effect of AddHolders.
  void Undo();

 private:
  // In the numbering of prepared_.
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
  // Applies all changes to the operations that wait for one operation.
  void ChangeAfter(absl::Span<const Change> changes);

  PreparedWorkload& prepared_;
  // The counts before the changes.
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
  std::vector<int64_t> removed_;  // By number: the mark under which it stopped waiting.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_PREPARED_PATCH_H_
