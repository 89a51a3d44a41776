#include "rewrite_core/strategy/common/wanted_gpus.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/machine/placement.h"
#include "rewrite_core/base/error.h"

namespace spillway::core {

std::vector<WantedGpu> FindWantedGpus(const StepFacts& facts, const Eligibility& eligibility) {
  const Graph& graph = facts.graph();
  const Placement& placement = facts.placement();
  std::vector<WantedGpu> gpus;
  for (DeviceId device(0); device < graph.num_devices(); ++device) {
    if (!eligibility.IsDeviceWanted(device)) continue;
    const Place index = placement.device(device);
    if (index == kHostPlace) continue;
    auto gpu = std::find_if(gpus.begin(), gpus.end(),
                            [index](const WantedGpu& other) { return other.index == index; });
    if (gpu == gpus.end() && gpus.size() == kMaxGpus) {
      gpus = {{"", GpuIndex(0), std::vector<bool>(graph.num_devices(), false)}};
      for (DeviceId id(0); id < graph.num_devices(); ++id) {
        gpus[0].devices[id] = eligibility.IsDeviceWanted(id);
      }
      gpus[0].is_many = true;
      return gpus;
    }
    if (gpu == gpus.end()) {
      // The name as in forecasts.
      gpus.push_back(
          {placement.devices()[index], index, std::vector<bool>(graph.num_devices(), false)});
      gpu = std::prev(gpus.end());
    }
    gpu->devices[device] = true;
  }
  return gpus;
}

absl::Status TooManyGpusError() {
  return InvalidError(v1::ERROR_REASON_LIMIT_EXCEEDED,
                      absl::StrCat("the graph names more than ", kMaxGpus,
                                   " GPUs, and each is planned on its own; name some of them with "
                                   "devices"),
                      {{"option", "devices"}, {"limit", absl::StrCat(kMaxGpus)}});
}

}  // namespace spillway::core
