// What keeps the memory of a step from being known, so that "fits" would be a guess: buffers of
// unknown size, which count as 0 bytes; bodies of loops, which are simulated once, whatever the
// loop keeps from each iteration; calls of functions, whose bodies are not looked into. On GPUs
// alone: what the host lacks, a step waits for.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_UNKNOWN_MEMORY_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_UNKNOWN_MEMORY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/placement.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/simulate/workload_builder.h"
#include "spillway/v1/forecast.pb.h"

namespace spillway::core {

// One cause on one GPU.
struct UnknownMemory {
  v1::FitUnknownCause cause = v1::FIT_UNKNOWN_CAUSE_UNSPECIFIED;
  Place gpu = kHostPlace;
  NodeId node = kNoNode;  // The first of the nodes concerned,
  int32_t count = 0;      // and how many there are.
};

// By cause, then GPU; empty: all is known. Errors: those of `stop`.
absl::StatusOr<std::vector<UnknownMemory>> FindUnknownMemory(const StepFacts& facts,
                                                             const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_UNKNOWN_MEMORY_H_
