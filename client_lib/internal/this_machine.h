// The GPUs of this machine, according to `nvidia-smi`: the one place that chooses the machine of a
// request that does not name one. client_lib/README.md, "The machine", has the rule.
//
// nvidia-smi is optional: if it is missing, fails, hangs or prints something unexpected, nothing is
// known, and the request stays unchanged. Unless it is missing, the user learns why.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_THIS_MACHINE_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_THIS_MACHINE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "client_lib/internal/card_rates.h"
#include "spillway/v1/hardware.pb.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/simulate.pb.h"

namespace spillway::internal {

// The visible GPUs. Of several, the one with the least usable memory counts, in use or not.
struct ThisMachine {
  std::string gpus;          // `NVIDIA H200 and 2 times NVIDIA L4`.
  int gpu_count = 0;         // 1 and up.
  int64_t usable_bytes = 0;  // For TensorFlow's allocator. 0: unknown.
  int64_t total_bytes = 0;   // As nvidia-smi reports it.
  // Like usable_bytes, but of memory free now. Absent: unknown, or there are several GPUs, of which
  // some may work for other processes of the same job.
  absl::optional<int64_t> usable_free_bytes;
  std::string preset;    // Empty: none is like it, or the GPUs are of several kinds,
  std::string why_none;  // as this says: `there is no preset for it`.
  // Whether the preset is that of another card of the same architecture, and then the rate of this
  // one's PCIe link in each direction, and its other rates. 0: unknown.
  bool estimated = false;
  double link_bytes_per_s = 0;
  CardRates rates;
  double compute_capability = 0;  // 0: unknown.
  int64_t host_bytes = 0;  // The memory of the host, or of the cgroup of this process. 0: unknown.
};

// How long nvidia-smi may take. It loads the driver if nothing else has (no persistence mode),
// which takes a second or more.
inline constexpr absl::Duration kNvidiaSmiTime = absl::Seconds(5);

// Asks nvidia-smi, waiting at most `limit`. An error says why nothing is known, and callers append
// the options to give; NotFound: nvidia-smi is missing, or finds no GPU.
absl::StatusOr<ThisMachine> AskMachine(absl::Duration limit);

// The same, asked once in this process, the first time: GPUs do not change, and a trainer may call
// often. It never waits again for an nvidia-smi that missed the first limit.
const absl::StatusOr<ThisMachine>& MachineOfProcess(absl::Duration limit = kNvidiaSmiTime);

// For people: `20.31 GiB of 22.49 GiB for TensorFlow`, if it is known.
std::string MemoryText(const ThisMachine& machine);

// The V100s of an IBM POWER host are connected to it by NVLink.
enum class Host { kPower, kOther };

// nvidia-smi's answers to queries of CSV without headers and units, a line for each GPU. Several
// queries, since old drivers refuse one with a column that they do not know. Each may be empty.
struct NvidiaSmiOutput {
  // memory.total,compute_cap,memory.free: MiB. The second and third column may be missing.
  std::string memory;
  std::string names;   // name.
  std::string places;  // uuid,mig.mode.current,pcie.link.gen.max,pcie.link.width.max.
  std::string failure =
      {};  // The result of the query for names, if it failed: `nvidia-smi failed`.
};

// Parses it. `visible`: CUDA_VISIBLE_DEVICES, if set.
absl::StatusOr<ThisMachine> ParseMachine(const NvidiaSmiOutput& output, Host host,
                                         absl::optional<absl::string_view> visible);

// The preset that is assumed if the request says nothing and nothing is known of this machine.
std::string AssumedPreset();

// Returns the preset for the GPU of exactly that name, or empty if none.
std::string PresetOfGpu(absl::string_view name, Host host);

// Returns the memory that TensorFlow's allocator takes on an otherwise idle GPU. `compute_major`:
// the major compute capability; 0: unknown. A conservative estimate: the driver's share differs
// between versions.
int64_t UsableBytes(int64_t total_bytes, int compute_major);

// Whether a request leaves its machine open: its preset is `auto`, or missing and the answer
// depends on it.
bool NeedsMachine(const v1::RewriteOptions& options);
bool NeedsMachine(const v1::SimulateOptions& options);
bool NeedsMachine(const v1::ExploreOptions& options);

// Fills in the missing fields of `hardware`, of a request that needs it: the preset, its memory and
// link as nvidia-smi reports them, its compute capability if the preset's differs, and half of the
// host's memory, since TensorFlow's pinned allocator takes up to twice the bytes of the tensors (it
// rounds them up to powers of two). Returns a sentence for the user that names the filled-in
// values, or says why nothing was; empty without nvidia-smi, as the answer will name the assumed
// machine. An error if the preset is `auto`, and `machine` is an error or has no preset:
// BAD_OPTION.
absl::StatusOr<std::string> FillHardware(const absl::StatusOr<ThisMachine>& machine,
                                         v1::Hardware* hardware);

// For the machine that trains, before it does: if the memory that was filled in is not free,
// another process has it. Then plans for free memory, rounded down to 256 MiB so that ranks are
// likely to agree, and returns a warning, otherwise "".
std::string LimitToFreeMemory(const absl::StatusOr<ThisMachine>& machine, v1::Hardware* hardware);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_THIS_MACHINE_H_
