// The memory of each GPU: Hardware.gpu_memory_bytes, unless Hardware.gpu_memories overrides it.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_MACHINE_GPU_MEMORY_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_MACHINE_GPU_MEMORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite_core/analysis/machine/hardware.h"
#include "rewrite_core/base/stop_token.h"
#include "spillway/v1/hardware.pb.h"

namespace spillway::core {

// By index into `gpus` (Placement::devices()): bytes that TensorFlow's allocator can use, or 0 if
// `options` has no entry for that GPU. INVALID_ARGUMENT for an entry that names no GPU
// (NAME_MATCHES_NOTHING), for a GPU named by two entries, and for bytes below 1 (BAD_OPTION);
// errors of `stop`.
absl::StatusOr<std::vector<int64_t>> FindGpuMemories(const std::vector<std::string>& gpus,
                                                     const v1::Hardware& options,
                                                     const StopToken& stop);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_MACHINE_GPU_MEMORY_H_
