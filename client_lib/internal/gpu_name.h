// The hardware preset for this machine's GPUs, from `nvidia-smi`.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_GPU_NAME_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_GPU_NAME_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace spillway::internal {

struct NamedMachine {
  std::string preset;
  std::string gpu;  // As nvidia-smi names it.
  int gpu_count = 0;
};

// Runs nvidia-smi, waiting at most `limit`. Errors (BAD_OPTION) say what to specify instead:
// nvidia-smi is missing or does not answer, there is no preset for the GPU, or the GPUs are of
// several kinds.
absl::StatusOr<NamedMachine> AskMachine(absl::Duration limit);

// Parses the output of `nvidia-smi --query-gpu=name --format=csv,noheader`: a line for each GPU.
absl::StatusOr<NamedMachine> ParseMachine(absl::string_view names);

// Returns the preset for the GPU of exactly that name, or empty if there is none. `is_power`: in an
// IBM POWER host, to which V100s are connected by NVLink.
std::string PresetOfGpu(absl::string_view name, bool is_power);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_GPU_NAME_H_
