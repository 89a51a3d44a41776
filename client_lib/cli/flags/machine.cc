#include "client_lib/cli/flags/gpu_memory.h"

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "client_lib/cli/flags/hardware_file.h"
#include "client_lib/internal/gpu_name.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/steady_time.h"

namespace spillway::cli {
namespace {

// For options that have a step and `no_budget`.
template <typename Options>
absl::StatusOr<std::string> FillStepOf(absl::Duration limit, Options* options) {
  v1::Step& step = *options->mutable_step();
  if (!step.hardware().preset().empty()) return FindMachine(limit, step.mutable_hardware());
  return options->no_budget() ? std::string() : FillGpuMemory(limit, &step);
}

// Returns the line for the user; empty if no memory was found.
std::string Fill(absl::Duration limit, v1::Hardware* hardware) {
  const absl::optional<internal::GpuMemory> memory = internal::AskGpuMemory(limit);
  if (!memory.has_value()) return "";
  hardware->set_gpu_memory_bytes(memory->usable_bytes);
  hardware->set_gpu_memory_source(v1::MEMORY_SOURCE_NVIDIA_SMI);
  return absl::StrCat(
      core::BytesText(memory->usable_bytes),
      " per GPU, from nvidia-smi: ", core::BytesText(memory->total_bytes),
      memory->gpu_count > 1 ? absl::StrCat(", the least of ", memory->gpu_count, " GPUs,") : "",
      " less what TensorFlow and the driver keep; --gpu-memory-bytes overrides");
}

bool SaysMemory(const v1::Hardware& hardware) {
  return hardware.has_gpu_memory_bytes() || !hardware.preset().empty();
}

}  // namespace

std::string FillGpuMemory(absl::Duration limit, v1::RewriteOptions* options) {
  const bool idle =
      options->has_strip() || (options->has_scope() && options->simulation() == v1::SIMULATION_OFF);
  if (idle || SaysMemory(options->step().hardware())) return "";
  v1::Hardware found;
  std::string line = Fill(limit, &found);
  if (!line.empty()) options->mutable_step()->mutable_hardware()->MergeFrom(found);
  return line;
}

std::string FillGpuMemory(absl::Duration limit, v1::Step* step) {
  if (SaysMemory(step->hardware())) return "";
  v1::Hardware found;
  std::string line = Fill(limit, &found);
  if (!line.empty()) step->mutable_hardware()->MergeFrom(found);
  return line;
}

absl::StatusOr<std::string> FindMachine(absl::Duration limit, v1::Hardware* hardware) {
  constexpr char kAuto[] = "auto";
  if (IsHardwareFile(hardware->preset())) {
    if (absl::Status status = TakeHardwareFile(hardware); !status.ok()) return status;
    return std::string();
  }
  if (hardware->preset() != kAuto) return std::string();
  const absl::Time deadline = core::SteadyNow() + limit;
  const absl::StatusOr<internal::NamedMachine> machine = internal::AskMachine(limit);
  if (!machine.ok()) return machine.status();
  hardware->set_preset(machine->preset);
  std::string line = absl::StrCat("--hardware ", machine->preset, ", from nvidia-smi: ",
                                  machine->gpu_count > 1
                                      ? absl::StrCat(machine->gpu_count, " times ", machine->gpu)
                                      : machine->gpu);
  if (hardware->has_gpu_memory_bytes()) return line;
  const std::string memory = Fill(deadline - core::SteadyNow(), hardware);
  return memory.empty() ? line : absl::StrCat(line, "; ", memory);
}

absl::StatusOr<std::string> FillHardware(absl::Duration limit, v1::RewriteOptions* options) {
  if (options->step().hardware().preset().empty()) return FillGpuMemory(limit, options);
  return FindMachine(limit, options->mutable_step()->mutable_hardware());
}

absl::StatusOr<std::string> FillHardware(absl::Duration limit, v1::SimulateOptions* options) {
  return FillStepOf(limit, options);
}

absl::StatusOr<std::string> FillHardware(absl::Duration limit, v1::ExploreOptions* options) {
  return FillStepOf(limit, options);
}

}  // namespace spillway::cli
