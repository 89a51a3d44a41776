// PlanOverlay: a plan laid over a graph. The plan's swap nodes are numbered after the original
// nodes, and the inputs of original nodes that the plan changes are replaced.
//
// Thread safety: one thread at a time while Set runs; otherwise immutable.
#ifndef SPILLWAY_REWRITE_CORE_SIMULATE_PLAN_OVERLAY_H_
#define SPILLWAY_REWRITE_CORE_SIMULATE_PLAN_OVERLAY_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "rewrite_core/analysis/step_facts.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/plan/swap_plan.h"

namespace spillway::core {

class PlanOverlay {
 public:
  struct SwapNode {
    Tensor tensor;  // The swapped tensor of the graph.
    Tensor input;   // Its input: `tensor`, or the swap-out.
    absl::Span<const NodeId> triggers;
    absl::Span<const InputPosition> consumers;  // Of a swap-in.
    Place place;                                // Its place.
    int32_t swap = 0;                           // Index in the plan,
    int32_t swap_in = -1;                       // and in that swap; -1: the swap-out.
    int32_t next = -1;                          // The next one for the same producer.
  };

  // `facts` must outlive the overlay.
  explicit PlanOverlay(const StepFacts& facts)
      : facts_(facts), num_nodes_(facts.graph().num_nodes()) {}

  // Lays `plan`, which must outlive the overlay, over the graph in place of the previous one.
  // Returns false if stopped: then only Set may be called.
  bool Set(const SwapPlan& plan, StopPoller* poll);

  bool IsSwapNode(NodeId id) const { return id >= num_nodes_; }
  const std::vector<SwapNode>& swap_nodes() const { return swap_nodes_; }
  const SwapNode& swap(NodeId id) const { return swap_nodes_[id - num_nodes_]; }
  // Whether one of the nodes that read a swap-in, or one of a swap-out's swap-ins, is a reader by
  // `reads`.
  template <typename Reads>
  bool IsRead(NodeId id, const Reads& reads) const;
  // The id of swap_nodes()[position].
  NodeId id(int32_t position) const { return NodeId(num_nodes_ + position); }
  // The swap nodes of an original node's outputs: positions in swap_nodes(), by SwapNode::next from
  // here on; -1: none. A swap-out comes before its swap-ins.
  int32_t first_swap_node(NodeId id) const { return first_.empty() ? -1 : first_[id]; }

  // Original nodes whose inputs are changed, each once.
  const std::vector<NodeId>& edited() const { return edited_nodes_; }
  // The node's inputs; a fed node has none.
  absl::Span<const Tensor> Inputs(NodeId id) const;

 private:
  // Input `index` of `node` is `tensor`; from kAppended on, it is an additional control input.
  static constexpr int32_t kAppended = 1 << 30;
  struct Edit {
    NodeId node;
    int32_t index;
    Tensor tensor;
  };

  void AddSwap(const PlannedSwap& planned, int32_t swap, Place place);
  NodeId AddSwapNode(const SwapNode& node);
  bool EditInputs(StopPoller* poll);
  absl::Span<const Tensor> ListOf(int32_t list) const {
    return absl::MakeSpan(inputs_).subspan(begin_[list], begin_[list + 1] - begin_[list]);
  }

  const StepFacts& facts_;
  const int32_t num_nodes_;
  std::vector<SwapNode> swap_nodes_;
  std::vector<NodeId> edited_nodes_;
  std::vector<Edit> edits_;
  // By original node; empty before the first plan.
  std::vector<int32_t> first_;  // Its first swap node,
  std::vector<int32_t> list_;   // and its list of inputs; -1: the graph's.
  // The lists: those of the swap nodes, then those of the edited nodes.
  std::vector<Tensor> inputs_;
  std::vector<int32_t> begin_;
};

template <typename Reads>
bool PlanOverlay::IsRead(NodeId id, const Reads& reads) const {
  // Its swap-ins follow a swap-out.
  for (size_t i = id - num_nodes_; i < swap_nodes_.size(); ++i) {
    for (const InputPosition& consumer : swap_nodes_[i].consumers) {
      if (reads(consumer.node)) return true;
    }
    const bool is_last = i + 1 == swap_nodes_.size() || swap_nodes_[i + 1].swap_in < 0;
    if (swap(id).swap_in >= 0 || is_last) return false;
  }
  return false;
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_SIMULATE_PLAN_OVERLAY_H_
