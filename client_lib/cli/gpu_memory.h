// How much memory the GPUs of this machine leave to TensorFlow, as `nvidia-smi` has it: the budget
// where the user gives none.
//
// nvidia-smi is a help and no condition: where there is none, where it fails, hangs or says what
// cannot be understood, nothing is filled in, and the budget is the preset's. It sees all GPUs,
// whoever uses them, and not what CUDA_VISIBLE_DEVICES leaves of them: the smallest one counts.
#ifndef SPILLWAY_CLIENT_LIB_CLI_GPU_MEMORY_H_
#define SPILLWAY_CLIENT_LIB_CLI_GPU_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/step.pb.h"

namespace spillway::cli {

// The GPU that leaves the least.
struct GpuMemory {
  int64_t usable_bytes = 0;  // To TensorFlow's allocator. Above 0.
  int64_t total_bytes = 0;   // As nvidia-smi has it.
  int gpu_count = 0;         // Of the machine.
};

// How long nvidia-smi may take. It starts the driver where nothing else has (no persistence mode),
// which takes it a second or more.
inline constexpr absl::Duration kNvidiaSmiTime = absl::Seconds(5);

// Fill in hardware.gpu_memory_bytes of the step and its source, if nothing says how much memory a
// GPU has (bytes, a preset, autotune_gpu_mem) and what is asked for depends on it. nvidia-smi is
// waited for no longer than `limit`. Returns a line for the user; empty: nothing was filled in.
std::string FillGpuMemory(absl::Duration limit, v1::RewriteOptions* options);
std::string FillGpuMemory(absl::Duration limit, bool no_budget, v1::Step* step);

// Prints such a line on standard error, if it is one.
void TellGpuMemory(const std::string& line);

// Of what `nvidia-smi --query-gpu=memory.total,compute_cap --format=csv,noheader,nounits` prints: a
// line for each GPU, in MiB; the second column may be missing. Nothing if it is not understood.
absl::optional<GpuMemory> ParseGpuMemory(absl::string_view csv);

// What TensorFlow's allocator takes of a GPU that nobody else uses. `compute_major`: of its compute
// capability; 0: not known. Rather too little: the driver's share differs with its version.
int64_t UsableBytes(int64_t total_bytes, int compute_major);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_GPU_MEMORY_H_
