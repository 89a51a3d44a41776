#include "client_lib/cli/flags/machine.h"

#include "client_lib/cli/flags/hardware_file.h"

namespace spillway::cli {
namespace {

template <typename Options>
absl::StatusOr<std::string> Fill(absl::Duration limit, Options* options) {
  if (IsHardwareFile(options->step().hardware().preset())) {
    absl::Status status = TakeHardwareFile(options->mutable_step()->mutable_hardware());
    if (!status.ok()) return status;
  }
  if (!internal::NeedsMachine(*options)) return std::string();
  return internal::FillHardware(internal::MachineOfProcess(limit),
                                options->mutable_step()->mutable_hardware());
}

}  // namespace

absl::StatusOr<std::string> FillHardware(absl::Duration limit, v1::RewriteOptions* options) {
  return Fill(limit, options);
}

absl::StatusOr<std::string> FillHardware(absl::Duration limit, v1::SimulateOptions* options) {
  return Fill(limit, options);
}

absl::StatusOr<std::string> FillHardware(absl::Duration limit, v1::ExploreOptions* options) {
  return Fill(limit, options);
}

std::string LimitToFreeMemory(v1::RewriteOptions* options) {
  // Without memory from nvidia-smi, it was not queried, and the options stay unchanged.
  if (options->step().hardware().gpu_memory_source() != v1::MEMORY_SOURCE_NVIDIA_SMI) return "";
  return internal::LimitToFreeMemory(internal::MachineOfProcess(),
                                     options->mutable_step()->mutable_hardware());
}

}  // namespace spillway::cli
