// The host's memory for variables, which no budget limits.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_MEMORY_HOST_VARIABLES_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_MEMORY_HOST_VARIABLES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/machine/placement.h"
#include "rewrite_core/analysis/memory/buffers.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// The bytes of the variables on the CPUs of the tasks that have the step's GPUs, whether their
// nodes run or not; kUnknownSize if the size of one is unknown. Errors: those of `stop`.
absl::StatusOr<int64_t> HostVariableBytes(const Graph& graph, const Placement& placement,
                                          const Buffers& buffers, const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_MEMORY_HOST_VARIABLES_H_
