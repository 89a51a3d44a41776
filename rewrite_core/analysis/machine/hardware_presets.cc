// The presets: common cluster machines, one row each. See CONTRIBUTING.md, "How to add".
//
// Numbers that do not come from a row's own source:
//   gpu_memory_bytes   the part of a card that the allocator gets: for 16 GB as observed with
//                      TensorFlow 1.x, and about the same share for 40 and 80 GB. For the others,
//                      nvidia-smi's memory.total less what client_lib/internal/this_machine.cc
//                      deducts, rounded down to 0.1 GB.
//   host_memory_bytes  that of a typical host with such a card: an assumption.
//   peak_flops         fp32 up to Volta and on T4; from Ampere on TensorFloat-32 without sparsity,
//                      which TensorFlow uses to multiply float32 (strict fp32 on A100: 19.5e12).
//   compute_capability NVIDIA's list, https://developer.nvidia.com/cuda-gpus
//   efficiencies       eff_conv of p100_pcie is fitted to 255 images/s of ResNet-50 fp32 at batch
//                      150. The other cards copy the efficiencies of their kind; not calibrated.
//   host_mem_bytes_per_s  half of the memory rate of one socket of a typical host with such a card,
//                      which a few threads reach: an assumption. (One thread of an EPYC of 2023
//                      updates by Adam at 25 GB/s.)
//   links              the rate of pinned copies: 12 GB/s over PCIe 3.0 x16 (of 15.75), 25 over 4.0
//                      (of 31.5), 52 over 5.0 (of 63); for NVLink the same four fifths, except for
//                      v100_nvlink2, which is published.
#include <vector>

#include "absl/types/span.h"
#include "rewrite_core/analysis/machine/hardware.h"

namespace spillway::core {
namespace {

constexpr double kPcie3 = 12e9, kPcie4 = 25e9, kPcie5 = 52e9;  // Bytes per second, each way.
// Bytes per second: four channels of DDR4-2400, eight of DDR4-3200 and of DDR5-4800; Grace.
constexpr double kDdr4 = kDefaultHostMemBytesPerS, kManyDdr4 = 100e9, kDdr5 = 150e9, kGrace = 250e9;
constexpr int64_t kOf16Gb = 15'955'132'416;
constexpr int64_t kOf40Gb = 39'400'000'000;
constexpr int64_t kOf80Gb = 78'000'000'000;
constexpr int64_t kSmallHost = 128'000'000'000;
constexpr int64_t kHost = 512'000'000'000;
constexpr int64_t kLargeHost = 1'024'000'000'000;

constexpr char kP100Sheet[] =
    "https://images.nvidia.com/content/tesla/pdf/nvidia-tesla-p100-PCIe-datasheet.pdf";
constexpr char kV100Sheet[] =
    "https://images.nvidia.com/content/technologies/volta/pdf/"
    "volta-v100-datasheet-update-us-1165301-r5.pdf";
constexpr char kT4Sheet[] =
    "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/tesla-t4/"
    "t4-tensor-core-datasheet-951643.pdf";
constexpr char kA100Sheet[] =
    "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/"
    "nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf";
constexpr char kA10Sheet[] =
    "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a10/pdf/a10-datasheet.pdf";
constexpr char kL4Page[] = "https://www.nvidia.com/en-us/data-center/l4/";
constexpr char kL40sPage[] = "https://www.nvidia.com/en-us/data-center/l40s/";
constexpr char kH100Page[] = "https://www.nvidia.com/en-us/data-center/h100/";
constexpr char kH200Page[] = "https://www.nvidia.com/en-us/data-center/h200/";
constexpr char kGh200Page[] = "https://www.nvidia.com/en-us/data-center/grace-hopper-superchip/";

// How much of the card's peak the kernels of a generation reach.
struct Kind {
  double eff_conv, eff_matmul, mem_eff, launch_s, copy_latency_s;
};
constexpr Kind kFp32 = {0.83, 0.8, 0.75, 10e-6, 20e-6};
constexpr Kind kTf32 = {0.4, 0.6, 0.8, 5e-6, 15e-6};

// A preset, field by field: bytes, FLOP/s, bytes per second (a link's in each direction), seconds.
class Preset {
 public:
  explicit Preset(const char* name) {
    preset_.hardware.preset = name;
    preset_.hardware.gpu_memory_source = v1::MEMORY_SOURCE_PRESET;
  }
  operator HardwarePreset() const { return preset_; }

  Preset& About(const char* about) { return Set(&HardwarePreset::about, about); }
  Preset& Source(const char* source, const char* says) {
    Set(&HardwarePreset::source, source);
    return Set(&HardwarePreset::says, says);
  }
  Preset& GpuMemory(int64_t bytes) { return Set(&Hardware::gpu_memory_bytes, bytes); }
  Preset& HostMemory(int64_t bytes) { return Set(&Hardware::host_memory_bytes, bytes); }
  Preset& ComputeCapability(double version) { return Set(&Hardware::compute_capability, version); }
  Preset& PeakFlops(double flops) { return Set(&Hardware::peak_flops, flops); }
  Preset& MemoryBandwidth(double bytes_per_s) {
    return Set(&Hardware::mem_bytes_per_s, bytes_per_s);
  }
  Preset& Link(double bytes_per_s) {
    Set(&Hardware::d2h_bytes_per_s, bytes_per_s);
    return Set(&Hardware::h2d_bytes_per_s, bytes_per_s);
  }
  Preset& HostRate(double bytes_per_s) { return Set(&Hardware::host_mem_bytes_per_s, bytes_per_s); }
  Preset& Kernels(const Kind& kind) {
    Set(&Hardware::eff_conv, kind.eff_conv);
    Set(&Hardware::eff_matmul, kind.eff_matmul);
    Set(&Hardware::mem_eff, kind.mem_eff);
    Set(&Hardware::launch_s, kind.launch_s);
    return Set(&Hardware::copy_latency_s, kind.copy_latency_s);
  }

 private:
  template <typename Value>
  Preset& Set(Value Hardware::*field, Value value) {
    preset_.hardware.*field = value;
    return *this;
  }
  Preset& Set(absl::string_view HardwarePreset::*field, absl::string_view value) {
    preset_.*field = value;
    return *this;
  }

  HardwarePreset preset_;
};

// In the order of --help and errors: the default first, then by architecture.
std::vector<HardwarePreset> MakePresets() {
  return {
      Preset("p100_pcie")
          .About("P100 16 GB, PCIe 3.0")
          .Source(kP100Sheet, "fp32 10.6 TFLOPS (SXM2; 9.3 PCIe), 732 GB/s, PCIe x16 Gen3")
          .GpuMemory(kOf16Gb)
          .HostMemory(kHost)
          .ComputeCapability(6.0)
          .PeakFlops(10.6e12)
          .MemoryBandwidth(732e9)
          .Link(kPcie3)
          .HostRate(kDdr4)
          .Kernels(kFp32),
      Preset("v100_pcie")
          .About("V100 16 GB, PCIe 3.0")
          .Source(kV100Sheet, "fp32 14 TFLOPS, 900 GB/s, 32 GB/s both ways")
          .GpuMemory(kOf16Gb)
          .HostMemory(kHost)
          .ComputeCapability(7.0)
          .PeakFlops(14e12)
          .MemoryBandwidth(900e9)
          .Link(kPcie3)
          .HostRate(kDdr4)
          .Kernels(kFp32),
      Preset("v100_32gb_pcie")
          .About("V100 32 GB, PCIe 3.0")
          .Source(kV100Sheet, "fp32 14 TFLOPS, 900 GB/s, 32 GB/s both ways; nvidia-smi 32768 MiB")
          .GpuMemory(31'800'000'000)
          .HostMemory(kHost)
          .ComputeCapability(7.0)
          .PeakFlops(14e12)
          .MemoryBandwidth(900e9)
          .Link(kPcie3)
          .HostRate(kDdr4)
          .Kernels(kFp32),
      Preset("v100_16gb_sxm2")
          .About("V100 16 GB SXM2, PCIe 3.0 to the host")
          .Source(kV100Sheet, "fp32 15.7 TFLOPS, 900 GB/s; NVLink goes to other GPUs")
          .GpuMemory(kOf16Gb)
          .HostMemory(kHost)
          .ComputeCapability(7.0)
          .PeakFlops(15.7e12)
          .MemoryBandwidth(900e9)
          .Link(kPcie3)
          .HostRate(kDdr4)
          .Kernels(kFp32),
      Preset("v100_32gb_sxm2")
          .About("V100 32 GB SXM2, PCIe 3.0 to the host")
          .Source(kV100Sheet, "fp32 15.7 TFLOPS, 900 GB/s; nvidia-smi 32768 MiB")
          .GpuMemory(31'800'000'000)
          .HostMemory(kHost)
          .ComputeCapability(7.0)
          .PeakFlops(15.7e12)
          .MemoryBandwidth(900e9)
          .Link(kPcie3)
          .HostRate(kDdr4)
          .Kernels(kFp32),
      Preset("v100_nvlink2")
          .About("V100 16 GB, NVLink to an IBM POWER9 host")
          .Source(kV100Sheet,
                  "fp32 15.7 TFLOPS (SXM2), 900 GB/s; three links of 25 GB/s each way to a POWER9")
          .GpuMemory(kOf16Gb)
          .HostMemory(kHost)
          .ComputeCapability(7.0)
          .PeakFlops(15.7e12)
          .MemoryBandwidth(900e9)
          .Link(68e9)
          .HostRate(85e9)
          .Kernels(kFp32),
      Preset("t4")
          .About("T4 16 GB, PCIe 3.0")
          .Source(kT4Sheet, "fp32 8.1 TFLOPS, up to 320 GB/s, x16 PCIe Gen3; nvidia-smi 15360 MiB")
          .GpuMemory(14'200'000'000)
          .HostMemory(kSmallHost)
          .ComputeCapability(7.5)
          .PeakFlops(8.1e12)
          .MemoryBandwidth(320e9)
          .Link(kPcie3)
          .HostRate(kDdr4)
          .Kernels(kFp32),
      Preset("a10")
          .About("A10 24 GB, PCIe 4.0, TF32")
          .Source(kA10Sheet,
                  "TF32 62.5 TFLOPS, 600 GB/s, PCIe Gen4 64 GB/s both ways; nvidia-smi 23028 MiB")
          .GpuMemory(21'800'000'000)
          .HostMemory(kSmallHost)
          .ComputeCapability(8.6)
          .PeakFlops(62.5e12)
          .MemoryBandwidth(600e9)
          .Link(kPcie4)
          .HostRate(kManyDdr4)
          .Kernels(kTf32),
      Preset("a100_40gb_pcie4")
          .About("A100 40 GB, PCIe 4.0, TF32")
          .Source(kA100Sheet, "TF32 156 TFLOPS, 1,555 GB/s, PCIe Gen4 64 GB/s both ways")
          .GpuMemory(kOf40Gb)
          .HostMemory(kHost)
          .ComputeCapability(8.0)
          .PeakFlops(156e12)
          .MemoryBandwidth(1555e9)
          .Link(kPcie4)
          .HostRate(kManyDdr4)
          .Kernels(kTf32),
      Preset("a100_40gb_sxm4")
          .About("A100 40 GB SXM4, PCIe 4.0 to the host, TF32")
          .Source(kA100Sheet, "TF32 156 TFLOPS, 1,555 GB/s, PCIe Gen4 64 GB/s both ways")
          .GpuMemory(kOf40Gb)
          .HostMemory(kHost)
          .ComputeCapability(8.0)
          .PeakFlops(156e12)
          .MemoryBandwidth(1555e9)
          .Link(kPcie4)
          .HostRate(kManyDdr4)
          .Kernels(kTf32),
      Preset("a100_80gb_pcie4")
          .About("A100 80 GB, PCIe 4.0, TF32")
          .Source(kA100Sheet, "TF32 156 TFLOPS, 1,935 GB/s, PCIe Gen4 64 GB/s both ways")
          .GpuMemory(kOf80Gb)
          .HostMemory(kHost)
          .ComputeCapability(8.0)
          .PeakFlops(156e12)
          .MemoryBandwidth(1935e9)
          .Link(kPcie4)
          .HostRate(kManyDdr4)
          .Kernels(kTf32),
      Preset("a100_80gb_sxm4")
          .About("A100 80 GB SXM4, PCIe 4.0 to the host, TF32")
          .Source(kA100Sheet, "TF32 156 TFLOPS, 2,039 GB/s, PCIe Gen4 64 GB/s both ways")
          .GpuMemory(kOf80Gb)
          .HostMemory(kLargeHost)
          .ComputeCapability(8.0)
          .PeakFlops(156e12)
          .MemoryBandwidth(2039e9)
          .Link(kPcie4)
          .HostRate(kManyDdr4)
          .Kernels(kTf32),
      Preset("l4")
          .About("L4 24 GB, PCIe 4.0, TF32")
          .Source(kL4Page,
                  "TF32 120 TFLOPS with sparsity, half without, 300 GB/s, PCIe Gen4 x16 64 GB/s "
                  "both ways; nvidia-smi 23034 MiB")
          .GpuMemory(21'800'000'000)
          .HostMemory(kSmallHost)
          .ComputeCapability(8.9)
          .PeakFlops(60e12)
          .MemoryBandwidth(300e9)
          .Link(kPcie4)
          .HostRate(kManyDdr4)
          .Kernels(kTf32),
      Preset("l40s")
          .About("L40S 48 GB, PCIe 4.0, TF32")
          .Source(
              kL40sPage,
              "TF32 183 TFLOPS, 864 GB/s, PCIe Gen4 x16 64 GB/s both ways; nvidia-smi 46068 MiB")
          .GpuMemory(44'700'000'000)
          .HostMemory(kHost)
          .ComputeCapability(8.9)
          .PeakFlops(183e12)
          .MemoryBandwidth(864e9)
          .Link(kPcie4)
          .HostRate(kManyDdr4)
          .Kernels(kTf32),
      Preset("h100_pcie5")
          .About("H100 80 GB, PCIe 5.0, TF32")
          .Source(kH100Page,
                  "PCIe: TF32 756 TFLOPS with sparsity, half without, 2 TB/s, PCIe Gen5 128 GB/s "
                  "both ways")
          .GpuMemory(kOf80Gb)
          .HostMemory(kLargeHost)
          .ComputeCapability(9.0)
          .PeakFlops(378e12)
          .MemoryBandwidth(2000e9)
          .Link(kPcie5)
          .HostRate(kDdr5)
          .Kernels(kTf32),
      Preset("h100_sxm5")
          .About("H100 80 GB SXM5, PCIe 5.0 to the host, TF32")
          .Source(kH100Page,
                  "SXM: TF32 989 TFLOPS with sparsity, half without, 3.35 TB/s, PCIe Gen5 128 GB/s "
                  "both ways")
          .GpuMemory(kOf80Gb)
          .HostMemory(kLargeHost)
          .ComputeCapability(9.0)
          .PeakFlops(494.5e12)
          .MemoryBandwidth(3350e9)
          .Link(kPcie5)
          .HostRate(kDdr5)
          .Kernels(kTf32),
      Preset("h200_sxm5")
          .About("H200 141 GB SXM5, PCIe 5.0 to the host, TF32")
          .Source(kH200Page,
                  "TF32 989 TFLOPS with sparsity, half without, 4.8 TB/s, PCIe Gen5 128 GB/s both "
                  "ways; nvidia-smi 143771 MiB")
          .GpuMemory(139'600'000'000)
          .HostMemory(kLargeHost)
          .ComputeCapability(9.0)
          .PeakFlops(494.5e12)
          .MemoryBandwidth(4800e9)
          .Link(kPcie5)
          .HostRate(kDdr5)
          .Kernels(kTf32),
      Preset("gh200_nvlink_c2c")
          .About("GH200 96 GB, NVLink-C2C to the host, TF32")
          .Source(kGh200Page,
                  "TF32 989 TFLOPS with sparsity, half without, 96 GB at 4 TB/s, 480 GB LPDDR5X, "
                  "NVLink-C2C 900 GB/s both ways; nvidia-smi 97871 MiB")
          .GpuMemory(95'000'000'000)
          .HostMemory(480'000'000'000)
          .ComputeCapability(9.0)
          .PeakFlops(494.5e12)
          .MemoryBandwidth(4000e9)
          .Link(360e9)
          .HostRate(kGrace)
          .Kernels(kTf32),
  };
}

}  // namespace

absl::Span<const HardwarePreset> HardwarePresets() {
  static const auto& presets = *new std::vector<HardwarePreset>(MakePresets());
  return presets;
}

}  // namespace spillway::core
