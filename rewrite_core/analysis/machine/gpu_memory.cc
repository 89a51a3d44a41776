#include "rewrite_core/analysis/machine/gpu_memory.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/machine/device_name.h"
#include "rewrite_core/base/error.h"

namespace spillway::core {
namespace {

absl::Status BadMemory(const v1::GpuMemory& given, v1::ErrorReason reason, absl::string_view what) {
  return InvalidError(reason,
                      absl::StrCat("hardware.gpu_memories: ", Quoted(given.device()), " ", what),
                      {{"option", "hardware.gpu_memories"}, {"value", given.device()}});
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> FindGpuMemories(const std::vector<std::string>& gpus,
                                                     const v1::Hardware& options,
                                                     const StopToken& stop) {
  std::vector<int64_t> bytes(gpus.size(), 0);
  if (options.gpu_memories().empty()) return bytes;
  StopPoller poll(stop);
  std::vector<DeviceName> names;
  for (const std::string& gpu : gpus) names.push_back(ParseDeviceName(gpu));
  for (const v1::GpuMemory& given : options.gpu_memories()) {
    if (given.gpu_memory_bytes() < 1) {
      return BadMemory(given, v1::ERROR_REASON_BAD_OPTION,
                       absl::StrCat("has ", given.gpu_memory_bytes(), " bytes; give 1 or more"));
    }
    const DeviceName wanted = ParseDeviceName(given.device());
    bool is_used = false;
    for (size_t i = 0; i < gpus.size(); ++i) {
      if (poll.Tick()) return stop.status("analysis");
      if (given.device() != gpus[i] && !NamesDevice(wanted, names[i])) continue;
      if (bytes[i] != 0) {
        return BadMemory(given, v1::ERROR_REASON_BAD_OPTION,
                         absl::StrCat("names GPU ", Quoted(gpus[i]),
                                      ", which has a memory already; give each GPU one"));
      }
      bytes[i] = given.gpu_memory_bytes();
      is_used = true;
    }
    if (!is_used) {
      return BadMemory(given, v1::ERROR_REASON_NAME_MATCHES_NOTHING,
                       "names no GPU of the graph; spell it as the graph does");
    }
  }
  return bytes;
}

}  // namespace spillway::core
