#include "client_lib/internal/gpu_memory.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client_lib/internal/program_output.h"

namespace spillway::internal {
namespace {

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

absl::optional<std::string> AskNvidiaSmi(const Deadline& deadline) {
  // Older drivers do not know compute_cap and refuse the whole query.
  for (const char* query : {"memory.total,compute_cap", "memory.total"}) {
    absl::optional<std::string> csv = OutputOf(
        {"nvidia-smi", absl::StrCat("--query-gpu=", query), "--format=csv,noheader,nounits"},
        deadline);
    if (csv.has_value()) return csv;
  }
  return absl::nullopt;
}

}  // namespace

absl::optional<GpuMemory> AskGpuMemory(absl::Duration limit) {
  const absl::optional<std::string> csv = AskNvidiaSmi(Deadline(limit));
  if (!csv.has_value()) return absl::nullopt;
  return ParseGpuMemory(*csv);
}

absl::optional<GpuMemory> ParseGpuMemory(absl::string_view csv) {
  GpuMemory least;
  for (const absl::string_view line : absl::StrSplit(csv, '\n')) {
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    const std::vector<absl::string_view> columns = absl::StrSplit(line, ',');
    int64_t mib = 0;
    if (!absl::SimpleAtoi(columns[0], &mib) || mib < 1 || mib > kMaxMiB) return absl::nullopt;
    // "8.0"; anything else, such as "[N/A]", is unknown.
    double capability = 0;
    if (columns.size() < 2 || !absl::SimpleAtod(columns[1], &capability) ||
        !(capability >= 1 && capability < 1000)) {
      capability = 0;
    }
    ++least.gpu_count;
    const int64_t usable = UsableBytes(mib * kMiB, static_cast<int>(capability));
    if (least.gpu_count > 1 && usable >= least.usable_bytes) continue;
    least.usable_bytes = usable;
    least.total_bytes = mib * kMiB;
  }
  if (least.gpu_count == 0 || least.usable_bytes <= 0) return absl::nullopt;
  return least;
}

int64_t UsableBytes(int64_t total_bytes, int compute_major) {
  const int64_t free = total_bytes - std::max(kDriverMinBytes, total_bytes / kDriverShare);
  if (free < kSmallGpuBytes) return free - kReserveOfSmallGpu;
  return free - std::max({free / kReserveShare1, kReserveMin1, Reserve2(compute_major)});
}

}  // namespace spillway::internal
