#include "rewrite_core/analysis/machine/hardware.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;

// The published table, entered a second time.
struct Published {
  std::string name;
  int64_t gpu_memory_bytes, host_memory_bytes;
  double peak_flops, eff_conv, eff_matmul, mem_bytes_per_s, mem_eff, launch_s;
  double d2h_bytes_per_s, h2d_bytes_per_s, copy_latency_s;
};
const Published kPublished[] = {
    {"p100_pcie", 15955132416, 512000000000, 10.6e12, 0.83, 0.8, 732e9, 0.75, 1e-5, 12e9, 12e9,
     2e-5},
    {"v100_pcie", 15955132416, 512000000000, 14e12, 0.83, 0.8, 900e9, 0.75, 1e-5, 12e9, 12e9, 2e-5},
    {"v100_32gb_pcie", 31800000000, 512000000000, 14e12, 0.83, 0.8, 900e9, 0.75, 1e-5, 12e9, 12e9,
     2e-5},
    {"v100_16gb_sxm2", 15955132416, 512000000000, 15.7e12, 0.83, 0.8, 900e9, 0.75, 1e-5, 12e9, 12e9,
     2e-5},
    {"v100_32gb_sxm2", 31800000000, 512000000000, 15.7e12, 0.83, 0.8, 900e9, 0.75, 1e-5, 12e9, 12e9,
     2e-5},
    {"v100_nvlink2", 15955132416, 512000000000, 15.7e12, 0.83, 0.8, 900e9, 0.75, 1e-5, 68e9, 68e9,
     2e-5},
    {"t4", 14200000000, 128000000000, 8.1e12, 0.83, 0.8, 320e9, 0.75, 1e-5, 12e9, 12e9, 2e-5},
    {"a10", 21800000000, 128000000000, 62.5e12, 0.4, 0.6, 600e9, 0.8, 5e-6, 25e9, 25e9, 1.5e-5},
    {"a100_40gb_pcie4", 39400000000, 512000000000, 156e12, 0.4, 0.6, 1555e9, 0.8, 5e-6, 25e9, 25e9,
     1.5e-5},
    {"a100_40gb_sxm4", 39400000000, 512000000000, 156e12, 0.4, 0.6, 1555e9, 0.8, 5e-6, 25e9, 25e9,
     1.5e-5},
    {"a100_80gb_pcie4", 78000000000, 512000000000, 156e12, 0.4, 0.6, 1935e9, 0.8, 5e-6, 25e9, 25e9,
     1.5e-5},
    {"a100_80gb_sxm4", 78000000000, 1024000000000, 156e12, 0.4, 0.6, 2039e9, 0.8, 5e-6, 25e9, 25e9,
     1.5e-5},
    {"l4", 21800000000, 128000000000, 60e12, 0.4, 0.6, 300e9, 0.8, 5e-6, 25e9, 25e9, 1.5e-5},
    {"l40s", 44700000000, 512000000000, 183e12, 0.4, 0.6, 864e9, 0.8, 5e-6, 25e9, 25e9, 1.5e-5},
    {"h100_pcie5", 78000000000, 1024000000000, 378e12, 0.4, 0.6, 2000e9, 0.8, 5e-6, 52e9, 52e9,
     1.5e-5},
    {"h100_sxm5", 78000000000, 1024000000000, 494.5e12, 0.4, 0.6, 3350e9, 0.8, 5e-6, 52e9, 52e9,
     1.5e-5},
    {"h200_sxm5", 139600000000, 1024000000000, 494.5e12, 0.4, 0.6, 4800e9, 0.8, 5e-6, 52e9, 52e9,
     1.5e-5},
    {"gh200_nvlink_c2c", 95000000000, 480000000000, 494.5e12, 0.4, 0.6, 4000e9, 0.8, 5e-6, 360e9,
     360e9, 1.5e-5},
};

TEST(HardwareTest, PresetsHaveThePublishedNumbers) {
  ASSERT_EQ(HardwarePresets().size(), std::size(kPublished));
  for (size_t i = 0; i < std::size(kPublished); ++i) {
    const Published& p = kPublished[i];
    EXPECT_EQ(HardwarePresets()[i].hardware.preset, p.name);
    EXPECT_FALSE(HardwarePresets()[i].about.empty());
    EXPECT_FALSE(HardwarePresets()[i].source.empty()) << p.name;
    EXPECT_FALSE(HardwarePresets()[i].says.empty()) << p.name;
    v1::Hardware options;
    options.set_preset(p.name);
    const auto h = Hardware::FromOptions(options);
    ASSERT_THAT(h, IsOk());
    EXPECT_EQ(h->preset, p.name);
    EXPECT_EQ(h->gpu_memory_bytes, p.gpu_memory_bytes) << p.name;
    EXPECT_EQ(h->host_memory_bytes, p.host_memory_bytes) << p.name;
    EXPECT_EQ(h->peak_flops, p.peak_flops) << p.name;
    EXPECT_EQ(h->eff_conv, p.eff_conv) << p.name;
    EXPECT_EQ(h->eff_matmul, p.eff_matmul) << p.name;
    EXPECT_EQ(h->mem_bytes_per_s, p.mem_bytes_per_s) << p.name;
    EXPECT_EQ(h->mem_eff, p.mem_eff) << p.name;
    EXPECT_EQ(h->launch_s, p.launch_s) << p.name;
    EXPECT_EQ(h->d2h_bytes_per_s, p.d2h_bytes_per_s) << p.name;
    EXPECT_EQ(h->h2d_bytes_per_s, p.h2d_bytes_per_s) << p.name;
    EXPECT_EQ(h->copy_latency_s, p.copy_latency_s) << p.name;
  }
}

// Half of the memory rate of a socket beside such a card: 4 x 19.2, 8 x 25.6, 8 x 38.4, IBM's and
// Grace's.
TEST(HardwareTest, TheHostsRateIsThePresetsOrThatOfDdr4) {
  const auto rate = [](const std::string& text) {
    v1::Hardware options;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &options)) << text;
    const auto hardware = Hardware::FromOptions(options);
    EXPECT_THAT(hardware, IsOk()) << text;
    return hardware->ToReport().hardware().host_mem_bytes_per_s();
  };
  EXPECT_EQ(rate("preset: 'p100_pcie'"), 40e9);
  EXPECT_EQ(rate("preset: 'v100_nvlink2'"), 85e9);
  EXPECT_EQ(rate("preset: 'a100_40gb_pcie4'"), 100e9);
  EXPECT_EQ(rate("preset: 'h100_pcie5'"), 150e9);
  EXPECT_EQ(rate("preset: 'gh200_nvlink_c2c'"), 250e9);
  EXPECT_EQ(rate("preset: 'gh200_nvlink_c2c' host_mem_bytes_per_s: 1"), 1);
  // Every other number is given: there is no preset.
  EXPECT_EQ(rate("gpu_memory_bytes: 1 host_memory_bytes: 0 peak_flops: 1 eff_conv: 1 eff_matmul: 1 "
                 "mem_bytes_per_s: 1 mem_eff: 1 launch_s: 0 d2h_bytes_per_s: 1 h2d_bytes_per_s: 1 "
                 "copy_latency_s: 0"),
            40e9);
}

TEST(HardwareTest, NoPresetIsTheDefault) {
  const auto hardware = Hardware::FromOptions({});
  ASSERT_THAT(hardware, IsOk());
  EXPECT_TRUE(hardware->ToReport().preset_assumed());
  EXPECT_EQ(hardware->preset, "p100_pcie");
}

TEST(HardwareTest, NumbersReplaceThoseOfThePreset) {
  v1::Hardware options;
  options.set_preset("v100_pcie");
  options.set_gpu_memory_bytes(1);
  options.set_host_memory_bytes(0);
  options.set_launch_s(0);
  options.set_eff_conv(1);
  const auto h = Hardware::FromOptions(options);
  ASSERT_THAT(h, IsOk());
  EXPECT_EQ(h->gpu_memory_bytes, 1);
  EXPECT_EQ(h->host_memory_bytes, 0);
  EXPECT_EQ(h->launch_s, 0);
  EXPECT_EQ(h->eff_conv, 1);
  EXPECT_EQ(h->peak_flops, 14e12);  // The preset's.
}

TEST(HardwareTest, WithEveryNumberGivenThereIsNoPreset) {
  v1::Hardware options = Hardware::FromOptions({})->ToReport().hardware();
  EXPECT_EQ(options.preset(), "p100_pcie");
  options.clear_preset();
  const auto h = Hardware::FromOptions(options);
  ASSERT_THAT(h, IsOk());
  EXPECT_EQ(h->preset, "");
  EXPECT_EQ(h->peak_flops, 10.6e12);
  // With one number missing, the default preset must fill it in.
  options.clear_mem_eff();
  EXPECT_EQ(Hardware::FromOptions(options)->preset, "p100_pcie");
}

TEST(HardwareTest, ToProtoHasEveryNumberAndComesBackTheSame) {
  for (const HardwarePreset& preset : HardwarePresets()) {
    const v1::Hardware proto = preset.hardware.ToReport().hardware();
    const google::protobuf::Descriptor* type = v1::Hardware::descriptor();
    for (int i = 0; i < type->field_count(); ++i) {
      if (type->field(i)->is_repeated()) continue;  // For single GPUs: no preset has any.
      EXPECT_TRUE(proto.GetReflection()->HasField(proto, type->field(i))) << type->field(i)->name();
    }
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(
        Hardware::FromOptions(proto)->ToReport().hardware(), proto));
  }
}

TEST(HardwareTest, TheDeviceBudgetIsLessTheReserve) {
  v1::Hardware options;
  options.set_gpu_memory_bytes(100'000'000);
  EXPECT_EQ(Hardware::FromOptions(options)->device_budget_bytes(), 90'000'000);
  EXPECT_THAT(Hardware::FromOptions(options)->MemoryOrigin(), "gpu_memory_bytes, less 10%");
  options.set_allocator_reserve(0);
  EXPECT_EQ(Hardware::FromOptions(options)->device_budget_bytes(), 100'000'000);
  EXPECT_THAT(Hardware::FromOptions(options)->MemoryOrigin(), "gpu_memory_bytes");
  // The maximum values: nothing overflows or loses digits in a double.
  options.set_gpu_memory_bytes(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Hardware::FromOptions(options)->device_budget_bytes(),
            std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Hardware::FromOptions(options)->ToReport().device_budget_bytes(),
            std::numeric_limits<int64_t>::max());
}

TEST(HardwareTest, TheFragmentationFractionIsOfTheMemory) {
  v1::Hardware options;
  EXPECT_EQ(Hardware::FromOptions(options)->internal_fragmentation_fraction, 0);
  // Relative to all that the allocator may use, including the reserve.
  options.set_gpu_memory_bytes(100'000'000);
  options.set_internal_fragmentation_fraction(0.25);
  EXPECT_EQ(Hardware::FromOptions(options)->max_fragmentation_bytes(), 25'000'000);
  options.set_gpu_memory_bytes(1'001);
  EXPECT_EQ(Hardware::FromOptions(options)->max_fragmentation_bytes(), 250);
  options.set_gpu_memory_bytes(std::numeric_limits<int64_t>::max());
  options.set_internal_fragmentation_fraction(std::nextafter(1.0, 0.0));
  ASSERT_TRUE(Hardware::FromOptions(options).ok());
  EXPECT_GT(Hardware::FromOptions(options)->max_fragmentation_bytes(), int64_t{1} << 62);
  options.set_internal_fragmentation_fraction(1);
  EXPECT_THAT(std::string(Hardware::FromOptions(options).status().message()),
              HasSubstr("hardware.internal_fragmentation_fraction is 1; give a number from 0, "
                        "below 1"));
}

TEST(HardwareTest, TheMemoryForABudgetIsTheLeastThatGivesIt) {
  for (double reserve : {0.0, 0.1, 0.125, 1.0 / 3, 0.9}) {
    v1::Hardware options;
    options.set_allocator_reserve(reserve);
    Hardware hardware = *Hardware::FromOptions(options);
    for (int64_t budget : {int64_t{1}, int64_t{255}, int64_t{1} << 20, int64_t{16'106'127'361}}) {
      hardware.gpu_memory_bytes = hardware.GpuMemoryFor(budget);
      EXPECT_EQ(hardware.device_budget_bytes(), budget) << reserve;
      --hardware.gpu_memory_bytes;
      EXPECT_LT(hardware.device_budget_bytes(), budget) << reserve;
    }
    EXPECT_GT(hardware.GpuMemoryFor(std::numeric_limits<int64_t>::max() - 1), 0);
  }
}

TEST(HardwareTest, PresetsHaveNvidiasComputeCapabilities) {
  const struct {
    absl::string_view card;
    double compute_capability;
  } kCards[] = {{"p100", 6.0}, {"v100", 7.0}, {"t4", 7.5},   {"a100", 8.0}, {"a10", 8.6},
                {"l40s", 8.9}, {"l4", 8.9},   {"h100", 9.0}, {"h200", 9.0}, {"gh200", 9.0}};
  for (const HardwarePreset& preset : HardwarePresets()) {
    const absl::string_view name = preset.hardware.preset;
    const auto card = std::find_if(std::begin(kCards), std::end(kCards), [&](const auto& known) {
      return name == known.card || absl::StartsWith(name, absl::StrCat(known.card, "_"));
    });
    ASSERT_NE(card, std::end(kCards)) << name;
    EXPECT_EQ(preset.hardware.compute_capability, card->compute_capability) << name;
  }
}

TEST(HardwareTest, ComputeCapabilityAndTf32AreThePresetsUnlessGiven) {
  v1::Hardware options;
  options.set_preset("a10");
  EXPECT_EQ(Hardware::FromOptions(options)->compute_capability, 8.6);
  EXPECT_TRUE(Hardware::FromOptions(options)->tf32);
  options.set_compute_capability(1);
  options.set_tf32(false);
  const auto given = Hardware::FromOptions(options);
  ASSERT_THAT(given, IsOk());
  EXPECT_EQ(given->compute_capability, 1);
  EXPECT_FALSE(given->tf32);
  EXPECT_EQ(given->ToReport().hardware().compute_capability(), 1);
  EXPECT_FALSE(given->ToReport().hardware().tf32());
  options.set_compute_capability(100);
  EXPECT_THAT(Hardware::FromOptions(options), IsOk());
}

TEST(HardwareTest, AClassOfKernelsHasItsOwnRateOrThatOfItsKind) {
  const auto rate = [](const std::string& text, KernelClass kernels) {
    v1::Hardware options;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "peak_flops: 1000 mem_bytes_per_s: 100 eff_conv: 0.5 eff_matmul: 0.25 mem_eff: 0.75 " +
            text,
        &options));
    return testing::ValueOrDie(Hardware::FromOptions(options), "hardware").KernelRate(kernels);
  };
  EXPECT_EQ(rate("", KernelClass::kElementwise), 75);
  EXPECT_EQ(rate("", KernelClass::kGather), 75);
  EXPECT_EQ(rate("", KernelClass::kConvolutionNchw), 500);
  EXPECT_EQ(rate("", KernelClass::kDepthwiseConvolution), 500);
  EXPECT_EQ(rate("", KernelClass::kMatmul), 250);
  EXPECT_EQ(rate("", KernelClass::kHalfMatmul), 250);
  const std::string gather = "efficiencies { kernels: 'gather' efficiency: 0.5 }";
  EXPECT_EQ(rate(gather, KernelClass::kGather), 50);
  EXPECT_EQ(rate(gather, KernelClass::kPooling), 75);
  EXPECT_EQ(rate("efficiencies { kernels: 'half_matmul' efficiency: 8 }", KernelClass::kHalfMatmul),
            8000);
  // A value from a file may be overridden.
  EXPECT_EQ(
      rate(gather + " efficiencies { kernels: 'gather' efficiency: 0.25 }", KernelClass::kGather),
      25);
}

TEST(HardwareTest, ReportsNameTheClassesThatWereGiven) {
  v1::Hardware options;
  options.set_preset("t4");
  EXPECT_TRUE(Hardware::FromOptions(options)->ToReport().hardware().efficiencies().empty());
  v1::KernelEfficiency* given = options.add_efficiencies();
  given->set_kernels("half_convolution_nhwc");
  given->set_efficiency(3);
  const v1::HardwareReport report = Hardware::FromOptions(options)->ToReport();
  ASSERT_EQ(report.hardware().efficiencies_size(), 1);
  EXPECT_EQ(report.hardware().efficiencies(0).kernels(), "half_convolution_nhwc");
  EXPECT_EQ(report.hardware().efficiencies(0).efficiency(), 3);
  // A report's machine can be given again.
  EXPECT_EQ(Hardware::FromOptions(report.hardware())->KernelRate(KernelClass::kHalfConvolutionNhwc),
            3 * report.hardware().peak_flops());
}

TEST(HardwareTest, BadEfficienciesOfClassesAreRefusedByName) {
  for (const std::string text :
       {"transpose: 0", "transpose: -1", "transpose: nan", "transpose: inf", "transpose: 1.01",
        "matmul: 2", "half_matmul: 17", "half_matmul: nan", "half_matmul: 1e300"}) {
    v1::Hardware options;
    const size_t colon = text.find(':');
    options.add_efficiencies()->set_kernels(text.substr(0, colon));
    options.mutable_efficiencies(0)->set_efficiency(std::stod(text.substr(colon + 1)));
    const absl::Status status = Hardware::FromOptions(options).status();
    EXPECT_EQ(GetErrorReason(status), v1::ERROR_REASON_BAD_OPTION) << text << ": " << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("hardware.efficiencies: '" + text.substr(0, colon) + "' is "));
  }
  for (const std::string name : {"", "Transpose", "half", "gathers"}) {
    v1::Hardware options;
    options.add_efficiencies()->set_kernels(name);
    options.mutable_efficiencies(0)->set_efficiency(0.5);
    const absl::Status status = Hardware::FromOptions(options).status();
    EXPECT_EQ(GetErrorReason(status), v1::ERROR_REASON_BAD_OPTION) << name << ": " << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("there is no class of kernels '" + name + "'"),
                      HasSubstr("there are elementwise, broadcast, "), HasSubstr("half_matmul")));
  }
}

TEST(HardwareTest, UnknownPresetListsThoseThatExist) {
  v1::Hardware options;
  options.set_preset("p1000\n");
  const absl::Status status = Hardware::FromOptions(options).status();
  EXPECT_EQ(GetErrorReason(status), v1::ERROR_REASON_BAD_OPTION);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("hardware.preset"), HasSubstr("p1000\\n"), HasSubstr("p100_pcie,"),
                    HasSubstr("h100_pcie5")));
}

TEST(HardwareTest, BadNumbersAreRefusedByName) {
  for (const std::string text : {"gpu_memory_bytes: 0",
                                 "host_memory_bytes: -1",
                                 "peak_flops: 0",
                                 "peak_flops: inf",
                                 "eff_conv: 1.01",
                                 "eff_matmul: 0",
                                 "mem_bytes_per_s: -1",
                                 "mem_eff: nan",
                                 "launch_s: nan",
                                 "launch_s: 1.5",
                                 "d2h_bytes_per_s: nan",
                                 "h2d_bytes_per_s: inf",
                                 "copy_latency_s: -1e-9",
                                 "host_mem_bytes_per_s: 0",
                                 "host_mem_bytes_per_s: nan",
                                 "host_mem_bytes_per_s: inf",
                                 "allocator_reserve: 1",
                                 "allocator_reserve: nan",
                                 "internal_fragmentation_fraction: -1e-9",
                                 "internal_fragmentation_fraction: 1",
                                 "internal_fragmentation_fraction: nan",
                                 "compute_capability: nan",
                                 "compute_capability: -7",
                                 "compute_capability: 0.3",
                                 "compute_capability: 100.1",
                                 "compute_capability: 1e9"}) {
    v1::Hardware options;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &options)) << text;
    const absl::Status status = Hardware::FromOptions(options).status();
    EXPECT_EQ(GetErrorReason(status), v1::ERROR_REASON_BAD_OPTION) << text << ": " << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("hardware." + text.substr(0, text.find(':')) + " is "));
  }
}

}  // namespace
}  // namespace spillway::core
