// Hardware: the machine that a step is simulated on, as plain numbers with units in their names,
// and the presets that stand for known machines.
//
// Rates are those that a program reaches, not those of a data sheet, unless an efficiency goes with
// them. Link rates are for pinned copies, per direction, with both directions in use. The fields
// are those of spillway.v1.Hardware, which documents the ranges.
//
// Thread safety: everything here is a value or constant.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_MACHINE_HARDWARE_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_MACHINE_HARDWARE_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "spillway/v1/hardware.pb.h"

namespace spillway::core {

// TFLMS v2 plans for 0.9 of the memory. Measured in TensorFlow, with a memory-limited server in
// place of a GPU (tests/tensorflow/memory_limit.py): steps take 0.93 to 1.06 times the simulated
// memory, a few 1.12 to 1.15 times; there, two kernels may run concurrently.
inline constexpr double kDefaultAllocatorReserve = 0.1;

// TensorFlow's allocator always splits a free chunk that exceeds the request by this much
// (BFCAllocator::FindChunkPtr in tensorflow/core/common_runtime/bfc_allocator.cc, if
// Options::fragmentation_fraction is 0).
inline constexpr int64_t kDefaultMaxFragmentationBytes = int64_t{128} << 20;

// From the first GPU with CUDA to far beyond the latest (12.1).
inline constexpr double kMinComputeCapability = 1, kMaxComputeCapability = 100;
// That of the oldest GPU with a preset, P100, where kernels take the most memory.
inline constexpr double kLeastComputeCapability = 6.0;

// Classes of kernels that are alike in speed: see Hardware.efficiencies in hardware.proto.
enum class KernelClass : uint8_t {
  kElementwise,  // Of those that move data also all others.
  kBroadcast,
  kReduction,
  kNormalization,
  kTranspose,
  kPooling,
  kGather,
  kConvolutionNchw,
  kConvolutionNhwc,
  kHalfConvolutionNchw,
  kHalfConvolutionNhwc,
  kDepthwiseConvolution,
  kMatmul,  // Of matrix products also all others.
  kNarrowMatmul,
  kBatchMatmul,
  kHalfMatmul,
};
inline constexpr size_t kKernelClasses = 16;

// Of a host whose rate is not known: that of a socket with DDR4 (hardware_presets.cc).
inline constexpr double kDefaultHostMemBytesPerS = 40e9;

struct Hardware {
  std::string preset;             // Empty: every number was given.
  bool preset_assumed = false;    // No preset was named, though not every number was given.
  int64_t gpu_memory_bytes = 0;   // Usable by TensorFlow's allocator on each GPU.
  int64_t host_memory_bytes = 0;  // Pinned host memory for the swaps of all GPUs.
  double peak_flops = 0;          // Operations per second; a multiply-add counts as two.
  double eff_conv = 0;            // Share of peak_flops that convolutions reach,
  double eff_matmul = 0;          // and matrix products.
  double mem_bytes_per_s = 0;     // The GPU's own memory,
  double mem_eff = 0;             // and the share of that rate that kernels reach.
  // By class of kernels, in place of the three efficiencies; 0: not given.
  std::array<double, kKernelClasses> efficiencies = {};
  double launch_s = 0;  // From one kernel's launch to the next one's.
  double d2h_bytes_per_s = 0;
  double h2d_bytes_per_s = 0;
  double copy_latency_s = 0;  // Per copy, in addition to its transfer time.
  // The host's memory, as TensorFlow's kernels on CPUs reach it.
  double host_mem_bytes_per_s = kDefaultHostMemBytesPerS;
  // The share of gpu_memory_bytes reserved for memory that is not simulated.
  double allocator_reserve = kDefaultAllocatorReserve;
  // The training session's setting for when its allocator splits chunks. 0: TensorFlow's default.
  double internal_fragmentation_fraction = 0;
  // NVIDIA's version of the GPU's instructions, and whether TensorFlow computes float32 in
  // TensorFloat-32 if available: they decide in which layout kernels compute.
  double compute_capability = kLeastComputeCapability;
  bool tf32 = true;
  // Where gpu_memory_bytes comes from.
  v1::MemorySource gpu_memory_source = v1::MEMORY_SOURCE_UNSPECIFIED;

  // The same in words, with the reserve: "preset p100_pcie, less 10%", "nvidia-smi".
  std::string MemoryOrigin() const;

  // The bytes or operations per second that kernels of a class reach.
  double KernelRate(KernelClass kernels) const;

  // The memory that a step may use on each GPU: gpu_memory_bytes less the reserve.
  int64_t device_budget_bytes() const;
  // How much larger than the request an allocator chunk may be: the fraction's share of
  // gpu_memory_bytes, or TensorFlow's default.
  int64_t max_fragmentation_bytes() const;
  // The smallest gpu_memory_bytes that give this budget.
  int64_t GpuMemoryFor(int64_t device_budget_bytes) const;

  // The named preset (by default kDefaultPreset, unless every number is given), overridden by the
  // given numbers. INVALID_ARGUMENT: BAD_OPTION for an unknown preset and for a number out of
  // range, including NaN and infinity, or of no class; UNKNOWN_OPTION for an unknown
  // gpu_memory_source.
  static absl::StatusOr<Hardware> FromOptions(const v1::Hardware& options);

  // Fills in every number and the budget, but not gpu_memories, which depend on the step.
  v1::HardwareReport ToReport() const;
};

// `PRESET`, `OPTION`, ..., for errors.
std::string MemorySourceName(v1::MemorySource source);

inline constexpr absl::string_view kDefaultPreset = "p100_pcie";

// A machine by name.
struct HardwarePreset {
  absl::string_view about;   // The machine, in one line.
  absl::string_view source;  // Where its numbers are published: the vendor's sheet, a paper,
  absl::string_view says;    // and the figures from there.
  Hardware hardware;
};

// All presets, the default first (hardware_presets.cc).
absl::Span<const HardwarePreset> HardwarePresets();

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_MACHINE_HARDWARE_H_
