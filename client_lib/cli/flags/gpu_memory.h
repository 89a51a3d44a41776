// How much memory the GPUs of this machine leave to TensorFlow (internal/gpu_memory.h): the budget
// where the user gives none. Where nvidia-smi has no answer, nothing is filled in, and the budget
// is the preset's.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_GPU_MEMORY_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_GPU_MEMORY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client_lib/internal/gpu_memory.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/simulate.pb.h"
#include "spillway/v1/step.pb.h"

namespace spillway::cli {

using internal::kNvidiaSmiTime;

// Fill in hardware.gpu_memory_bytes of the step and its source, if nothing says how much memory a
// GPU has (bytes, a preset, autotune_gpu_mem) and what is asked for depends on it. nvidia-smi is
// waited for no longer than `limit`. Returns a line for the user; empty: nothing was filled in.
std::string FillGpuMemory(absl::Duration limit, v1::RewriteOptions* options);
std::string FillGpuMemory(absl::Duration limit, v1::Step* step);

// In place of the preset `auto`, that of this machine's GPUs (internal/gpu_name.h), and, if nothing
// says how much memory they have, what nvidia-smi says. Returns a line for the user; empty: the
// preset was another. BAD_OPTION if this machine's is not known. In place of a preset that is a
// file (hardware_file.h), what the file says.
absl::StatusOr<std::string> FindMachine(absl::Duration limit, v1::Hardware* hardware);

// Both, one after the other. FindMachine comes first: it says the memory, too. Without a budget no
// memory is filled in.
absl::StatusOr<std::string> FillHardware(absl::Duration limit, v1::RewriteOptions* options);
absl::StatusOr<std::string> FillHardware(absl::Duration limit, v1::SimulateOptions* options);
absl::StatusOr<std::string> FillHardware(absl::Duration limit, v1::ExploreOptions* options);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_GPU_MEMORY_H_
