// Fills in the memory that this machine's GPUs have for TensorFlow (internal/gpu_memory.h): the
// default budget. If nvidia-smi gives no answer, nothing is filled in, and the budget is the
// preset's.
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

// Fill in hardware.gpu_memory_bytes of the step and its source, if no option specifies the memory
// of a GPU (bytes, a preset) and the request depends on it. Wait at most `limit`
// for nvidia-smi. Return a line for the user, or empty if nothing was filled in.
std::string FillGpuMemory(absl::Duration limit, v1::RewriteOptions* options);
std::string FillGpuMemory(absl::Duration limit, v1::Step* step);

// Replaces the preset `auto` by that of this machine's GPUs (internal/gpu_name.h), and if no option
// specifies their memory, fills in what nvidia-smi reports. Replaces a preset that is a file
// (hardware_file.h) by its content. Returns a line for the user, or empty for any other preset.
// BAD_OPTION if there is no preset for this machine.
absl::StatusOr<std::string> FindMachine(absl::Duration limit, v1::Hardware* hardware);

// Both, one after the other: first FindMachine, which fills in the memory, too. With no_budget, no
// memory is filled in.
absl::StatusOr<std::string> FillHardware(absl::Duration limit, v1::RewriteOptions* options);
absl::StatusOr<std::string> FillHardware(absl::Duration limit, v1::SimulateOptions* options);
absl::StatusOr<std::string> FillHardware(absl::Duration limit, v1::ExploreOptions* options);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_GPU_MEMORY_H_
