#include "rewrite_core/plan/late_reads.h"

#include <algorithm>
#include <cstdint>
#include <functional>

#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/graph/topology.h"

namespace spillway::core {

absl::StatusOr<std::vector<LateRead>> FindUnguarded(const StepFacts& facts,
                                                    std::vector<LateRead> reads,
                                                    const StopToken& stop) {
  const Graph& graph = facts.graph();
  const std::vector<NodeId>& order = facts.topology().order();
  StopPoller poll(stop);
  if (!PolledSort(reads.begin(), reads.end(), std::less<>(), &poll)) return stop.status("analysis");
  reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
  std::vector<LateRead> unguarded;
  for (size_t begin = 0, end = 0; begin < reads.size(); begin = end) {
    // 64 updates at a time: one bit each.
    std::vector<uint64_t> leads(graph.num_nodes(), 0);
    std::vector<NodeId> updates;
    for (; end < reads.size(); ++end) {
      if (poll.Tick()) return stop.status("analysis");
      const NodeId update = reads[end].update;
      if (!updates.empty() && updates.back() == update) continue;
      if (updates.size() == 64) break;
      leads[update] = uint64_t{1} << updates.size();
      updates.push_back(update);
    }
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      if (poll.Tick()) return stop.status("analysis");
      const Graph::Readers readers = graph.readers(*id);
      for (uint32_t i = 0; i < readers.size(); ++i) {
        if (poll.Tick()) return stop.status("analysis");
        if (!IsBackEdge(graph, *id, readers[i].node)) leads[*id] |= leads[readers[i].node];
      }
    }
    for (size_t i = begin, bit = 0; i < end; ++i) {
      if (poll.Tick()) return stop.status("analysis");
      if (updates[bit] != reads[i].update) ++bit;
      if ((leads[reads[i].reader] >> bit & 1) == 0) unguarded.push_back(reads[i]);
    }
  }
  return unguarded;
}

}  // namespace spillway::core
