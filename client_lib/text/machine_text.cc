#include "client_lib/text/machine_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "rewrite_core/base/byte_text.h"

namespace spillway::text {
namespace {

// The maximum number of GPUs that are listed with a memory size of their own.
constexpr int kShownMemories = 4;

// "14.86 GiB per GPU", "14.86 GiB per GPU (/gpu:1: 12.00 GiB)".
std::string MemoriesText(const v1::Hardware& hardware) {
  std::string others;
  for (int i = 0; i < hardware.gpu_memories_size(); ++i) {
    const v1::GpuMemory& memory = hardware.gpu_memories(i);
    absl::StrAppend(&others, i == 0 ? " (" : ", ");
    if (i == kShownMemories) {
      absl::StrAppend(&others, "...");
      break;
    }
    absl::StrAppend(&others, memory.device(), ": ", core::BytesText(memory.gpu_memory_bytes()));
  }
  return absl::StrCat(core::BytesText(hardware.gpu_memory_bytes()), " per GPU", others,
                      others.empty() ? "" : ")");
}

std::string PresetText(const v1::Hardware& hardware) {
  return hardware.preset().empty() ? "custom" : hardware.preset();
}

// After the memory of GPUs: its source, and the part left free.
std::string MemoryRemarks(const v1::Hardware& hardware) {
  return absl::StrCat(
      hardware.gpu_memory_source() == v1::MEMORY_SOURCE_NVIDIA_SMI ? " by nvidia-smi" : "",
      hardware.allocator_reserve() > 0
          ? absl::StrFormat(" less %.3g%%", 100 * hardware.allocator_reserve())
          : "");
}

std::string LinkText(const v1::Hardware& hardware) {
  return absl::StrFormat("%.3g GB/s out and %.3g GB/s in", hardware.d2h_bytes_per_s() / 1e9,
                         hardware.h2d_bytes_per_s() / 1e9);
}

}  // namespace

std::string AssumedText(const v1::HardwareReport& hardware) {
  if (!hardware.preset_assumed()) return "";
  // nvidia-smi may exist, and name GPUs without a preset.
  return absl::StrCat(hardware.hardware().preset(),
                      " is assumed: no hardware is named, and nvidia-smi does not identify it "
                      "(spillway capabilities lists the presets)");
}

std::string HardwareText(const v1::HardwareReport& report) {
  const v1::Hardware& hardware = report.hardware();
  return absl::StrCat(
      PresetText(hardware), ", ", MemoriesText(hardware), MemoryRemarks(hardware), ", ",
      hardware.internal_fragmentation_fraction() > 0
          ? absl::StrCat("internal_fragmentation_fraction ",
                         hardware.internal_fragmentation_fraction(), ", ")
          : "",
      core::BytesText(hardware.host_memory_bytes()), " of host memory, ", LinkText(hardware));
}

std::string ShortHardwareText(const v1::Hardware& hardware) {
  return absl::StrCat(PresetText(hardware), ", ", core::BytesText(hardware.gpu_memory_bytes()),
                      " per GPU", MemoryRemarks(hardware), ", ", LinkText(hardware));
}

std::string GpuBudgetText(const v1::HardwareReport& report) {
  const auto& others = report.hardware().gpu_memories();
  if (others.empty())
    return absl::StrCat(core::BytesText(report.device_budget_bytes()), " per GPU");
  return absl::StrCat("the memory of each GPU: ", MemoriesText(report.hardware()));
}

}  // namespace spillway::text
