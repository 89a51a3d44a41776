// The candidates for triggers as the specification of TFLMS v1 lists them, by simple, slow walks:
// the reference for TriggerSearch.
#ifndef SPILLWAY_TESTS_REWRITE_CORE_STRATEGY_SCOPE_NAIVE_TRIGGERS_H_
#define SPILLWAY_TESTS_REWRITE_CORE_STRATEGY_SCOPE_NAIVE_TRIGGERS_H_

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "rewrite_core/analysis/flow/reachability.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/strategy/scope/scope_defaults.h"
#include "rewrite_core/strategy/scope/scope_order.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {

class NaiveTriggers {
 public:
  // All references must outlive this.
  NaiveTriggers(const StepFacts& facts, const ScopeOrder& order, const NodeFlags& backward,
                const ScopeDefaults& parameters)
      : facts_(facts), order_(order.order), backward_(backward), parameters_(parameters) {
    start_ = order.backward_start;
  }

  // The rule for a swap-in from `f`, gated for `b`: v1's chain_rule hands over to direct order in
  // these cases.
  bool IsDirect(NodeId f, NodeId b) const {
    return parameters_.direct_order || backward_[f] || order_[b] - Lb(f, b) < start_;
  }
  int Lb(NodeId f, NodeId b) const {
    return order_[b] - parameters_.lb <= order_[f] ? 1 : parameters_.lb;
  }

  // The sets of candidates in the order in which they are tried: v1 takes any op of the first set
  // that is not empty.
  std::vector<std::vector<NodeId>> Rounds(NodeId f, NodeId b) const {
    return IsDirect(f, b) ? DirectRounds(f, b, Lb(f, b)) : ChainRounds(f, b, Lb(f, b));
  }

  // The required result: of the first set with a sound candidate, the lowest order, then id.
  NodeId Expected(NodeId f, NodeId b, const std::vector<NodeId>& consumers) const {
    for (const std::vector<NodeId>& round : Rounds(f, b)) {
      NodeId best = kNoNode;
      for (NodeId id : round) {
        if (!IsSound(id, consumers)) continue;
        if (best == kNoNode ||
            std::make_pair(order_[id], id) < std::make_pair(order_[best], best)) {
          best = id;
        }
      }
      if (best != kNoNode) return best;
    }
    return kNoNode;
  }

 private:
  bool IsSound(NodeId trigger, const std::vector<NodeId>& consumers) const {
    return std::all_of(consumers.begin(), consumers.end(), [&](NodeId consumer) {
      const NodeFlags& needed = facts_.active_nodes().needed;
      return facts_.topology().level(trigger) < facts_.topology().level(consumer) &&
             facts_.control_flow().MayControl(trigger, consumer) &&
             (needed[trigger] || !needed[consumer]);
    });
  }

  bool HasCond(NodeId id) const { return absl::StrContains(facts_.graph().name(id), "/cond/"); }

  std::vector<std::vector<NodeId>> DirectRounds(NodeId f, NodeId b, int lb) const {
    const Graph& graph = facts_.graph();
    NodeFlags is_b(graph.num_nodes(), false);
    is_b[b] = true;
    const NodeFlags leads = testing::ValueOrDie(LeadingTo(graph, is_b, StopToken()), "ancestors");
    // From order(b) - lb - 1 down.
    const int64_t highest = int64_t{order_[b]} - lb - 1;
    const int64_t lowest = std::max<int64_t>(int64_t{order_[b]} - parameters_.ub, order_[f]) + 1;
    if (highest < std::max<int64_t>(lowest, 0)) return {};
    std::vector<std::vector<NodeId>> rounds(highest + 1 - std::max<int64_t>(lowest, 0));
    for (NodeId id(0); id < graph.num_nodes(); ++id) {
      const int64_t level = order_[id];
      if (level < 0 || level > highest || level < lowest || !leads[id] || HasCond(id)) continue;
      rounds[highest - level].push_back(id);
    }
    return rounds;
  }

  std::vector<std::vector<NodeId>> ChainRounds(NodeId f, NodeId b, int lb) const {
    const Graph& graph = facts_.graph();
    int ub = parameters_.ub;
    std::vector<std::vector<NodeId>> rounds;
    NodeFlags seen(graph.num_nodes(), false);
    seen[f] = true;
    std::vector<NodeId> step = {f};
    while (!step.empty()) {
      std::vector<NodeId> next;
      for (NodeId id : step) {
        for (NodeId reader : DataReaders(id)) {
          if (backward_[reader] || seen[reader]) continue;
          seen[reader] = true;
          next.push_back(reader);
        }
      }
      step = next;
      --lb;
      --ub;
      if (ub == 0 || lb > ub) break;
      if (lb > 0) continue;
      std::vector<NodeId> round;
      for (NodeId id : step) {
        for (NodeId reader : DataReaders(id)) {
          const OpInfo& info = graph.op_info(reader);
          // Ours: no update of a variable.
          const bool update =
              info.known && (info.outputs.empty() || absl::StrContains(info.outputs, '&'));
          if (backward_[reader] && order_[reader] > order_[f] && order_[reader] < order_[b] &&
              !HasCond(reader) && !update) {
            round.push_back(reader);
          }
        }
      }
      rounds.push_back(std::move(round));
    }
    return rounds;
  }

  std::vector<NodeId> DataReaders(NodeId id) const {
    std::vector<NodeId> result;
    const Graph::Readers readers = facts_.graph().readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (readers[i].port != kControl) result.push_back(readers[i].node);
    }
    return result;
  }

  const StepFacts& facts_;
  const std::vector<int32_t>& order_;
  const NodeFlags& backward_;
  const ScopeDefaults parameters_;
  int32_t start_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_TESTS_REWRITE_CORE_STRATEGY_SCOPE_NAIVE_TRIGGERS_H_
