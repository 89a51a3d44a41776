#include "rewrite_core/analysis/machine/gpu_memory.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
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
  absl::flat_hash_map<std::string, std::vector<size_t>> by_key;
  for (size_t i = 0; i < gpus.size(); ++i) {
    for (std::string& key : DeviceKeys(ParseDeviceName(gpus[i]))) {
      if (poll.Tick()) return stop.status("analysis");
      by_key[std::move(key)].push_back(i);
    }
  }
  for (const v1::GpuMemory& given : options.gpu_memories()) {
    if (given.gpu_memory_bytes() < 1) {
      return BadMemory(given, v1::ERROR_REASON_BAD_OPTION,
                       absl::StrCat("has ", given.gpu_memory_bytes(), " bytes; give 1 or more"));
    }
    std::vector<size_t> named;
    for (const std::string& key : WantedKeys(ParseDeviceName(given.device()))) {
      if (poll.Tick()) return stop.status("analysis");
      const auto found = by_key.find(key);
      if (found != by_key.end()) {
        named.insert(named.end(), found->second.begin(), found->second.end());
      }
    }
    // In the order of the GPUs. At the first that has a memory it ends, so all together are few.
    std::sort(named.begin(), named.end());
    for (size_t i : named) {
      if (poll.Tick()) return stop.status("analysis");
      if (bytes[i] != 0) {
        return BadMemory(given, v1::ERROR_REASON_BAD_OPTION,
                         absl::StrCat("names GPU ", Quoted(gpus[i]),
                                      ", which has a memory already; give each GPU one"));
      }
      bytes[i] = given.gpu_memory_bytes();
    }
    if (named.empty()) {
      return BadMemory(given, v1::ERROR_REASON_NAME_MATCHES_NOTHING,
                       "names no GPU of the graph; spell it as the graph does");
    }
  }
  return bytes;
}

}  // namespace spillway::core
