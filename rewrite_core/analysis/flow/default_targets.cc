#include "rewrite_core/analysis/flow/default_targets.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/flow/training_ops.h"
#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/graph/strip.h"

namespace spillway::core {
namespace {

// A moving average is a handful of ops on a variable and a value; with bias correction, a dozen.
constexpr size_t kMaxAverageOps = 64;
constexpr int kMaxAverageEdges = 4 * kMaxAverageOps;

class TargetFinder {
 public:
  TargetFinder(const Graph& graph, const Topology& topology, const Shapes& shapes,
               const BackwardPart& backward, const StopToken& stop)
      : graph_(graph),
        topology_(topology),
        shapes_(shapes),
        backward_(backward),
        stop_(stop),
        poll_(stop),
        seen_(graph.num_nodes()),
        needed_(graph.num_nodes(), false),
        targets_(backward.updates) {
    for (int32_t op = 0; op < graph.num_ops(); ++op) {
      write_of_op_.push_back(WriteOf(graph.op_name(op)));
    }
  }

  // Empty if stopped.
  absl::optional<std::vector<NodeId>> Run() {
    if (targets_.empty()) return std::move(targets_);
    if (!AddWaiting() || !AddAverages() || !AddLoss()) return absl::nullopt;
    return std::move(targets_);
  }

 private:
  // Each of these returns false if the call must end.

  bool Need(std::vector<NodeId> more) {
    targets_.insert(targets_.end(), more.begin(), more.end());
    return AddNeeded(graph_, shapes_, more, &poll_, &needed_);
  }

  Write write(NodeId id) const { return write_of_op_[graph_.op_id(id)]; }

  static bool IsData(absl::Span<const Tensor> inputs) {
    return !inputs.empty() && !inputs[0].is_control();
  }

  // The variable behind a reference or handle, or behind its value; kNoNode if none.
  NodeId VariableOf(NodeId id) const {
    constexpr int kMaxNames = 8;  // Identity of Enter of ...
    for (int hop = 0; hop < kMaxNames; ++hop) {
      if (backward_.variables.is_variable(id)) return id;
      const absl::string_view op = graph_.op(id);
      const absl::Span<const Tensor> inputs = graph_.inputs(id);
      const bool names = op == "Identity" || op == "ReadVariableOp" || op == "Enter" ||
                         op == "RefEnter" || op == "RefIdentity" || op == "Switch" ||
                         op == "RefSwitch";
      if (!names || !IsData(inputs)) return kNoNode;
      id = inputs[0].node;
    }
    return kNoNode;
  }

  // Reads back the written value, for possible readers.
  bool IsReadBack(NodeId id) const {
    const absl::Span<const Tensor> inputs = graph_.inputs(id);
    if (!IsData(inputs)) return false;
    if (graph_.op(id) == "ReadVariableOp") return true;
    return graph_.op(id) == "Identity" &&
           (write(inputs[0].node) != Write::kNone || VariableOf(inputs[0].node) != kNoNode);
  }

  // (1)
  bool AddWaiting() {
    NodeFlags waits(graph_.num_nodes(), false);
    std::vector<NodeId> queue = targets_;
    for (NodeId id : queue) waits[id] = true;
    for (size_t done = 0; done < queue.size(); ++done) {
      const Graph::Readers readers = graph_.readers(queue[done]);
      for (uint32_t i = 0; i < readers.size(); ++i) {
        if (poll_.Tick()) return false;
        if (waits[readers[i].node]) continue;
        waits[readers[i].node] = true;
        queue.push_back(readers[i].node);
      }
    }
    // Its record, which may be long, is read once, however many nodes it reads.
    absl::flat_hash_map<NodeId, bool> idle;
    const auto is_idle = [&](NodeId id) {
      if (!graph_.has_undo(id)) return false;
      const auto [found, is_new] = idle.try_emplace(id, false);
      if (is_new) found->second = IsIdleCall(graph_, id);
      return found->second;
    };
    std::vector<NodeId> last;
    for (NodeId id : queue) {
      if (poll_.Tick()) return false;
      if (std::binary_search(backward_.updates.begin(), backward_.updates.end(), id)) continue;
      const Graph::Readers readers = graph_.readers(id);
      bool is_last = !(readers.empty() && (IsReadBack(id) || is_idle(id)));
      for (uint32_t i = 0; is_last && i < readers.size(); ++i) {
        if (poll_.Tick()) return false;
        if (is_idle(readers[i].node)) continue;
        is_last = graph_.readers(readers[i].node).empty() && IsReadBack(readers[i].node);
      }
      if (is_last) last.push_back(id);
    }
    if (!PolledSort(last.begin(), last.end(), std::less<>(), &poll_)) return false;
    needed_.assign(graph_.num_nodes(), false);
    return AddNeeded(graph_, shapes_, targets_, &poll_, &needed_) && Need(std::move(last));
  }

  // (2)
  bool AddAverages() {
    // The sources of the updates. Does not include averages that they wait for.
    NodeFlags updates(graph_.num_nodes(), false);
    for (NodeId id : backward_.updates) updates[id] = true;
    auto step = LeadingTo(graph_, updates, stop_);
    if (!step.ok()) return false;
    std::vector<NodeId> averages;
    bool are_grouped = false;
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      if (poll_.Tick()) return false;
      if (updates[id] || write(id) != Write::kPlain || shapes_.IsFed(id)) continue;
      const absl::Span<const Tensor> inputs = graph_.inputs(id);
      if (!IsData(inputs)) continue;
      const NodeId variable = VariableOf(inputs[0].node);
      if (variable == kNoNode || !IsAverage(inputs, variable, *step)) continue;
      averages.push_back(id);
      are_grouped = are_grouped || needed_[id];
    }
    if (are_grouped) averages.clear();
    return Need(std::move(averages));
  }

  // Whether a write of `variable` with these inputs writes a value computed from itself and `step`.
  bool IsAverage(absl::Span<const Tensor> write, NodeId variable, const NodeFlags& step) {
    seen_.Clear();
    std::vector<NodeId> queue;
    bool from_itself = false, from_step = false;
    int edges = 0;
    const auto visit = [&](absl::Span<const Tensor> inputs) {
      for (Tensor input : inputs) {
        if (poll_.Tick() || input.is_control() || ++edges > kMaxAverageEdges) return;
        const NodeId read = VariableOf(input.node);
        if (read != kNoNode) {
          from_itself = from_itself || read == variable;
        } else if (step[input.node] && IsData(graph_.inputs(input.node))) {
          from_step = true;
        } else if (queue.size() < kMaxAverageOps && seen_.Insert(input.node)) {
          queue.push_back(input.node);
        }
      }
    };
    visit(write.subspan(1));
    for (size_t done = 0; done < queue.size() && !(from_itself && from_step); ++done) {
      if (!shapes_.IsFed(queue[done])) visit(graph_.inputs(queue[done]));
    }
    return from_itself && from_step;
  }

  bool IsFloat(NodeId id) const {
    const DataType dtype = shapes_.type({id, 0}).dtype;
    return dtype == kDtFloat32 || dtype == kDtDouble || dtype == kDtHalf || dtype == kDtBfloat16;
  }
  bool IsScalar(NodeId id) const {
    const ShapeView shape = shapes_.shape({id, 0});
    return shape.known_rank && shape.dims.empty();
  }

  // Whether the forward part ends here: the step computes the node from weights, and only the
  // backward part reads it.
  bool IsEnd(NodeId id, const NodeFlags& from_weights) {
    if (!needed_[id] || !from_weights[id] || backward_.ops[id] || write(id) != Write::kNone ||
        !IsFloat(id) || VariableOf(id) != kNoNode || !IsData(graph_.inputs(id))) {
      return false;
    }
    bool any = false;
    const Graph::Readers readers = graph_.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll_.Tick()) return false;  // The caller looks at the token.
      if (readers[i].port == kControl || !needed_[readers[i].node]) continue;
      if (!backward_.ops[readers[i].node]) return false;
      any = true;
    }
    return any;
  }

  // (3)
  bool AddLoss() {
    std::vector<NodeId> weights;
    for (NodeId id : backward_.updates) {
      if (poll_.Tick()) return false;
      const absl::Span<const Tensor> inputs = graph_.inputs(id);
      const auto add = [&](NodeId handle) {
        const NodeId variable = VariableOf(handle);
        if (variable != kNoNode) weights.push_back(variable);
      };
      const CallUse* call = backward_.variables.call(id);
      if (call == nullptr && IsData(inputs)) add(inputs[0].node);
      if (call == nullptr) continue;
      for (int32_t input : call->written) {
        if (poll_.Tick()) return false;
        add(inputs[input].node);
      }
    }
    const auto from_weights = ReachedFrom(graph_, weights, nullptr, stop_);
    if (!from_weights.ok()) return false;
    // The kind of each node: not part of a loss, computed from the step's nodes, from its ends.
    enum : char { kNo, kPure, kFromEnds };
    std::vector<char> kind(graph_.num_nodes(), kNo);
    std::vector<NodeId> scalars;
    for (NodeId id : topology_.order()) {
      const absl::Span<const Tensor> inputs = graph_.inputs(id);
      if (poll_.Tick()) return false;
      if (needed_[id]) {
        if (IsEnd(id, *from_weights)) kind[id] = kFromEnds;
        if (!stop_.status("targets").ok()) return false;
        continue;
      }
      const OpInfo& info = graph_.op_info(id);
      if (!IsData(inputs) || !info.known || info.control_flow != ControlFlow::kNone ||
          write(id) != Write::kNone || shapes_.IsFed(id) || !IsFloat(id)) {
        continue;
      }
      const bool is_scalar = IsScalar(id);
      kind[id] = kPure;
      for (Tensor input : inputs) {
        if (poll_.Tick()) return false;
        if (input.is_control()) break;
        const NodeId read = input.node;
        const bool fits = (needed_[read] && !backward_.ops[read]) || graph_.op(read) == "Const" ||
                          kind[read] == kFromEnds ||
                          (kind[read] == kPure && !(is_scalar && IsScalar(read)));
        // A node computed from a scalar of a loss is one, too.
        if (!fits || (!is_scalar && !needed_[read] && kind[read] == kFromEnds && IsScalar(read))) {
          kind[id] = kNo;
          break;
        }
        if (kind[read] == kFromEnds) kind[id] = kFromEnds;
      }
      if (is_scalar && kind[id] == kFromEnds) scalars.push_back(id);
    }
    std::vector<NodeId> losses;
    for (NodeId id : scalars) {
      const Graph::Readers readers = graph_.readers(id);
      bool is_last = true;
      for (uint32_t i = 0; is_last && i < readers.size(); ++i) {
        if (poll_.Tick()) return false;
        is_last = readers[i].port == kControl || needed_[readers[i].node] ||
                  kind[readers[i].node] != kFromEnds;
      }
      if (is_last) losses.push_back(id);
    }
    if (!PolledSort(losses.begin(), losses.end(), std::less<>(), &poll_)) return false;
    return Need(std::move(losses));
  }

  const Graph& graph_;
  const Topology& topology_;
  const Shapes& shapes_;
  const BackwardPart& backward_;
  const StopToken& stop_;
  StopPoller poll_;
  std::vector<Write> write_of_op_;
  VisitMarks seen_;
  NodeFlags needed_;  // Needed by targets_.
  std::vector<NodeId> targets_;
};

}  // namespace

absl::StatusOr<std::vector<NodeId>> FindDefaultTargets(const Graph& graph, const Topology& topology,
                                                       const Shapes& shapes,
                                                       const BackwardPart& backward,
                                                       const StopToken& stop) {
  auto targets = TargetFinder(graph, topology, shapes, backward, stop).Run();
  if (!targets) return stop.status("targets");
  return *std::move(targets);
}

bool AddNeeded(const Graph& graph, const Shapes& shapes, const std::vector<NodeId>& targets,
               StopPoller* poll, NodeFlags* needed) {
  std::vector<NodeId> stack;
  const auto visit = [&](NodeId id) {
    if ((*needed)[id]) return;
    (*needed)[id] = true;
    if (!shapes.IsFed(id)) stack.push_back(id);
  };
  for (NodeId id : targets) visit(id);
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    for (Tensor input : graph.inputs(id)) {
      if (poll->Tick()) return false;
      visit(input.node);
    }
  }
  return true;
}

}  // namespace spillway::core
