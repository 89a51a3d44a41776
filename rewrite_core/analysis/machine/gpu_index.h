// The GPUs of a step, numbered.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_MACHINE_GPU_INDEX_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_MACHINE_GPU_INDEX_H_

#include "rewrite_core/base/strong_id.h"

namespace spillway::core {

// An index into Placement::devices(). The simulator's workloads number their devices in the same
// way.
using GpuIndex = StrongId<struct GpuIndexTag>;

// A GPU, or one of the values below. Not a type of its own: once these are ruled out, a place is
// used as the GPU it is.
using Place = GpuIndex;
inline constexpr Place kHostPlace(-1);
inline constexpr Place kNoMemory(-2);  // A handle, or a tensor without a size: nothing to copy.

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_MACHINE_GPU_INDEX_H_
