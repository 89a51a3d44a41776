// The error DOES_NOT_FIT: no plan of a strategy stays within the memory that there is. One text and
// one set of details, whatever the strategy.
#ifndef SPILLWAY_REWRITE_CORE_PLAN_FIT_ERROR_H_
#define SPILLWAY_REWRITE_CORE_PLAN_FIT_ERROR_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/hardware.h"

namespace spillway::core {

// What kept the best plan from fitting.
struct FitFailure {
  std::string gpu;   // As its first node spells it; empty: nodes carry no device.
  std::string node;  // Which node's allocation failed; empty: that of what is resident.
  int64_t requested_bytes = 0;
  int64_t in_use_bytes = 0;
  int64_t resident_bytes = 0;  // Variables and constants; 0 where the failure is not about them.
  // What no plan of swaps can do with less than (simulate/lower_bounds.h), and the node that takes
  // it while it runs, what is resident included; 0: not known.
  int64_t lower_bound_bytes = 0;
  std::string lower_bound_node;  // Empty: what is resident takes it.
  std::string unknown;           // What of the step is not known; empty: nothing.
  bool on_host = false;          // It was the host's memory.
  bool fragmented = false;  // There were enough bytes, but not in one piece. Then the text says
                            // what makes TensorFlow's allocator leave memory in fewer pieces.
};

// What would help.
struct FitRemedy {
  int64_t smallest_budget_bytes = 0;  // 0: none is known.
  absl::string_view effect;           // What is so then: "there is one".
};

// "5 GiB (preset p100_pcie, less 10%)".
std::string BudgetText(const Hardware& hardware, int64_t budget_bytes);

// FAILED_PRECONDITION (DOES_NOT_FIT). `claim` is the sentence up to the failure: "no setting of the
// strategy level fits the 5 GiB (...) of GPU '/gpu:0'". Details: device, node, resident_bytes,
// budget_bytes, budget_source; lower_bound_bytes and lower_bound_node, smallest_budget_bytes and
// smallest_gpu_memory_bytes (that budget and what is left to the allocator), absent if not known.
// Where the lower bound is above the budget the text says so, as the proof, and not what failed.
absl::Status DoesNotFitError(absl::string_view claim, const FitFailure& failure,
                             const Hardware& hardware, int64_t budget_bytes,
                             const FitRemedy& remedy);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_PLAN_FIT_ERROR_H_
