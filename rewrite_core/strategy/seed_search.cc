#include "rewrite_core/strategy/seed_search.h"

#include <algorithm>
#include <limits>

#include "rewrite_core/graph/error.h"

namespace spillway::core {
namespace {

// A candidate and the most that it could count.
struct Candidate {
  NodeId node;
  int32_t bound;
};

bool FeedsBackward(const Graph& graph, NodeId id, const NodeFlags& backward) {
  const Graph::Readers readers = graph.readers(id);
  for (uint32_t i = 0; i < readers.size(); ++i) {
    if (readers[i].port != kControl && backward[readers[i].node]) return true;
  }
  return false;
}

bool HasBackEdges(const Graph& graph) {
  for (int32_t op = 0; op < graph.num_ops() && graph.has_control_flow(); ++op) {
    if (graph.op_name(op) == "NextIteration" || graph.op_name(op) == "RefNextIteration") {
      return true;
    }
  }
  return false;
}

}  // namespace

// Counting plainly is quadratic. Two facts prune it in a graph without loops: what a candidate
// reaches lies at or above the lowest level among its readers, which bounds its count; and if a
// reaches b, then b counts fewer than a.
absl::StatusOr<std::vector<NodeId>> FindSeeds(const Graph& graph, const Topology& topology,
                                              const NodeFlags& backward, SearchBudget* budget) {
  constexpr char kWhat[] = "starting ops";
  constexpr char kRemedy[] = "name them with starting_op_names or starting_scope";
  std::vector<NodeId> nodes;
  NodeFlags is_candidate(graph.num_nodes(), false);
  int32_t top_level = 0;
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    if (budget->Spend()) return budget->status(kWhat, kRemedy);
    top_level = std::max(top_level, topology.level(id));
    if (backward[id] || !FeedsBackward(graph, id, backward)) continue;
    is_candidate[id] = true;
    nodes.push_back(id);
  }
  // at_or_above[l]: candidates at level l or higher.
  std::vector<int32_t> at_or_above(top_level + 2, 0);
  for (NodeId id : nodes) ++at_or_above[topology.level(id)];
  for (int32_t level = top_level; level >= 0; --level) {
    at_or_above[level] += at_or_above[level + 1];
  }
  const bool loops = HasBackEdges(graph);
  std::vector<Candidate> candidates;
  for (NodeId id : nodes) {
    int32_t lowest = top_level + 1;
    const Graph::Readers readers = graph.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (budget->Spend()) return budget->status(kWhat, kRemedy);
      if (readers[i].port == kControl || backward[readers[i].node]) continue;
      lowest = std::min(lowest, topology.level(readers[i].node));
    }
    const int32_t bound =
        loops && lowest <= top_level ? static_cast<int32_t>(nodes.size()) : at_or_above[lowest];
    if (bound > 0) candidates.push_back({id, bound});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.bound > b.bound; });

  std::vector<NodeId> seeds;
  int32_t best = 1;
  NodeFlags beaten(graph.num_nodes(), false);
  VisitMarks visited(graph.num_nodes());
  std::vector<NodeId> queue;
  for (const Candidate& candidate : candidates) {
    if (candidate.bound < best) break;
    if (beaten[candidate.node]) continue;
    visited.Clear();
    visited.Insert(candidate.node);
    queue.assign(1, candidate.node);
    int32_t count = 0;
    for (size_t done = 0; done < queue.size(); ++done) {
      const Graph::Readers readers = graph.readers(queue[done]);
      for (uint32_t i = 0; i < readers.size(); ++i) {
        if (budget->Spend()) return budget->status(kWhat, kRemedy);
        const NodeId reader = readers[i].node;
        if (readers[i].port == kControl || backward[reader] || !visited.Insert(reader)) continue;
        queue.push_back(reader);
        if (!is_candidate[reader]) continue;
        ++count;
        if (!loops) beaten[reader] = true;
      }
    }
    if (count > best) seeds.clear();
    if (count >= best) {
      best = count;
      seeds.push_back(candidate.node);
    }
  }
  if (seeds.empty()) {
    return InvalidError(v1::ERROR_REASON_NO_STARTING_OP,
                        "no op outside optimizer_scopes leads to others that feed the backward "
                        "part, so there is no op to start from; check optimizer_scopes (do they "
                        "cover the whole graph?), or name the start with starting_op_names",
                        {{"option", "optimizer_scopes"}});
  }
  std::sort(seeds.begin(), seeds.end());
  return seeds;
}

}  // namespace spillway::core
