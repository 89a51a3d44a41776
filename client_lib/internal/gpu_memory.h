// How much memory the GPUs of this machine have for TensorFlow, according to `nvidia-smi`.
//
// nvidia-smi is optional: if it is missing, fails, hangs or prints something unexpected, there is
// no result. It reports all GPUs, whether in use or not, and ignores CUDA_VISIBLE_DEVICES: the
// smallest GPU counts.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_GPU_MEMORY_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_GPU_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace spillway::internal {

// The GPU with the least usable memory.
struct GpuMemory {
  int64_t usable_bytes = 0;  // For TensorFlow's allocator. Above 0.
  int64_t total_bytes = 0;   // As reported by nvidia-smi.
  int gpu_count = 0;         // Of the machine.
};

// How long nvidia-smi may take. It loads the driver if nothing else has (no persistence mode),
// which takes a second or more.
inline constexpr absl::Duration kNvidiaSmiTime = absl::Seconds(5);

// Runs nvidia-smi, waiting at most `limit`.
absl::optional<GpuMemory> AskGpuMemory(absl::Duration limit);

// Parses the output of `nvidia-smi --query-gpu=memory.total,compute_cap
// --format=csv,noheader,nounits`: a line for each GPU, in MiB; the second column may be missing.
// Returns nothing if it cannot be parsed.
absl::optional<GpuMemory> ParseGpuMemory(absl::string_view csv);

// Returns the memory that TensorFlow's allocator takes on an otherwise idle GPU. `compute_major`:
// the major compute capability; 0: unknown. A conservative estimate: the driver's share differs
// between versions.
int64_t UsableBytes(int64_t total_bytes, int compute_major);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_GPU_MEMORY_H_
