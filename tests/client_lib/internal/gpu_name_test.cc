// Which machine nvidia-smi names, and that each name has a preset that there is.
#include "client_lib/internal/gpu_name.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/analysis/machine/hardware.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

using ::testing::HasSubstr;

TEST(GpuNameTest, TheNamesThatDriversGive) {
  const std::pair<const char*, const char*> kGpus[] = {
      {"Tesla T4", "t4"},
      {"NVIDIA T4", "t4"},
      {"NVIDIA Tesla T4", "t4"},
      {"Tesla V100-SXM2-32GB", "v100_32gb_sxm2"},
      {"Tesla V100-PCIE-32GB", "v100_32gb_pcie"},
      {"NVIDIA A10", "a10"},
      {"NVIDIA L4", "l4"},
      {"NVIDIA L40S", "l40s"},
      {"A100-SXM4-40GB", "a100_40gb_sxm4"},
      {"NVIDIA A100-SXM4-80GB", "a100_80gb_sxm4"},
      {"NVIDIA A100 80GB PCIe", "a100_80gb_pcie4"},
      {"NVIDIA H100 PCIe", "h100_pcie5"},
      {"NVIDIA H100 80GB HBM3", "h100_sxm5"},
      {"NVIDIA H200", "h200_sxm5"},
      {"NVIDIA GH200 480GB", "gh200_nvlink_c2c"},
      // Others, for all that their names begin alike.
      {"NVIDIA A10G", ""},
      {"NVIDIA L40", ""},
      {"NVIDIA H100 NVL", ""},
      {"NVIDIA GeForce RTX 3090", ""},
      {"", ""},
  };
  std::set<std::string> known;
  for (const core::HardwarePreset& preset : core::HardwarePresets()) {
    known.insert(preset.hardware.preset);
  }
  for (const auto& [gpu, preset] : kGpus) {
    EXPECT_EQ(internal::PresetOfGpu(gpu, internal::Host::kOther), preset) << gpu;
    EXPECT_TRUE(*preset == '\0' || known.count(preset) > 0) << preset;
  }
  EXPECT_EQ(internal::PresetOfGpu("Tesla V100-SXM2-16GB", internal::Host::kOther),
            "v100_16gb_sxm2");
  EXPECT_EQ(internal::PresetOfGpu("Tesla V100-SXM2-16GB", internal::Host::kPower), "v100_nvlink2");
}

TEST(GpuNameTest, AMachineHasOneKind) {
  const auto one = internal::ParseMachine("NVIDIA L4\nNVIDIA L4\n");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->preset, "l4");
  EXPECT_EQ(one->gpu_count, 2);
  for (const auto& [names, says] : {std::pair<const char*, const char*>{"", "names no GPU"},
                                    {"No devices were found\n", "no preset for 'No devices"},
                                    {"NVIDIA L4\nTesla T4\n", "'NVIDIA L4' and 'Tesla T4'"},
                                    {"NVIDIA A10G\n", "no preset for 'NVIDIA A10G'"}}) {
    const auto machine = internal::ParseMachine(names);
    EXPECT_EQ(core::GetErrorInfo(machine.status()).reason(), "BAD_OPTION") << names;
    EXPECT_THAT(std::string(machine.status().message()), HasSubstr(says)) << names;
  }
}

}  // namespace
}  // namespace spillway::cli
