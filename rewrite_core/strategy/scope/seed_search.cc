#include "rewrite_core/strategy/scope/seed_search.h"

#include <algorithm>
#include <functional>

#include "rewrite_core/base/polled_sort.h"

namespace spillway::core {
namespace {

// A candidate and an upper bound of its count.
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

// Plain counting is quadratic. Two facts prune it. A node reaches at most as many candidates as
// there are at or above the lowest level that it reaches, and at most as many as its readers reach
// together: that bounds every count from above in a few passes. And if a reaches b, then b counts
// at most as many as a, and equally many only if it also reaches a, around a loop.
class SeedSearch {
 public:
  SeedSearch(const Graph& graph, const Topology& topology, const NodeFlags& backward,
             SearchBudget* budget)
      : graph_(graph),
        topology_(topology),
        backward_(backward),
        budget_(budget),
        loops_(HasBackEdges(graph)),
        is_candidate_(graph.num_nodes(), false),
        visited_(graph.num_nodes()) {}

  absl::StatusOr<std::vector<NodeId>> Run() {
    if (!CollectCandidates()) return OutOfSteps();
    // On ties, the one that may lead to the others comes first.
    const auto less = [this](const Candidate& a, const Candidate& b) {
      if (a.bound != b.bound) return a.bound > b.bound;
      return topology_.level(a.node) < topology_.level(b.node);
    };
    StopPoller poll(budget_->stop());
    if (!PolledSort(candidates_.begin(), candidates_.end(), less, &poll)) return OutOfSteps();
    std::vector<NodeId> seeds;
    int32_t best = 1;
    NodeFlags beaten(graph_.num_nodes(), false);
    for (const Candidate& candidate : candidates_) {
      if (candidate.bound < best) break;
      if (beaten[candidate.node]) continue;
      if (!Walk(candidate.node)) return OutOfSteps();
      const auto count = static_cast<int32_t>(reached_.size());
      for (NodeId id : reached_) beaten[id] = true;
      if (count < best) continue;
      if (count > best) seeds.clear();
      best = count;
      seeds.push_back(candidate.node);
    }
    if (loops_ && !AddPeers(&seeds)) return OutOfSteps();
    if (!PolledSort(seeds.begin(), seeds.end(), std::less<>(), &poll)) return OutOfSteps();
    return seeds;
  }

 private:
  // Every stage below returns false once the budget is spent.
  absl::Status OutOfSteps() const {
    return budget_->status("starting ops", "name them with starting_op_names or starting_scope");
  }

  bool CollectCandidates() {
    int32_t top_level = 0;
    std::vector<NodeId> nodes;
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      if (budget_->Spend()) return false;
      top_level = std::max(top_level, topology_.level(id));
      if (backward_[id] || !FeedsBackward(graph_, id, backward_)) continue;
      is_candidate_[id] = true;
      nodes.push_back(id);
    }
    std::vector<int32_t> at_or_above(top_level + 2, 0);
    for (NodeId id : nodes) ++at_or_above[topology_.level(id)];
    for (int32_t level = top_level; level >= 0; --level) {
      at_or_above[level] += at_or_above[level + 1];
    }
    std::vector<int32_t> lowest(graph_.num_nodes(), top_level + 1);
    if (!FindLowestReached(&lowest)) return false;
    // bound[n]: the maximum number of candidates that n can reach. Readers come after their
    // producers, except around a loop, where the first bound must suffice.
    std::vector<int32_t> bound(graph_.num_nodes());
    for (NodeId id(0); id < graph_.num_nodes(); ++id) bound[id] = at_or_above[lowest[id]];
    for (auto it = topology_.order().rbegin(); it != topology_.order().rend(); ++it) {
      if (backward_[*it]) continue;
      int64_t together = 0;
      const auto add = [&](NodeId reader) { together += bound[reader] + is_candidate_[reader]; };
      if (!ForEachForwardReader(*it, add)) return false;
      bound[*it] = static_cast<int32_t>(std::min<int64_t>(together, bound[*it]));
    }
    for (NodeId id : nodes) {
      if (bound[id] > 0) candidates_.push_back({id, bound[id]});
    }
    return true;
  }

  // Per node: the lowest level among all nodes that it reaches. Takes one pass against the edges,
  // and one more for each nested loop.
  bool FindLowestReached(std::vector<int32_t>* lowest) {
    for (bool changed = true; changed;) {
      changed = false;
      for (auto it = topology_.order().rbegin(); it != topology_.order().rend(); ++it) {
        if (backward_[*it]) continue;
        int32_t& own = (*lowest)[*it];
        const int32_t before = own;
        const auto add = [&](NodeId reader) {
          own = std::min({own, topology_.level(reader), (*lowest)[reader]});
        };
        if (!ForEachForwardReader(*it, add)) return false;
        changed = changed || own != before;
      }
      changed = changed && loops_;
    }
    return true;
  }

  // Adds the candidates that lead to a seed and are reached from it.
  bool AddPeers(std::vector<NodeId>* seeds) {
    const std::vector<NodeId> found = *seeds;
    VisitMarks leading(graph_.num_nodes());
    for (NodeId seed : found) {
      if (!Walk(seed)) return false;
      leading.Clear();
      leading.Insert(seed);
      std::vector<NodeId> queue = {seed};
      for (size_t done = 0; done < queue.size(); ++done) {
        for (Tensor input : graph_.inputs(queue[done])) {
          if (budget_->Spend()) return false;
          if (input.is_control() || backward_[input.node] || !leading.Insert(input.node)) continue;
          queue.push_back(input.node);
        }
      }
      for (NodeId id : reached_) {
        if (!leading.Insert(id)) seeds->push_back(id);
      }
    }
    return true;
  }

  // Fills reached_ with the other candidates that a walk from `start` reaches.
  bool Walk(NodeId start) {
    visited_.Clear();
    visited_.Insert(start);
    reached_.clear();
    std::vector<NodeId> queue = {start};
    for (size_t done = 0; done < queue.size(); ++done) {
      const auto enter = [&](NodeId reader) {
        if (!visited_.Insert(reader)) return;
        queue.push_back(reader);
        if (is_candidate_[reader]) reached_.push_back(reader);
      };
      if (!ForEachForwardReader(queue[done], enter)) return false;
    }
    return true;
  }

  // Calls visit(reader) for the readers outside the backward part. False if the budget is spent.
  template <typename Visit>
  bool ForEachForwardReader(NodeId id, const Visit& visit) {
    const Graph::Readers readers = graph_.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (budget_->Spend()) return false;
      const Graph::Reader reader = readers[i];
      if (reader.port == kControl || backward_[reader.node]) continue;
      visit(reader.node);
    }
    return true;
  }

  const Graph& graph_;
  const Topology& topology_;
  const NodeFlags& backward_;
  SearchBudget* budget_;
  const bool loops_;
  NodeFlags is_candidate_;
  std::vector<Candidate> candidates_;
  VisitMarks visited_;
  std::vector<NodeId> reached_;
};

}  // namespace

absl::StatusOr<std::vector<NodeId>> FindSeeds(const Graph& graph, const Topology& topology,
                                              const NodeFlags& backward, SearchBudget* budget) {
  return SeedSearch(graph, topology, backward, budget).Run();
}

}  // namespace spillway::core
