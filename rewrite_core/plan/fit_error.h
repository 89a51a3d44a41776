// The error DOES_NOT_FIT: no plan of a strategy stays within the memory. Text and details are the
// same for every strategy.
#ifndef SPILLWAY_REWRITE_CORE_PLAN_FIT_ERROR_H_
#define SPILLWAY_REWRITE_CORE_PLAN_FIT_ERROR_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/machine/hardware.h"

namespace spillway::core {

// The reason why the best plan does not fit.
struct FitFailure {
  std::string gpu;   // As its first node spells it; empty: nodes carry no device.
  std::string node;  // The node whose allocation failed; empty: the resident buffers'.
  int64_t requested_bytes = 0;
  int64_t in_use_bytes = 0;
  int64_t resident_bytes = 0;  // Variables and constants.
  // A lower bound on the memory of any plan (simulate/lower_bounds.h), and the node that needs
  // it while it runs, resident buffers included; 0: not known.
  int64_t lower_bound_bytes = 0;
  std::string lower_bound_node;  // Empty: the resident buffers need it.
  std::string unknown;           // The unknown memory of the step; empty: none.
  bool on_host = false;          // The host's memory ran out, not the GPU's.
  bool fragmented = false;       // Enough bytes were free, but not in one piece. Then the text says
                                 // how to make TensorFlow's allocator fragment memory less.
  bool in_chunks = false;        // They were inside chunks larger than their buffers (OutOfMemory).
};

// A budget that would suffice.
struct FitRemedy {
  int64_t smallest_budget_bytes = 0;  // 0: not known.
  absl::string_view effect;           // The end of the sentence: "would suffice".
};

// "GPU '/gpu:0'", or "the GPU" if nodes carry no device.
std::string GpuText(absl::string_view gpu);

// "5 GiB (preset p100_pcie, less 10%)".
std::string BudgetText(const Hardware& hardware, int64_t budget_bytes);

// FAILED_PRECONDITION (DOES_NOT_FIT). `claim` is the beginning of the sentence: "no setting of the
// strategy level fits the 5 GiB (...) of GPU '/gpu:0'". Details: device, node, resident_bytes,
// budget_bytes, budget_source; lower_bound_bytes and lower_bound_node, smallest_budget_bytes and
// smallest_gpu_memory_bytes (that budget plus the allocator's reserve), absent if not known. If the
// lower bound is above the budget, the text gives that as proof, not the failed allocation.
absl::Status DoesNotFitError(absl::string_view claim, const FitFailure& failure,
                             const Hardware& hardware, int64_t budget_bytes,
                             const FitRemedy& remedy);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_PLAN_FIT_ERROR_H_
