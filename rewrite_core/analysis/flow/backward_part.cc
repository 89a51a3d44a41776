#include "rewrite_core/analysis/flow/backward_part.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "rewrite_core/analysis/flow/training_ops.h"

namespace spillway::core {
namespace {

// The sources of a value: constants, one variable (and constants), or more.
using SourceNode = NodeId;
constexpr SourceNode kConstants(-1);
constexpr SourceNode kSeveral(-2);

SourceNode Join(SourceNode a, SourceNode b) {
  if (a == kConstants || a == b) return b;
  return b == kConstants ? a : kSeveral;
}

class Finder {
 public:
  Finder(const Graph& graph, const Topology& topology, const StopToken& stop)
      : graph_(graph),
        topology_(topology),
        stop_(stop),
        poll_(stop),
        write_of_op_(graph.num_ops()),
        is_accumulator_op_(graph.num_ops()) {
    for (int32_t op = 0; op < graph.num_ops(); ++op) {
      write_of_op_[op] = WriteOf(graph.op_name(op));
      is_accumulator_op_[op] = absl::EndsWith(graph.op_name(op), "ConditionalAccumulator");
    }
  }

  absl::StatusOr<BackwardPart> Run() {
    part_.ops.assign(graph_.num_nodes(), false);
    auto variables = Variables::Find(graph_, stop_);
    if (!variables.ok()) return variables.status();
    part_.variables = *std::move(variables);
    if (!FlagGradients() || !FindSources()) return stop_.status("analysis");
    auto leading = LeadingTo(graph_, part_.ops, stop_);
    if (!leading.ok()) return leading.status();
    leads_to_gradients_ = *leading;
    if (!FindUpdates()) return stop_.status("analysis");
    absl::Status status = AddLeadingTo(graph_, part_.updates, stop_, &*leading);
    if (!status.ok()) return status;
    // If gradients have no op types of their own, they are found from the updates.
    if (!any_gradients_) leads_to_gradients_ = *leading;
    if (!FindCandidates(*leading) || !FindFirstUses()) return stop_.status("analysis");
    auto forward = LeadingTo(graph_, first_uses_, stop_);
    if (!forward.ok()) return forward.status();
    auto behind = BehindLastUse();
    if (!behind.ok()) return behind.status();
    if (JudgeCandidates(*behind)) {
      status = AddLeadingTo(graph_, part_.updates, stop_, &*leading);
      if (!status.ok()) return status;
    }
    if (!FindTurn(*forward, *behind)) return stop_.status("analysis");
    if (!Absorb(*forward, *behind, *leading)) return stop_.status("analysis");
    return std::move(part_);
  }

 private:
  // Each step returns false if the call must end.

  // By its op: calls are checked separately, because they may do other things as well.
  Write write(NodeId id) const { return write_of_op_[graph_.op_id(id)]; }
  // A sum of gradients over workers counts as a gradient.
  bool is_variable(NodeId id) const {
    return part_.variables.is_variable(id) || is_accumulator_op_[graph_.op_id(id)];
  }
  const CallUse* call(NodeId id) const { return part_.variables.call(id); }

  // (1): ops of gradient types, and everything reached from them.
  bool FlagGradients() {
    std::vector<bool> is_gradient_op(graph_.num_ops());
    for (int32_t op = 0; op < graph_.num_ops(); ++op) {
      is_gradient_op[op] = IsGradientOpType(graph_.op_name(op));
    }
    std::vector<NodeId> queue;
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      if (poll_.Tick()) return false;
      const bool calls_gradients = call(id) != nullptr && call(id)->has_gradients;
      if (!is_gradient_op[graph_.op_id(id)] && !calls_gradients) continue;
      part_.ops[id] = true;
      queue.push_back(id);
    }
    any_gradients_ = !queue.empty();
    return Spread(std::move(queue));
  }

  // Takes everything reached from the ops in `queue`, up to the write of a variable.
  bool Spread(std::vector<NodeId> queue) {
    for (size_t done = 0; done < queue.size(); ++done) {
      const CallUse* use = call(queue[done]);
      const bool updates = use != nullptr && use->write == Write::kOptimizer;
      if (updates || write(queue[done]) != Write::kNone) continue;
      const Graph::Readers readers = graph_.readers(queue[done]);
      for (uint32_t i = 0; i < readers.size(); ++i) {
        if (poll_.Tick()) return false;
        const Graph::Reader reader = readers[i];
        if (reader.port == kControl || part_.ops[reader.node]) continue;
        part_.ops[reader.node] = true;
        queue.push_back(reader.node);
      }
    }
    return true;
  }

  bool FindSources() {
    source_.assign(graph_.num_nodes(), kConstants);
    for (NodeId id : topology_.order()) {
      if (poll_.Tick()) return false;
      const absl::Span<const Tensor> inputs = graph_.inputs(id);
      if (is_variable(id)) {
        source_[id] = id;
        continue;
      }
      if (graph_.op_info(id).host_outputs) continue;  // Shapes count as constants.
      if (inputs.empty() || inputs[0].is_control()) {
        // A placeholder, a file reader, ... is neither a constant nor a variable.
        if (graph_.op(id) != "Const" && graph_.op(id) != "NoOp") source_[id] = kSeveral;
        continue;
      }
      for (Tensor input : inputs) {
        if (poll_.Tick()) return false;
        if (!input.is_control()) source_[id] = Join(source_[id], source_[input.node]);
      }
    }
    return true;
  }

  // (2), except for plain writes, which may or may not be updates.
  bool FindUpdates() {
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      if (poll_.Tick()) return false;
      const CallUse* use = call(id);
      const Write by = use != nullptr ? use->write : write(id);
      const bool is_optimizer = by == Write::kOptimizer || by == Write::kAccumulator;
      const bool is_write = is_optimizer || (part_.ops[id] && IsPlainWrite(id));
      if (is_write && WrittenVariable(id) != kConstants) part_.updates.push_back(id);
    }
    for (NodeId id : part_.updates) part_.ops[id] = true;
    return true;
  }

  // The other plain writes to variables that the gradients or the updates depend on. Sets updated_:
  // the variables that either kind writes.
  bool FindCandidates(const NodeFlags& leads_to_part) {
    updated_.assign(graph_.num_nodes(), false);
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      if (poll_.Tick()) return false;
      if (part_.ops[id] || !IsPlainWrite(id)) continue;
      const SourceNode variable = WrittenVariable(id);
      if (variable >= 0 && leads_to_part[variable]) candidates_.push_back(id);
    }
    for (const std::vector<NodeId>* writes : {&part_.updates, &candidates_}) {
      for (NodeId id : *writes) {
        if (poll_.Tick()) return false;
        const CallUse* use = call(id);
        if (use == nullptr) {
          const SourceNode variable = WrittenVariable(id);
          if (variable >= 0) updated_[variable] = true;
          continue;
        }
        for (int32_t input : use->written) {
          if (poll_.Tick()) return false;
          const SourceNode variable = source_[graph_.inputs(id)[input].node];
          if (variable >= 0) updated_[variable] = true;
        }
      }
    }
    return true;
  }

  bool IsPlainWrite(NodeId id) const {
    return write(id) == Write::kPlain || (call(id) != nullptr && call(id)->write == Write::kPlain);
  }

  // The target of a write: kSeveral if it depends on more than one variable (in a conditional) or
  // is a call, kConstants if it has no data input.
  SourceNode WrittenVariable(NodeId id) const {
    if (call(id) != nullptr) return kSeveral;
    const absl::Span<const Tensor> inputs = graph_.inputs(id);
    return inputs.empty() || inputs[0].is_control() ? kConstants : source_[inputs[0].node];
  }

  // Finds the lowest-level uses of each updated variable: ops that combine it with something else.
  // No gradient can precede them. Sets last_use_ to the highest of these levels.
  bool FindFirstUses() {
    std::vector<int32_t> lowest(graph_.num_nodes(), std::numeric_limits<int32_t>::max());
    first_uses_.assign(graph_.num_nodes(), false);
    struct Use {
      NodeId node;
      SourceNode variable;
    };
    std::vector<Use> uses;
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      if (poll_.Tick() || !stop_.status("analysis").ok()) return false;
      if (source_[id] != kSeveral || part_.ops[id] || write(id) != Write::kNone) continue;
      // The uses of an optimizer's own variables (momentum) lead to no gradient.
      if (!leads_to_gradients_[id] || IsReadForShapeOnly(id)) continue;
      for (Tensor input : graph_.inputs(id)) {
        if (poll_.Tick()) return false;
        if (input.is_control()) break;
        const SourceNode variable = source_[input.node];
        if (variable < 0 || !updated_[variable]) continue;
        lowest[variable] = std::min(lowest[variable], topology_.level(id));
        uses.push_back({id, variable});
      }
    }
    for (const Use use : uses) {
      if (poll_.Tick()) return false;
      const int32_t level = topology_.level(use.node);
      if (level != lowest[use.variable]) continue;
      first_uses_[use.node] = true;
      if (last_use_ == kNoNode || level > topology_.level(last_use_)) last_use_ = use.node;
    }
    return true;
  }

  // tf.gradients creates zeros with a tensor's shape for the side of a conditional that was not
  // taken.
  bool IsReadForShapeOnly(NodeId id) {
    const Graph::Readers readers = graph_.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll_.Tick()) return true;  // The caller looks at the token.
      const NodeId reader = readers[i].node;
      if (readers[i].port == kControl || IsUnreadName(reader)) continue;
      if (!graph_.op_info(reader).host_outputs) return false;
    }
    return true;
  }

  // An Identity that tf.gradients creates for each output, needed or not.
  bool IsUnreadName(NodeId id) const {
    return graph_.op(id) == "Identity" && !HasDataReader(graph_, id);
  }

  // Returns the nodes that depend on the last use of a variable, as all gradients of that loss do.
  absl::StatusOr<NodeFlags> BehindLastUse() const {
    if (last_use_ == kNoNode) return NodeFlags(graph_.num_nodes(), false);
    return ReachedFrom(graph_, {last_use_}, nullptr, stop_);
  }

  // Whether some candidate is an update.
  bool JudgeCandidates(const NodeFlags& behind) {
    const auto before = static_cast<std::ptrdiff_t>(part_.updates.size());
    for (NodeId id : candidates_) {
      if (!behind[id]) continue;
      part_.updates.push_back(id);
      part_.ops[id] = true;
    }
    // Both parts are sorted.
    const auto first_new = part_.updates.begin() + before;
    const bool any = first_new != part_.updates.end();
    std::inplace_merge(part_.updates.begin(), first_new, part_.updates.end());
    return any;
  }

  // Sets turn_: the lowest level with a certain gradient of the last use.
  bool FindTurn(const NodeFlags& forward, const NodeFlags& behind) {
    const auto note = [&](NodeId id) {
      // Shape computations of gradients may be at any level.
      if (behind[id] && !forward[id] && source_[id] == kSeveral) {
        turn_ = std::min(turn_, topology_.level(id));
      }
    };
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      if (poll_.Tick()) return false;
      if (part_.ops[id]) note(id);
    }
    for (NodeId id : part_.updates) {
      for (Tensor input : graph_.inputs(id)) {
        if (poll_.Tick()) return false;
        if (!input.is_control()) note(input.node);
      }
    }
    return true;
  }

  // (3) and (4): ops whose readers are all taken, ignoring readers that do not count (HasSay); and
  // the gates that a taken op waits for and that lead to no gradient themselves.
  bool Absorb(const NodeFlags& forward, const NodeFlags& behind, const NodeFlags& leading) {
    // Per node: the number of its data edges to ops that are not taken.
    std::vector<uint32_t> open(graph_.num_nodes(), 0);
    std::vector<NodeId> queue;
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      if (part_.ops[id]) {
        queue.push_back(id);
        continue;
      }
      for (Tensor input : graph_.inputs(id)) {
        if (poll_.Tick()) return false;
        if (HasSay(id, input, leading)) ++open[input.node];
      }
    }
    const auto take = [&](NodeId id) {
      const bool is_feed = graph_.inputs(id).empty() && source_[id] == kSeveral;
      if (part_.ops[id] || is_feed || is_variable(id) || write(id) != Write::kNone) return;
      part_.ops[id] = true;
      queue.push_back(id);
    };
    // The ops flagged so far are in `queue`; their edges were not counted as open.
    const size_t first_absorbed = queue.size();
    // Inputs of an update are gradients, regardless of other readers.
    for (NodeId id : part_.updates) {
      for (Tensor input : graph_.inputs(id)) {
        if (poll_.Tick()) return false;
        if (!input.is_control() && behind[input.node] && !forward[input.node]) take(input.node);
      }
    }
    for (size_t done = 0; done < queue.size(); ++done) {
      for (Tensor input : graph_.inputs(queue[done])) {
        if (poll_.Tick()) return false;
        if (input.is_control()) {
          // The gate of tf.gradients: gradient -> NoOp -> gradient.
          const bool gate = graph_.op(input.node) == "NoOp" || graph_.op(queue[done]) == "NoOp";
          if (gate && !leading[input.node]) take(input.node);
          continue;
        }
        if (done >= first_absorbed && HasSay(queue[done], input, leading)) --open[input.node];
        if (open[input.node] == 0 && !forward[input.node]) take(input.node);
      }
    }
    return Spread(std::move(queue));
  }

  // Whether an op that is not taken prevents its input from being taken. Plain writes that are not
  // updates do not, nor do ops above the turn that lead to no gradient: unused gradients, and ops
  // that only watch gradients. The loss and other ends of the forward part are below the turn.
  bool HasSay(NodeId id, Tensor input, const NodeFlags& leading) const {
    return !input.is_control() && write(id) != Write::kPlain && !IsUnreadName(id) &&
           (leading[id] || topology_.level(id) <= turn_);
  }

  const Graph& graph_;
  const Topology& topology_;
  const StopToken& stop_;
  StopPoller poll_;
  std::vector<Write> write_of_op_;
  std::vector<bool> is_accumulator_op_;
  bool any_gradients_ = false;
  NodeFlags leads_to_gradients_;
  std::vector<SourceNode> source_;
  NodeFlags updated_;
  std::vector<NodeId> candidates_;
  NodeFlags first_uses_;
  NodeId last_use_ = kNoNode;
  int32_t turn_ = std::numeric_limits<int32_t>::max();
  BackwardPart part_;
};

}  // namespace

absl::StatusOr<BackwardPart> FindBackwardPart(const Graph& graph, const Topology& topology,
                                              const StopToken& stop) {
  return Finder(graph, topology, stop).Run();
}

}  // namespace spillway::core
