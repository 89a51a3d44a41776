// PlanJudge: what a tuner asks a simulator. The core implements it on its StepModel; tests on plain
// functions.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_PLAN_JUDGE_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_PLAN_JUDGE_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/unknown_memory.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/plan/swap_plan.h"
#include "spillway/v1/hardware.pb.h"

namespace spillway::core {

// What came of a plan.
struct PlanOutcome {
  // Launched ahead and synchronously.
  bool fits = false;
  // Launched ahead it fits, but is slower than was of interest: it was not played synchronously.
  bool is_partial = false;
  // What of the step is not known, and may make it not fit.
  UnknownMemory unknown;
  // Of a step launched ahead and of a synchronous one; 0 where that did not end, or was not played.
  int64_t step_time_ns = 0;
  int64_t synchronous_step_time_ns = 0;
  // The most memory on the GPU asked about, in the worse of the two.
  int64_t peak_bytes = 0;
  // What is there before the step and after it.
  int64_t resident_bytes = 0;
  // If it does not fit: who asked for memory in vain; kNoNode: what is resident is too much, or
  // does not find its places.
  NodeId node = kNoNode;
  int64_t requested_bytes = 0;
  int64_t in_use_bytes = 0;
  bool is_in_pieces = false;  // There was enough, but not in one piece.
  bool on_host = false;       // It was the host's memory that did not suffice,
  int32_t gpu = 0;            // or else that of this GPU.
};

// What to play a plan with.
struct PlayTerms {
  int32_t gpu = 0;           // Or kAllGpus.
  int64_t budget_bytes = 0;  // Of that GPU; the others have memory without end.
  int64_t worth_ns = 0;      // Slower plans are of no interest.
};

// In PlayTerms: each has the budget. The peak and what is resident are those of the first.
inline constexpr int32_t kAllGpus = -1;
// In PlayTerms: memory without end; any time is of interest.
inline constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

class PlanJudge {
 public:
  virtual ~PlanJudge() = default;

  // GPUs by index, as their first node spells them.
  virtual int32_t num_gpus() const = 0;
  virtual const std::string& gpu_name(int32_t gpu) const = 0;
  // The GPU on which nodes of this device (Graph::device_id) run; negative: none.
  virtual int32_t GpuOf(int32_t device_id) const = 0;

  // The budget of each GPU, and who said so.
  virtual int64_t budget_bytes() const = 0;
  // How much memory a GPU must have for a budget: more, where some is left to its allocator.
  virtual int64_t GpuMemoryFor(int64_t budget_bytes) const = 0;
  virtual v1::MemorySource budget_source() const = 0;
  // In words: "preset p100_pcie".
  virtual std::string budget_origin() const = 0;

  // Whether the step runs the node.
  virtual bool Runs(NodeId id) const = 0;

  virtual absl::StatusOr<PlanOutcome> Play(const SwapPlan& plan, const PlayTerms& terms,
                                           const StopToken& stop) = 0;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_PLAN_JUDGE_H_
