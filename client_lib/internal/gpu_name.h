// Which machine this is, as `nvidia-smi` has it: the preset for its GPUs.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_GPU_NAME_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_GPU_NAME_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace spillway::internal {

struct NamedMachine {
  std::string preset;
  std::string gpu;  // As nvidia-smi has it.
  int gpu_count = 0;
};

// What nvidia-smi says, which is waited for no longer than `limit`. Errors (BAD_OPTION) say what to
// name instead: there is no nvidia-smi that answers, no preset for the GPU, GPUs of several kinds.
absl::StatusOr<NamedMachine> AskMachine(absl::Duration limit);

// Of what `nvidia-smi --query-gpu=name --format=csv,noheader` prints: a line for each GPU.
absl::StatusOr<NamedMachine> ParseMachine(absl::string_view names);

// The preset for a GPU of that name, by the whole of it; empty: there is none. The V100s of an IBM
// POWER host have NVLink to it.
enum class Host { kPower, kOther };
std::string PresetOfGpu(absl::string_view name, Host host);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_GPU_NAME_H_
