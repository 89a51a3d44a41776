// How much memory the GPUs of this machine leave to TensorFlow, as `nvidia-smi` has it.
//
// nvidia-smi is a help and no condition: where there is none, where it fails, hangs or says what
// cannot be understood, there is no answer. It sees all GPUs, whoever uses them, and not what
// CUDA_VISIBLE_DEVICES leaves of them: the smallest one counts.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_GPU_MEMORY_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_GPU_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace spillway::internal {

// The GPU that leaves the least.
struct GpuMemory {
  int64_t usable_bytes = 0;  // To TensorFlow's allocator. Above 0.
  int64_t total_bytes = 0;   // As nvidia-smi has it.
  int gpu_count = 0;         // Of the machine.
};

// How long nvidia-smi may take. It starts the driver where nothing else has (no persistence mode),
// which takes it a second or more.
inline constexpr absl::Duration kNvidiaSmiTime = absl::Seconds(5);

// What nvidia-smi says, which is waited for no longer than `limit`.
absl::optional<GpuMemory> AskGpuMemory(absl::Duration limit);

// Of what `nvidia-smi --query-gpu=memory.total,compute_cap --format=csv,noheader,nounits` prints: a
// line for each GPU, in MiB; the second column may be missing. Nothing if it is not understood.
absl::optional<GpuMemory> ParseGpuMemory(absl::string_view csv);

// What TensorFlow's allocator takes of a GPU that nobody else uses. `compute_major`: of its compute
// capability; 0: not known. Rather too little: the driver's share differs with its version.
int64_t UsableBytes(int64_t total_bytes, int compute_major);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_GPU_MEMORY_H_
