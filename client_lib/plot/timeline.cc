#include "client_lib/plot/timeline.h"

#include <algorithm>

namespace spillway::plot {

std::vector<Sample> Thinned(const v1::DeviceMemory& memory, double end_ns, int columns) {
  std::vector<Sample> samples;
  for (const v1::MemorySample& from : memory.timeline()) {
    const Sample sample{static_cast<double>(from.time_ns()), static_cast<double>(from.bytes())};
    const double last_ns = samples.empty() ? 0 : samples.back().ns;
    if (sample.ns < last_ns || sample.ns > end_ns || sample.bytes < 0) continue;
    samples.push_back(sample);
  }
  if (samples.size() <= static_cast<size_t>(2 * columns) || !(end_ns > 0)) return samples;
  std::vector<Sample> thinned;
  for (size_t begin = 0; begin < samples.size();) {
    const auto column = [&](size_t i) {
      return static_cast<int>(samples[i].ns / end_ns * columns);
    };
    size_t end = begin, most = begin;
    for (; end < samples.size() && column(end) == column(begin); ++end) {
      if (samples[end].bytes > samples[most].bytes) most = end;
    }
    thinned.push_back(samples[most]);
    if (most + 1 < end) thinned.push_back(samples[end - 1]);
    begin = end;
  }
  return thinned;
}

}  // namespace spillway::plot
