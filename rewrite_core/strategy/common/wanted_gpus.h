// The GPUs whose tensors may be swapped, for strategies that plan one GPU after the other.
#ifndef SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_WANTED_GPUS_H_
#define SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_WANTED_GPUS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/plan/eligibility.h"

namespace spillway::core {

struct WantedGpu {
  std::string name;  // As in forecasts.
  GpuIndex index{0};
  std::vector<bool> devices;  // By DeviceId.
  bool is_many = false;       // Stands for all GPUs, which are more than kMaxGpus.
};

// Bounds the cost, since planning a GPU takes passes over the whole graph. No machine has as many.
inline constexpr size_t kMaxGpus = 256;

// Returns the GPUs in order of their first nodes, one by one if there are at most kMaxGpus;
// otherwise all as one, without a name. REQUIRES: kPlacement.
std::vector<WantedGpu> FindWantedGpus(const StepFacts& facts, const Eligibility& eligibility);

// INVALID_ARGUMENT (LIMIT_EXCEEDED), for a strategy that cannot plan many as one.
absl::Status TooManyGpusError();

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_STRATEGY_COMMON_WANTED_GPUS_H_
