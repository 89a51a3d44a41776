#include "rewrite_core/analysis/memory/host_variables.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "rewrite_core/analysis/machine/device_name.h"
#include "rewrite_core/base/saturating.h"

namespace spillway::core {

absl::StatusOr<int64_t> HostVariableBytes(const Graph& graph, const Placement& placement,
                                          const Buffers& buffers, const StopToken& stop) {
  StopPoller poll(stop);
  absl::flat_hash_set<std::string> beside_gpus;  // By NameKeys.
  for (const std::string& gpu : placement.devices()) {
    if (poll.Tick()) return stop.status("analysis");
    for (std::string& key : DeviceKeys(ParseDeviceName(HostDeviceOf(gpu)))) {
      beside_gpus.insert(std::move(key));
    }
  }
  std::vector<absl::optional<bool>> counts(graph.num_devices());
  int64_t bytes = 0;
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (poll.Tick()) return stop.status("analysis");
    const Tensor variable{id, 0};
    if (placement.node(id) != kHostPlace || buffers.num_outputs(id) == 0 ||
        buffers.storage(variable) != Storage::kVariable ||
        buffers.alias_input(variable) != kNoAlias) {
      continue;
    }
    absl::optional<bool>& is_beside = counts[graph.device_id(id)];
    if (!is_beside.has_value()) {
      const NameKeys keys = WantedKeys(ParseDeviceName(HostDeviceOf(graph.device(id))));
      is_beside = std::any_of(keys.begin(), keys.end(),
                              [&](const std::string& key) { return beside_gpus.contains(key); });
    }
    if (!*is_beside) continue;
    if (buffers.bytes(variable) == kUnknownSize) return kUnknownSize;
    bytes = SaturatingAdd(bytes, buffers.bytes(variable));
  }
  return bytes;
}

}  // namespace spillway::core
