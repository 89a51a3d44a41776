#include "client_lib/internal/gpu_name.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client_lib/internal/program_output.h"
#include "rewrite_core/base/error.h"

namespace spillway::internal {
namespace {

#if defined(__powerpc64__)
constexpr Host kThisHost = Host::kPower;
#else
constexpr Host kThisHost = Host::kOther;
#endif

// Names as the driver reports them, without `NVIDIA` or `Tesla` in front, which drivers add or omit
// depending on their version. The whole name must match: an A10G is not an A10, nor is an H100 NVL
// one of these.
constexpr struct {
  absl::string_view gpu, preset;
} kNames[] = {
    {"P100-PCIE-16GB", "p100_pcie"},
    {"T4", "t4"},
    {"V100-PCIE-16GB", "v100_pcie"},
    {"V100-PCIE-32GB", "v100_32gb_pcie"},
    {"V100-SXM2-16GB", "v100_16gb_sxm2"},
    {"V100-SXM2-32GB", "v100_32gb_sxm2"},
    {"A10", "a10"},
    {"L4", "l4"},
    {"L40S", "l40s"},
    {"A100-PCIE-40GB", "a100_40gb_pcie4"},
    {"A100-SXM4-40GB", "a100_40gb_sxm4"},
    {"A100 80GB PCIe", "a100_80gb_pcie4"},
    {"A100-PCIE-80GB", "a100_80gb_pcie4"},
    {"A100-SXM4-80GB", "a100_80gb_sxm4"},
    {"H100 PCIe", "h100_pcie5"},
    {"H100 80GB HBM3", "h100_sxm5"},
    {"H200", "h200_sxm5"},
    {"GH200 480GB", "gh200_nvlink_c2c"},
};

absl::Status CannotTell(absl::string_view why) {
  return core::InvalidError(
      v1::ERROR_REASON_BAD_OPTION,
      absl::StrCat("hardware.preset is auto, and ", why,
                   "; name a preset (spillway capabilities lists them) or give the machine's "
                   "numbers"),
      {{"option", "hardware.preset"}, {"value", "auto"}});
}

}  // namespace

absl::StatusOr<NamedMachine> AskMachine(absl::Duration limit) {
  const absl::optional<std::string> names =
      OutputOf({"nvidia-smi", "--query-gpu=name", "--format=csv,noheader"}, Deadline(limit));
  if (!names.has_value()) return CannotTell("no nvidia-smi here says which GPU this is");
  return ParseMachine(*names);
}

absl::StatusOr<NamedMachine> ParseMachine(absl::string_view names) {
  NamedMachine machine;
  for (absl::string_view line : absl::StrSplit(names, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    ++machine.gpu_count;
    const std::string preset = PresetOfGpu(line, kThisHost);
    if (preset.empty()) {
      return CannotTell(absl::StrCat("there is no preset for ", core::Quoted(line)));
    }
    if (machine.gpu_count > 1 && preset != machine.preset) {
      return CannotTell(absl::StrCat("this machine has ", core::Quoted(machine.gpu), " and ",
                                     core::Quoted(line)));
    }
    machine.preset = preset;
    machine.gpu = std::string(line);
  }
  if (machine.gpu_count == 0) return CannotTell("nvidia-smi names no GPU");
  return machine;
}

std::string PresetOfGpu(absl::string_view name, Host host) {
  absl::ConsumePrefix(&name, "NVIDIA ");
  absl::ConsumePrefix(&name, "Tesla ");
  if (host == Host::kPower && name == "V100-SXM2-16GB") return "v100_nvlink2";
  for (const auto& known : kNames) {
    if (absl::EqualsIgnoreCase(known.gpu, name)) return std::string(known.preset);
  }
  return "";
}

}  // namespace spillway::internal
