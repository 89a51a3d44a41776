#include "client_lib/internal/this_machine.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client_lib/internal/program_output.h"
#include "rewrite_core/analysis/machine/hardware.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/plain_text.h"

namespace spillway::internal {
namespace {

constexpr absl::string_view kAuto = "auto";

#if defined(__powerpc64__)
constexpr Host kThisHost = Host::kPower;
#else
constexpr Host kThisHost = Host::kOther;
#endif

constexpr int64_t kMiB = int64_t{1} << 20;
// More than any GPU has: a larger number is invalid.
constexpr int64_t kMaxMiB = int64_t{1} << 30;

// Memory that the driver and a CUDA context take, which newer drivers include in memory.total: 0.3
// GiB on a P100, 0.6 GiB on a T4 and 0.9 GiB on an A100, by TensorFlow's logs ("Created device ...
// with N MB memory").
constexpr int64_t kDriverMinBytes = 700 * kMiB;
constexpr int64_t kDriverShare = 40;  // A fortieth.

// MinSystemMemory in TensorFlow's gpu_device.cc, taken from free memory: 225 MiB below 2 GiB.
// Above, a twentieth but at least 300 MiB in TensorFlow 1, and in TensorFlow 2 an amount that
// depends on the major compute capability. The larger of the two applies, since a graph does not
// show its TensorFlow version.
constexpr int64_t kSmallGpuBytes = int64_t{2} << 30;
constexpr int64_t kReserveOfSmallGpu = 225 * kMiB;
constexpr int64_t kReserveShare1 = 20;
constexpr int64_t kReserveMin1 = 300 * kMiB;

int64_t Reserve2(int compute_major) {
  // A driver that does not report the capability predates capabilities above 8.
  if (compute_major == 0) compute_major = 8;
  return (compute_major <= 6   ? 500
          : compute_major <= 7 ? 1050
          : compute_major <= 8 ? 1536
                               : 1800) *
         kMiB;
}

// Names as the driver reports them (CardName). The whole name must match: an A10G is not an A10,
// nor is an H100 NVL one of these.
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

// For other cards, the preset of the most similar machine: by compute capability, from these on
// (https://developer.nvidia.com/cuda-gpus: 6.1 is GeForce 10 and P40, 7.5 GeForce 20, 8.6 GeForce
// 30 and A10G, 8.9 GeForce 40, and 10 and 12 are Blackwell). Estimates: if their rates are not
// known either (card_rates.h), cards of one architecture differ by a factor of two and more.
constexpr struct {
  double capability;
  absl::string_view preset;
} kLike[] = {
    {9.0, "h100_pcie5"}, {8.9, "l40s"},      {8.6, "a10"},       {8.0, "a100_40gb_pcie4"},
    {7.5, "t4"},         {7.0, "v100_pcie"}, {6.0, "p100_pcie"},
};

// Drivers differ by less than this, and planned memory is a multiple of it.
constexpr int64_t kFreeStep = 256 * kMiB;

// The allocator's share of free memory.
int64_t LessReserve(int64_t free, int compute_major) {
  if (free < kSmallGpuBytes) return free - kReserveOfSmallGpu;
  return free - std::max({free / kReserveShare1, kReserveMin1, Reserve2(compute_major)});
}

struct Gpu {
  std::string name, uuid;
  bool mig = false;  // Divided into slices, each with a part of the memory.
  int pcie_generation = 0, pcie_width = 0;
  int64_t total_bytes = 0, usable_bytes = 0;
  absl::optional<int64_t> usable_free_bytes;
  double capability = 0;
};

// Of AskMachine.
absl::Status Unknown(absl::string_view why) { return absl::FailedPreconditionError(why); }

// If the preset is `auto`.
absl::Status CannotTell(absl::string_view why) {
  return core::InvalidError(
      v1::ERROR_REASON_BAD_OPTION,
      absl::StrCat("hardware.preset is auto, and ", why,
                   "; name a preset (spillway capabilities lists them) or give the machine's "
                   "numbers"),
      {{"option", "hardware.preset"}, {"value", kAuto}});
}

std::vector<std::vector<std::string>> Cells(absl::string_view csv) {
  std::vector<std::vector<std::string>> rows;
  for (const absl::string_view line : absl::StrSplit(csv, '\n')) {
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    std::vector<std::string> cells = absl::StrSplit(line, ',');
    for (std::string& cell : cells) cell = core::PlainText(absl::StripAsciiWhitespace(cell));
    rows.push_back(std::move(cells));
  }
  return rows;
}

// Sets the memory of each; false if a line cannot be parsed.
bool ParseMemory(const std::vector<std::vector<std::string>>& rows, std::vector<Gpu>* gpus) {
  for (size_t i = 0; i < rows.size(); ++i) {
    Gpu& gpu = (*gpus)[i];
    int64_t mib = 0;
    if (!absl::SimpleAtoi(rows[i][0], &mib) || mib < 1 || mib > kMaxMiB) return false;
    // "8.0"; anything else, such as "[N/A]", is unknown.
    if (rows[i].size() < 2 || !absl::SimpleAtod(rows[i][1], &gpu.capability) ||
        !(gpu.capability >= core::kMinComputeCapability &&
          gpu.capability <= core::kMaxComputeCapability)) {
      gpu.capability = 0;
    }
    gpu.total_bytes = mib * kMiB;
    const int compute_major = static_cast<int>(gpu.capability);
    gpu.usable_bytes = UsableBytes(gpu.total_bytes, compute_major);
    if (gpu.usable_bytes <= 0) return false;
    int64_t free_mib = 0;
    if (rows[i].size() > 2 && absl::SimpleAtoi(rows[i][2], &free_mib) && free_mib >= 0 &&
        free_mib <= mib) {
      gpu.usable_free_bytes = std::max<int64_t>(LessReserve(free_mib * kMiB, compute_major), 0);
    }
  }
  return true;
}

// A number in that range, or 0.
int Within(absl::string_view cell, int low, int high) {
  int value = 0;
  return absl::SimpleAtoi(cell, &value) && value >= low && value <= high ? value : 0;
}

void ParsePlaces(const std::vector<std::vector<std::string>>& rows, std::vector<Gpu>* gpus) {
  for (size_t i = 0; i < rows.size(); ++i) {
    Gpu& gpu = (*gpus)[i];
    std::vector<std::string> cells = rows[i];
    cells.resize(4);
    gpu.uuid = cells[0];
    gpu.mig = cells[1] == "Enabled";
    gpu.pcie_generation = Within(cells[2], 1, 6);
    gpu.pcie_width = Within(cells[3], 1, 16);
  }
}

// Those that CUDA shows a program, by the rules of the CUDA programming guide
// (CUDA_VISIBLE_DEVICES): indices, or the first characters of a UUID; the first that names no GPU
// ends the list.
absl::StatusOr<std::vector<Gpu>> Visible(std::vector<Gpu> gpus,
                                         absl::optional<absl::string_view> visible) {
  if (!visible.has_value()) return gpus;
  std::vector<Gpu> shown;
  bool by_index = false;
  for (absl::string_view word : absl::StrSplit(*visible, ',')) {
    word = absl::StripAsciiWhitespace(word);
    if (absl::StartsWith(word, "MIG-")) {
      return Unknown("CUDA_VISIBLE_DEVICES names a MIG slice, whose memory is not looked up");
    }
    int index = -1;
    if (!absl::SimpleAtoi(word, &index)) {
      const auto named = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& gpu) {
        return absl::StartsWith(word, "GPU-") && absl::StartsWith(gpu.uuid, word);
      });
      index = named == gpus.end() ? -1 : static_cast<int>(named - gpus.begin());
    } else {
      by_index = true;
    }
    if (index < 0 || index >= static_cast<int>(gpus.size())) break;
    shown.push_back(gpus[static_cast<size_t>(index)]);
  }
  if (shown.empty()) return Unknown("CUDA_VISIBLE_DEVICES hides all GPUs");
  // CUDA numbers them by speed, nvidia-smi by bus: if they differ, any of them may be meant.
  const bool alike = std::all_of(gpus.begin(), gpus.end(), [&](const Gpu& gpu) {
    return gpu.name == gpus[0].name && gpu.usable_bytes == gpus[0].usable_bytes;
  });
  return by_index && !alike ? gpus : shown;
}

// The rate of pinned copies over a link of 16 lanes of each generation, in bytes per second, as in
// the presets: 12 GB/s for PCIe 3.0, and about twice as much for each that follows.
double LinkRate(int generation, int width) {
  constexpr double kRates[] = {0, 3e9, 6e9, 12e9, 25e9, 52e9, 104e9};
  return kRates[generation] * width / 16;
}

// `NVIDIA H200 and 2 times NVIDIA L4`: each kind once, in the order of their first.
std::string GpusText(const std::vector<Gpu>& gpus) {
  std::vector<std::pair<std::string, int>> kinds;
  for (const Gpu& gpu : gpus) {
    const auto kind = std::find_if(kinds.begin(), kinds.end(),
                                   [&](const auto& known) { return known.first == gpu.name; });
    if (kind == kinds.end()) {
      kinds.push_back({gpu.name, 1});
    } else {
      ++kind->second;
    }
  }
  return absl::StrJoin(kinds, " and ", [](std::string* out, const auto& kind) {
    absl::StrAppend(out, kind.second > 1 ? absl::StrCat(kind.second, " times ") : "",
                    kind.first.empty() ? "a GPU" : kind.first);
  });
}

// The compute capability of a preset; 0 if none has that name.
double CapabilityOf(absl::string_view preset) {
  for (const core::HardwarePreset& known : core::HardwarePresets()) {
    if (known.hardware.preset == preset) return known.hardware.compute_capability;
  }
  return 0;
}

// Sets the preset, or why none applies.
void FindPreset(const std::vector<Gpu>& gpus, const Gpu& least, Host host, ThisMachine* machine) {
  if (std::any_of(gpus.begin(), gpus.end(),
                  [&](const Gpu& gpu) { return gpu.name != least.name; })) {
    machine->why_none = "there is no preset for several kinds of GPUs";
    return;
  }
  if (least.name.empty()) {
    machine->why_none = "nvidia-smi names no GPU";
    return;
  }
  machine->preset = PresetOfGpu(least.name, host);
  if (!machine->preset.empty()) return;
  for (const auto& like : kLike) {
    if (least.capability < like.capability) continue;
    machine->preset = std::string(like.preset);
    machine->estimated = true;
    machine->link_bytes_per_s = LinkRate(least.pcie_generation, least.pcie_width);
    machine->rates = RatesOfCard(least.name);
    return;
  }
  machine->why_none = "there is no preset for it";
}

// The limit of the cgroup (version 2) that a container gives its processes; 0: none.
int64_t CgroupBytes() {
  std::ifstream file("/sys/fs/cgroup/memory.max");
  int64_t bytes = 0;
  return file >> bytes ? bytes : 0;  // "max": not a number.
}

int64_t HostBytes() {
  const int64_t all =
      std::max<int64_t>(sysconf(_SC_PHYS_PAGES), 0) * std::max<int64_t>(sysconf(_SC_PAGESIZE), 0);
  const int64_t limit = CgroupBytes();
  return limit > 0 && (all == 0 || limit < all) ? limit : all;
}

ProgramRun Ask(const char* columns, const Deadline& deadline) {
  return RunProgram(
      {"nvidia-smi", absl::StrCat("--query-gpu=", columns), "--format=csv,noheader,nounits"},
      deadline);
}

// Empty unless it is done.
std::string OutputIfDone(const ProgramRun& run) {
  return run.end == ProgramRun::End::kDone ? run.output : "";
}

// Longer than nvidia-smi's errors about a driver that is missing or of another version.
constexpr size_t kMaxLine = 200;

// The first line with something in it, fit for a terminal, without a full stop.
std::string FirstLine(absl::string_view text) {
  text = absl::StripLeadingAsciiWhitespace(text);
  const absl::string_view line =
      absl::StripAsciiWhitespace(text.substr(0, text.find('\n')).substr(0, kMaxLine));
  return core::PlainText(absl::StripSuffix(line, "."));
}

// nvidia-smi prints its errors to standard output.
std::string FailureText(const ProgramRun& run, const Deadline& deadline) {
  switch (run.end) {
    case ProgramRun::End::kDone:
    case ProgramRun::End::kNoProgram:
      return "";
    case ProgramRun::End::kLate:
      return absl::StrCat("nvidia-smi did not answer in ",
                          absl::ToDoubleSeconds(deadline.timeout()), " s");
    case ProgramRun::End::kFailed:
      break;
  }
  const std::string line = FirstLine(run.output);
  if (line == "No devices were found") return "";  // A login node: no GPU is expected there.
  return absl::StrCat("nvidia-smi failed", line.empty() ? "" : absl::StrCat(": ", line));
}

bool IsAuto(const v1::Hardware& hardware) { return hardware.preset() == kAuto; }

// Whether the machine is that of this process: `auto`, or one that the core would assume.
bool IsOpen(const v1::Hardware& hardware) {
  if (IsAuto(hardware)) return true;
  if (!hardware.preset().empty()) return false;
  const absl::StatusOr<core::Hardware> assumed = core::Hardware::FromOptions(hardware);
  return assumed.ok() && assumed->preset_assumed;
}

}  // namespace

absl::StatusOr<ThisMachine> AskMachine(absl::Duration limit) {
  const Deadline deadline(limit);
  NvidiaSmiOutput output;
  output.memory = OutputIfDone(Ask("memory.total,compute_cap,memory.free", deadline));
  if (output.memory.empty()) output.memory = OutputIfDone(Ask("memory.total", deadline));
  const ProgramRun names = Ask("name", deadline);
  output.names = OutputIfDone(names);
  output.failure = FailureText(names, deadline);
  output.places =
      OutputIfDone(Ask("uuid,mig.mode.current,pcie.link.gen.max,pcie.link.width.max", deadline));
  const char* visible = getenv("CUDA_VISIBLE_DEVICES");
  absl::StatusOr<ThisMachine> machine = ParseMachine(
      output, kThisHost,
      visible == nullptr ? absl::nullopt : absl::make_optional<absl::string_view>(visible));
  if (machine.ok()) machine->host_bytes = HostBytes();
  return machine;
}

const absl::StatusOr<ThisMachine>& MachineOfProcess(absl::Duration limit) {
  static const auto& machine = *new absl::StatusOr<ThisMachine>(AskMachine(limit));
  return machine;
}

std::string MemoryText(const ThisMachine& machine) {
  return absl::StrCat(core::BytesText(machine.usable_bytes), " of ",
                      core::BytesText(machine.total_bytes),
                      machine.gpu_count > 1 ? " on the smallest" : "", " for TensorFlow");
}

absl::StatusOr<ThisMachine> ParseMachine(const NvidiaSmiOutput& output, Host host,
                                         absl::optional<absl::string_view> visible) {
  const auto memory = Cells(output.memory);
  const auto names = Cells(output.names);
  if (memory.empty() && names.empty()) {
    return output.failure.empty() ? absl::NotFoundError("no nvidia-smi here identifies the GPU")
                                  : Unknown(output.failure);
  }
  std::vector<Gpu> gpus(memory.empty() ? names.size() : memory.size());
  const bool knows_memory = !memory.empty() && ParseMemory(memory, &gpus);
  if (names.size() == gpus.size()) {
    for (size_t i = 0; i < gpus.size(); ++i) gpus[i].name = absl::StrJoin(names[i], ", ");
  }
  const auto places = Cells(output.places);
  if (places.size() == gpus.size()) ParsePlaces(places, &gpus);
  if (!knows_memory && gpus[0].name.empty()) {
    return Unknown("nvidia-smi names no GPU here");
  }
  const absl::StatusOr<std::vector<Gpu>> shown = Visible(std::move(gpus), visible);
  if (!shown.ok()) return shown.status();
  const Gpu& least =
      *std::min_element(shown->begin(), shown->end(),
                        [](const Gpu& a, const Gpu& b) { return a.usable_bytes < b.usable_bytes; });
  if (std::any_of(shown->begin(), shown->end(), [](const Gpu& gpu) { return gpu.mig; })) {
    return Unknown(absl::StrCat(GpusText(*shown),
                                " is divided by MIG, and nvidia-smi does not report the "
                                "memory of a slice here"));
  }
  ThisMachine machine;
  machine.gpus = GpusText(*shown);
  machine.gpu_count = static_cast<int>(shown->size());
  if (knows_memory) {
    machine.usable_bytes = least.usable_bytes;
    machine.total_bytes = least.total_bytes;
    if (shown->size() == 1) machine.usable_free_bytes = least.usable_free_bytes;
  }
  machine.compute_capability = least.capability;
  FindPreset(*shown, least, host, &machine);
  return machine;
}

std::string AssumedPreset() { return core::HardwarePresets()[0].hardware.preset; }

std::string PresetOfGpu(absl::string_view name, Host host) {
  name = CardName(name);
  if (host == Host::kPower && name == "V100-SXM2-16GB") return "v100_nvlink2";
  for (const auto& known : kNames) {
    if (absl::EqualsIgnoreCase(known.gpu, name)) return std::string(known.preset);
  }
  return "";
}

int64_t UsableBytes(int64_t total_bytes, int compute_major) {
  return LessReserve(total_bytes - std::max(kDriverMinBytes, total_bytes / kDriverShare),
                     compute_major);
}

bool NeedsMachine(const v1::RewriteOptions& options) {
  const v1::Hardware& hardware = options.step().hardware();
  const bool idle =
      options.has_strip() || (options.has_scope() && options.simulation() == v1::SIMULATION_OFF);
  return idle ? IsAuto(hardware) : IsOpen(hardware);
}

bool NeedsMachine(const v1::SimulateOptions& options) { return IsOpen(options.step().hardware()); }

bool NeedsMachine(const v1::ExploreOptions& options) { return IsOpen(options.step().hardware()); }

absl::StatusOr<std::string> FillHardware(const absl::StatusOr<ThisMachine>& machine,
                                         v1::Hardware* hardware) {
  const bool must = IsAuto(*hardware);
  if (!machine.ok()) {
    const absl::string_view why = machine.status().message();
    if (must) return CannotTell(why);
    if (absl::IsNotFound(machine.status())) return std::string();
    return absl::StrCat(why, "; give --hardware and --gpu-memory-bytes");
  }
  if (must && machine->preset.empty()) {
    return CannotTell(
        absl::StrCat("this machine has ", machine->gpus, ", and ", machine->why_none));
  }
  hardware->set_preset(machine->preset);
  std::string note = absl::StrCat("from nvidia-smi: ", machine->gpus);
  if (machine->link_bytes_per_s > 0 && !hardware->has_d2h_bytes_per_s() &&
      !hardware->has_h2d_bytes_per_s()) {
    hardware->set_d2h_bytes_per_s(machine->link_bytes_per_s);
    hardware->set_h2d_bytes_per_s(machine->link_bytes_per_s);
    absl::StrAppendFormat(&note, ", %.3g GB/s to the host", machine->link_bytes_per_s / 1e9);
  }
  const CardRates& rates = machine->rates;
  if (rates.peak_flops > 0 && !hardware->has_peak_flops() && !hardware->has_mem_bytes_per_s()) {
    hardware->set_peak_flops(rates.peak_flops);
    hardware->set_mem_bytes_per_s(rates.mem_bytes_per_s);
    absl::StrAppendFormat(&note, ", %.3g TFLOP/s and %.4g GB/s by NVIDIA's figures",
                          rates.peak_flops / 1e12, rates.mem_bytes_per_s / 1e9);
  }
  if (machine->usable_bytes > 0 && !hardware->has_gpu_memory_bytes()) {
    hardware->set_gpu_memory_bytes(machine->usable_bytes);
    hardware->set_gpu_memory_source(v1::MEMORY_SOURCE_NVIDIA_SMI);
    absl::StrAppend(&note, ", ", MemoryText(*machine));
  }
  // Only then, so that servers that do not know the field yet plan for all other GPUs.
  if (machine->compute_capability > 0 && !hardware->has_compute_capability() &&
      machine->compute_capability != CapabilityOf(machine->preset)) {
    hardware->set_compute_capability(machine->compute_capability);
  }
  if (machine->host_bytes > 1 && !hardware->has_host_memory_bytes()) {
    hardware->set_host_memory_bytes(machine->host_bytes / 2);
  }
  if (machine->preset.empty()) {
    return absl::StrCat(note, "; ", machine->why_none, ": name one with --hardware");
  }
  return absl::StrCat(note, "; planned for ", machine->preset,
                      machine->estimated
                          ? ", the most similar of the machines: an estimate; --hardware and "
                            "numbers that are given override it"
                          : "; --hardware and --gpu-memory-bytes override it");
}

std::string LimitToFreeMemory(const absl::StatusOr<ThisMachine>& machine, v1::Hardware* hardware) {
  if (!machine.ok() || !machine->usable_free_bytes.has_value()) return "";
  const int64_t free = *machine->usable_free_bytes, usable = hardware->gpu_memory_bytes();
  if (free >= usable - kFreeStep) return "";
  const int64_t planned = free / kFreeStep * kFreeStep;
  if (planned > 0) hardware->set_gpu_memory_bytes(planned);
  return absl::StrCat("another process has memory of ", machine->gpus, ": TensorFlow would get ",
                      core::BytesText(free), " of ", core::BytesText(usable),
                      " now, so the plan is for ", core::BytesText(planned > 0 ? planned : usable),
                      "; end that process, or give --gpu-memory-bytes (SPILLWAY_GPU_MEMORY_BYTES), "
                      "the same for all that train together");
}

}  // namespace spillway::internal
