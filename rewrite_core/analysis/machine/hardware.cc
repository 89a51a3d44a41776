#include "rewrite_core/analysis/machine/hardware.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/near_names.h"

namespace spillway::core {
namespace {

// The numbers: names, members and ranges.
struct CountField {
  absl::string_view name;
  int64_t Hardware::*member;
  int64_t low;
  bool (v1::Hardware::*has)() const;
  int64_t (v1::Hardware::*get)() const;
  void (v1::Hardware::*set)(int64_t);
};
struct RateField {
  absl::string_view name;
  double Hardware::*member;
  bool above_zero;  // 0 itself is out of range.
  double high;
  bool (v1::Hardware::*has)() const;
  double (v1::Hardware::*get)() const;
  void (v1::Hardware::*set)(double);
};

// The name that clients replace by that of a preset: see hardware.proto.
constexpr absl::string_view kAuto = "auto";

constexpr int kReserveUnits = 1'000'000;  // So that 10% is exact.
constexpr double kFinite = std::numeric_limits<double>::max();
// The largest number below 1, as the upper end of a range that excludes 1.
constexpr double kBelowOne = 1 - std::numeric_limits<double>::epsilon() / 2;

#define SPILLWAY_ACCESS(field) \
  &v1::Hardware::has_##field, &v1::Hardware::field, &v1::Hardware::set_##field
constexpr CountField kCounts[] = {
    {"gpu_memory_bytes", &Hardware::gpu_memory_bytes, 1, SPILLWAY_ACCESS(gpu_memory_bytes)},
    {"host_memory_bytes", &Hardware::host_memory_bytes, 0, SPILLWAY_ACCESS(host_memory_bytes)},
};
constexpr RateField kRates[] = {
    {"peak_flops", &Hardware::peak_flops, true, kFinite, SPILLWAY_ACCESS(peak_flops)},
    {"eff_conv", &Hardware::eff_conv, true, 1, SPILLWAY_ACCESS(eff_conv)},
    {"eff_matmul", &Hardware::eff_matmul, true, 1, SPILLWAY_ACCESS(eff_matmul)},
    {"mem_bytes_per_s", &Hardware::mem_bytes_per_s, true, kFinite,
     SPILLWAY_ACCESS(mem_bytes_per_s)},
    {"mem_eff", &Hardware::mem_eff, true, 1, SPILLWAY_ACCESS(mem_eff)},
    {"launch_s", &Hardware::launch_s, false, 1, SPILLWAY_ACCESS(launch_s)},
    {"d2h_bytes_per_s", &Hardware::d2h_bytes_per_s, true, kFinite,
     SPILLWAY_ACCESS(d2h_bytes_per_s)},
    {"h2d_bytes_per_s", &Hardware::h2d_bytes_per_s, true, kFinite,
     SPILLWAY_ACCESS(h2d_bytes_per_s)},
    {"copy_latency_s", &Hardware::copy_latency_s, false, 1, SPILLWAY_ACCESS(copy_latency_s)},
    {"host_mem_bytes_per_s", &Hardware::host_mem_bytes_per_s, true, kFinite,
     SPILLWAY_ACCESS(host_mem_bytes_per_s)},
    {"allocator_reserve", &Hardware::allocator_reserve, false, 0.9,
     SPILLWAY_ACCESS(allocator_reserve)},
    {"internal_fragmentation_fraction", &Hardware::internal_fragmentation_fraction, false,
     kBelowOne, SPILLWAY_ACCESS(internal_fragmentation_fraction)},
};
#undef SPILLWAY_ACCESS

// By KernelClass: its name, the default efficiency, and its maximum.
struct ClassField {
  absl::string_view name;
  double Hardware::*otherwise;
  double high;
};
// Tensor cores multiply halves up to 8 times as fast as peak_flops, which is for float32 (V100).
constexpr double kMaxHalf = 16;
constexpr ClassField kClassFields[kKernelClasses] = {
    {"elementwise", &Hardware::mem_eff, 1},
    {"broadcast", &Hardware::mem_eff, 1},
    {"reduction", &Hardware::mem_eff, 1},
    {"normalization", &Hardware::mem_eff, 1},
    {"transpose", &Hardware::mem_eff, 1},
    {"pooling", &Hardware::mem_eff, 1},
    {"gather", &Hardware::mem_eff, 1},
    {"convolution_nchw", &Hardware::eff_conv, 1},
    {"convolution_nhwc", &Hardware::eff_conv, 1},
    {"half_convolution_nchw", &Hardware::eff_conv, kMaxHalf},
    {"half_convolution_nhwc", &Hardware::eff_conv, kMaxHalf},
    {"depthwise_convolution", &Hardware::eff_conv, 1},
    {"matmul", &Hardware::eff_matmul, 1},
    {"narrow_matmul", &Hardware::eff_matmul, 1},
    {"batch_matmul", &Hardware::eff_matmul, 1},
    {"half_matmul", &Hardware::eff_matmul, kMaxHalf},
};

// The share that remains after the reserve, in whole millionths: doubles do not represent all byte
// counts exactly.
__int128 KeptUnits(double allocator_reserve) {
  return static_cast<__int128>((1 - allocator_reserve) * kReserveUnits + 0.5);
}

absl::Status BadNumber(absl::string_view name, const std::string& value, absl::string_view range) {
  return BadOptionError(absl::StrCat("hardware.", name), value,
                        absl::StrCat("give a number ", range));
}

std::string UpperEndText(double high) {
  if (high == kFinite) return ", not infinite";
  return high == kBelowOne ? ", below 1" : absl::StrCat(" to ", high);
}

bool HasEveryNumber(const v1::Hardware& options) {
  for (const CountField& field : kCounts) {
    if (!(options.*field.has)()) return false;
  }
  for (const RateField& field : kRates) {
    // These have a default without a preset.
    const bool is_optional = field.member == &Hardware::allocator_reserve ||
                             field.member == &Hardware::internal_fragmentation_fraction ||
                             field.member == &Hardware::host_mem_bytes_per_s;
    if (!is_optional && !(options.*field.has)()) return false;
  }
  return true;
}

absl::Status NoSuchPreset(absl::string_view name) {
  // If it arrives here, no client knows its meaning.
  std::vector<absl::string_view> known;
  if (name != kAuto) known.push_back(kAuto);
  for (const HardwarePreset& preset : HardwarePresets()) known.push_back(preset.hardware.preset);
  return InvalidError(
      v1::ERROR_REASON_BAD_OPTION,
      absl::StrCat("hardware.preset is ", Quoted(name), ", which does not exist",
                   DidYouMean(name, known), "; there are ", absl::StrJoin(known, ", ")),
      {{"option", "hardware.preset"}, {"value", name}});
}

absl::Status SetEfficiency(const v1::KernelEfficiency& given, Hardware* hardware) {
  std::vector<absl::string_view> names;
  for (size_t i = 0; i < kKernelClasses; ++i) {
    const ClassField& field = kClassFields[i];
    names.push_back(field.name);
    if (field.name != given.kernels()) continue;
    // Written so that NaN fails.
    if (given.efficiency() > 0 && given.efficiency() <= field.high) {
      hardware->efficiencies[i] = given.efficiency();
      return absl::OkStatus();
    }
    return InvalidError(
        v1::ERROR_REASON_BAD_OPTION,
        absl::StrCat("hardware.efficiencies: ", Quoted(field.name), " is ", given.efficiency(),
                     "; give a number above 0", UpperEndText(field.high)),
        {{"option", "hardware.efficiencies"}, {"value", absl::StrCat(given.efficiency())}});
  }
  return InvalidError(
      v1::ERROR_REASON_BAD_OPTION,
      absl::StrCat("hardware.efficiencies: there is no class of kernels ", Quoted(given.kernels()),
                   DidYouMean(given.kernels(), names), "; there are ", absl::StrJoin(names, ", ")),
      {{"option", "hardware.efficiencies"}, {"value", given.kernels()}});
}

}  // namespace

absl::StatusOr<Hardware> Hardware::FromOptions(const v1::Hardware& options) {
  Hardware hardware;
  if (!options.preset().empty() || !HasEveryNumber(options)) {
    const absl::string_view name =
        options.preset().empty() ? kDefaultPreset : absl::string_view(options.preset());
    for (const HardwarePreset& preset : HardwarePresets()) {
      if (preset.hardware.preset == name) hardware = preset.hardware;
    }
    if (hardware.preset.empty()) {
      return NoSuchPreset(name);
    }
    hardware.preset_assumed = options.preset().empty();
  }
  for (const CountField& field : kCounts) {
    if (!(options.*field.has)()) continue;
    const int64_t value = (options.*field.get)();
    if (value < field.low) {
      return BadNumber(field.name, absl::StrCat(value), absl::StrCat("of bytes, from ", field.low));
    }
    hardware.*field.member = value;
  }
  for (const RateField& field : kRates) {
    if (!(options.*field.has)()) continue;
    const double value = (options.*field.get)();
    // Written so that NaN fails.
    const bool high_enough = field.above_zero ? value > 0 : value >= 0;
    if (!high_enough || !(value <= field.high)) {
      return BadNumber(
          field.name, absl::StrCat(value),
          absl::StrCat(field.above_zero ? "above 0" : "from 0", UpperEndText(field.high)));
    }
    hardware.*field.member = value;
  }
  if (options.has_compute_capability()) {
    hardware.compute_capability = options.compute_capability();
    // Written so that NaN fails.
    if (!(hardware.compute_capability >= kMinComputeCapability &&
          hardware.compute_capability <= kMaxComputeCapability)) {
      return BadNumber("compute_capability", absl::StrCat(hardware.compute_capability),
                       absl::StrCat("from ", kMinComputeCapability, " to ", kMaxComputeCapability,
                                    ", such as 7.0 or 8.6"));
    }
  }
  for (const v1::KernelEfficiency& given : options.efficiencies()) {
    if (absl::Status s = SetEfficiency(given, &hardware); !s.ok()) return s;
  }
  if (options.has_tf32()) hardware.tf32 = options.tf32();
  hardware.gpu_memory_source = options.gpu_memory_source();
  if (!v1::MemorySource_IsValid(hardware.gpu_memory_source)) {
    return InvalidError(v1::ERROR_REASON_UNKNOWN_OPTION,
                        absl::StrCat("hardware.gpu_memory_source is ", hardware.gpu_memory_source,
                                     ", which this server does not know; leave it out"),
                        {{"option", "hardware.gpu_memory_source"},
                         {"value", absl::StrCat(hardware.gpu_memory_source)}});
  }
  if (hardware.gpu_memory_source == v1::MEMORY_SOURCE_UNSPECIFIED) {
    hardware.gpu_memory_source =
        options.has_gpu_memory_bytes() ? v1::MEMORY_SOURCE_OPTION : v1::MEMORY_SOURCE_PRESET;
  }
  return hardware;
}

std::string Hardware::MemoryOrigin() const {
  const std::string less =
      allocator_reserve > 0 ? absl::StrFormat(", less %.3g%%", 100 * allocator_reserve) : "";
  switch (gpu_memory_source) {
    case v1::MEMORY_SOURCE_OPTION:
      return absl::StrCat("gpu_memory_bytes", less);
    case v1::MEMORY_SOURCE_NVIDIA_SMI:
      return absl::StrCat("nvidia-smi", less);
    default:
      return absl::StrCat("preset ", preset, less);
  }
}

double Hardware::KernelRate(KernelClass kernels) const {
  const size_t i = static_cast<size_t>(kernels);
  double Hardware::*const otherwise = kClassFields[i].otherwise;
  return (otherwise == &Hardware::mem_eff ? mem_bytes_per_s : peak_flops) *
         (efficiencies[i] > 0 ? efficiencies[i] : this->*otherwise);
}

int64_t Hardware::device_budget_bytes() const {
  return static_cast<int64_t>(KeptUnits(allocator_reserve) * gpu_memory_bytes / kReserveUnits);
}

int64_t Hardware::max_fragmentation_bytes() const {
  if (internal_fragmentation_fraction == 0) return kDefaultMaxFragmentationBytes;
  // As BFCAllocator::FindChunkPtr computes it.
  return static_cast<int64_t>(internal_fragmentation_fraction *
                              static_cast<double>(gpu_memory_bytes));
}

int64_t Hardware::GpuMemoryFor(int64_t device_budget_bytes) const {
  const __int128 kept = KeptUnits(allocator_reserve);
  const __int128 bytes =
      (static_cast<__int128>(device_budget_bytes) * kReserveUnits + kept - 1) / kept;
  return static_cast<int64_t>(std::min<__int128>(bytes, std::numeric_limits<int64_t>::max()));
}

v1::HardwareReport Hardware::ToReport() const {
  v1::HardwareReport report;
  v1::Hardware& proto = *report.mutable_hardware();
  proto.set_preset(preset);
  for (const CountField& field : kCounts) (proto.*field.set)(this->*field.member);
  for (const RateField& field : kRates) (proto.*field.set)(this->*field.member);
  for (size_t i = 0; i < kKernelClasses; ++i) {
    if (efficiencies[i] == 0) continue;
    v1::KernelEfficiency* given = proto.add_efficiencies();
    given->set_kernels(std::string(kClassFields[i].name));
    given->set_efficiency(efficiencies[i]);
  }
  proto.set_compute_capability(compute_capability);
  proto.set_tf32(tf32);
  proto.set_gpu_memory_source(gpu_memory_source);
  report.set_device_budget_bytes(device_budget_bytes());
  report.set_preset_assumed(preset_assumed);
  return report;
}

std::string MemorySourceName(v1::MemorySource source) {
  return v1::MemorySource_Name(source).substr(sizeof("MEMORY_SOURCE_") - 1);
}

}  // namespace spillway::core
