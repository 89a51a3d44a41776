// The reasons why a step's GPU memory is unknown, so that "it fits" would be a guess: buffers of
// unknown size, which count as 0 bytes; loops of unknown count that keep something of each
// iteration; function calls whose bodies do not bound it.
//
// Thread safety: values and pure functions.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_MEMORY_UNKNOWN_MEMORY_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_MEMORY_UNKNOWN_MEMORY_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "rewrite_core/analysis/machine/placement.h"
#include "rewrite_core/graph/graph.h"
#include "spillway/v1/forecast.pb.h"

namespace spillway::core {

// By cause and GPU; empty if everything is known.
struct UnknownMemory {
  struct Nodes {
    NodeId first = kNoNode;  // By id.
    int64_t count = 0;       // Buffers, loop variables or calls.
  };
  std::map<std::pair<v1::FitUnknownCause, Place>, Nodes> nodes;

  void Add(v1::FitUnknownCause cause, Place gpu, NodeId node);
};

// The same for a report, in order of cause: for that GPU, or for all GPUs together.
std::vector<v1::FitUnknown> DescribeUnknown(const Graph& graph, const UnknownMemory& unknown,
                                            absl::optional<Place> gpu);

// Sets `fit` and `fit_unknown` of a Forecast or a DeviceFit. `fits`: the known part fits.
template <typename Message>
void SetFit(bool fits, const std::vector<v1::FitUnknown>& unknown, Message* message) {
  message->set_fit(!fits ? v1::FIT_DOES_NOT_FIT : unknown.empty() ? v1::FIT_FITS : v1::FIT_UNKNOWN);
  message->clear_fit_unknown();
  if (!fits) return;
  for (const v1::FitUnknown& cause : unknown) *message->add_fit_unknown() = cause;
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_MEMORY_UNKNOWN_MEMORY_H_
