#include "rewrite_core/analysis/flow/loops.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "google/protobuf/io/coded_stream.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/shown_name.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::core {
namespace {

constexpr char kLoopsStage[] = "loops";
// The maximum number of Identities between a condition and its operands, or between a counter and
// its initial value.
constexpr int kMaxHops = 64;
// Inputs of a Merge at the start of a loop: usually two. One with very many inputs does not count
// as such.
constexpr size_t kMaxMergeInputs = 8;
// Conditions that must all hold.
constexpr size_t kMaxConjuncts = 16;
// The maximum count of a loop, and of a body in total, so that bytes and times do not overflow.
constexpr int64_t kMaxRuns = int64_t{1} << 40;

absl::Status BadCount(const v1::LoopCount& given, v1::ErrorReason reason, absl::string_view what) {
  return InvalidError(reason,
                      absl::StrCat("loop count of ", Quoted(ShownName(given.name())), " ", what),
                      {{"option", "loop_counts"}, {"value", given.name()}});
}

// The number of iterations while `start` + k * `step` < `bound`; nullopt if they never end.
absl::optional<int64_t> CountBelow(__int128 start, __int128 step, __int128 bound) {
  if (start >= bound) return 0;
  if (step <= 0) return absl::nullopt;
  const __int128 count = (bound - start + step - 1) / step;
  return static_cast<int64_t>(std::min<__int128>(count, kMaxRuns));
}

}  // namespace

class LoopFinder {
 public:
  LoopFinder(const Graph& graph, const Topology& topology, const Shapes& shapes,
             const ControlFlowAnalysis& control_flow, const StopToken& stop)
      : graph_(graph),
        topology_(topology),
        shapes_(shapes),
        control_flow_(control_flow),
        stop_(stop),
        poll_(stop) {}

  absl::StatusOr<Loops> Find(const v1::Step& step) {
    if (!FindLoops()) return stop_.status(kLoopsStage);
    if (!result_.loops_.empty() && !Order()) return stop_.status(kLoopsStage);
    if (absl::Status s = Give(step); !s.ok()) return s;
    if (result_.loops_.empty()) return std::move(result_);
    if (!Count()) return stop_.status(kLoopsStage);
    for (Loops::Loop& loop : result_.loops_) {  // Parents come before.
      const int32_t around = Number(loop.parent);
      const Loops::Loop* parent = around < 0 ? nullptr : &result_.loops_[around];
      loop.is_known = loop.count != kUnknownCount && (parent == nullptr || parent->is_known);
      const int64_t outer = parent == nullptr ? 1 : parent->runs;
      const int64_t count = loop.count == kUnknownCount ? 1 : std::max<int64_t>(loop.count, 1);
      loop.runs = count > kMaxRuns / outer ? kMaxRuns : count * outer;
    }
    return std::move(result_);
  }

 private:
  ControlFlow kind(NodeId id) const { return graph_.op_info(id).control_flow; }
  int32_t Number(FrameId frame) const {
    const auto found = numbers_.find(frame);
    return found == numbers_.end() ? -1 : found->second;
  }

  // Each of these returns false if the call must end.

  bool FindLoops() {
    if (!graph_.has_control_flow()) return true;
    for (NodeId id : topology_.order()) {
      if (poll_.Tick()) return false;
      const FrameId frame = control_flow_.output_frame(id);
      if (kind(id) != ControlFlow::kEnter || frame == kUnknownFrame) continue;
      const auto [number, is_new] = numbers_.try_emplace(frame, result_.loops_.size());
      if (!is_new) {
        NodeId& first = result_.loops_[number->second].enter;
        first = std::min(first, id);
        continue;
      }
      Loops::Loop& loop = result_.loops_.emplace_back();
      const auto name = graph_.attr(id, "frame_name");
      loop.name = std::string(name ? AttrString(*name).value_or("") : "");
      loop.parent = control_flow_.input_frame(id);
      loop.enter = id;
    }
    if (result_.loops_.empty()) return true;
    result_.loop_of_.assign(graph_.num_nodes(), -1);
    for (NodeId id(0); id < graph_.num_nodes(); ++id) {
      if (poll_.Tick()) return false;
      const bool leaves = kind(id) == ControlFlow::kExit;
      result_.loop_of_[id] =
          Number(leaves ? control_flow_.output_frame(id) : control_flow_.input_frame(id));
    }
    return true;
  }

  // The topological order with an extra edge for each Exit, from the NextIteration of its variable.
  bool Order() {
    const int32_t n = graph_.num_nodes();
    absl::flat_hash_map<NodeId, std::vector<NodeId>> exits;  // By NextIteration.
    for (NodeId id(0); id < n; ++id) {
      if (poll_.Tick()) return false;
      if (kind(id) != ControlFlow::kExit) continue;
      const NodeId next = NextOf(id);
      if (next == kNoNode) continue;
      result_.last_values_[id] = next;
      exits[next].push_back(id);
    }
    std::vector<int32_t> waiting(n);
    std::vector<NodeId>& order = result_.order_;
    order.reserve(n);
    result_.level_.assign(n, 0);
    const auto reach = [&](NodeId from, NodeId to) {
      result_.level_[to] = std::max(result_.level_[to], result_.level_[from] + 1);
      if (--waiting[to] == 0) order.push_back(to);
    };
    for (NodeId id(0); id < n; ++id) {
      waiting[id] = result_.last_values_.contains(id) ? 1 : 0;
      for (Tensor input : graph_.inputs(id)) {
        if (poll_.Tick()) return false;
        waiting[id] += !IsBackEdge(graph_, input.node, id);
      }
      if (waiting[id] == 0) order.push_back(id);
    }
    for (size_t done = 0; done < order.size(); ++done) {
      const NodeId id = order[done];
      const Graph::Readers readers = graph_.readers(id);
      for (uint32_t i = 0; i < readers.size(); ++i) {
        if (poll_.Tick()) return false;
        if (IsBackEdge(graph_, id, readers[i].node)) continue;
        reach(id, readers[i].node);
      }
      const auto found = exits.find(id);
      if (found == exits.end()) continue;
      for (NodeId exit : found->second) {
        if (poll_.Tick()) return false;
        reach(id, exit);
      }
    }
    if (static_cast<int32_t>(order.size()) == n) return true;
    // A loop body depends on nodes after its own loop: TensorFlow would hang.
    order.clear();
    result_.level_.clear();
    result_.last_values_.clear();
    return true;
  }

  // The NextIteration of the variable that an Exit outputs: Exit <- Switch <- Merge <-
  // NextIteration.
  NodeId NextOf(NodeId exit) const {
    const absl::Span<const Tensor> inputs = graph_.inputs(exit);
    if (inputs.empty() || inputs[0].is_control()) return kNoNode;
    const Tensor merge = Variable(inputs[0]);
    return merge.node == kNoNode ? kNoNode : BackEdgeOf(merge.node);
  }

  // The NextIteration that a Merge reads; kNoNode if it does not start a loop.
  NodeId BackEdgeOf(NodeId merge) const {
    const absl::Span<const Tensor> inputs = graph_.inputs(merge);
    if (inputs.size() > kMaxMergeInputs) return kNoNode;
    for (Tensor input : inputs) {
      if (IsBackEdge(graph_, input.node, merge)) return input.node;
    }
    return kNoNode;
  }

  // For a node that only names a tensor: the input that it forwards.
  static bool IsName(absl::string_view op) {
    return op == "Identity" || op == "Switch" || op == "StopGradient" || op == "Snapshot";
  }

  // The Merge of a loop variable, looking through Identities; kNoNode if none.
  Tensor Variable(Tensor tensor) const {
    for (int hop = 0; hop < kMaxHops && !poll_.Tick(); ++hop) {
      if (tensor.port == 0 && kind(tensor.node) == ControlFlow::kMerge) {
        if (BackEdgeOf(tensor.node) != kNoNode) return tensor;
        break;
      }
      const absl::Span<const Tensor> inputs = graph_.inputs(tensor.node);
      if (!IsName(graph_.op(tensor.node)) || inputs.empty() || inputs[0].is_control()) break;
      tensor = inputs[0];
    }
    return {kNoNode, 0};
  }

  // The initial value of a loop variable that its loop passes through unchanged, as functional
  // loops do with everything they read; kNoNode if none. Found once: many loops may read it.
  Tensor Unchanged(Tensor tensor) const {
    const Tensor none{kNoNode, 0};
    if (tensor.port != 0 || kind(tensor.node) != ControlFlow::kMerge) return none;
    const auto [known, is_new] = unchanged_.try_emplace(tensor.node, none);
    if (is_new) known->second = FindUnchanged(tensor.node);
    return known->second;
  }

  Tensor FindUnchanged(NodeId merge) const {
    const Tensor none{kNoNode, 0};
    const NodeId back = BackEdgeOf(merge);
    if (back == kNoNode) return none;
    const Tensor next = graph_.inputs(back).empty() ? none : graph_.inputs(back)[0];
    if (next.node == kNoNode || next.is_control()) return none;
    if (Variable(next).node != merge) return none;
    for (Tensor input : graph_.inputs(merge)) {
      if (!input.is_control() && input.node != back) return input;
    }
    return none;
  }

  // The value of a one-element constant.
  absl::optional<int64_t> ConstantScalar(NodeId id) const {
    if (graph_.op(id) != "Const") return absl::nullopt;
    const auto attr = graph_.attr(id, "value");
    if (!attr) return absl::nullopt;
    absl::string_view proto;
    WireReader value(*attr);
    while (value.Next() && !poll_.Tick()) {
      if (value.IsBytes(attr_value::kTensor)) proto = value.bytes();
    }
    absl::optional<int64_t> scalar;
    WireReader reader(proto);
    while (reader.Next() && !poll_.Tick()) {
      const bool is_list =
          reader.IsBytes(tensor_proto::kIntVal) || reader.IsBytes(tensor_proto::kInt64Val);
      if (reader.IsVarint(tensor_proto::kIntVal) || reader.IsVarint(tensor_proto::kInt64Val)) {
        scalar = static_cast<int64_t>(reader.number());
      } else if (is_list) {
        uint64_t item = 0;
        google::protobuf::io::CodedInputStream packed(
            reinterpret_cast<const uint8_t*>(reader.bytes().data()),
            static_cast<int>(reader.bytes().size()));
        if (packed.ReadVarint64(&item)) scalar = static_cast<int64_t>(item);
      } else if (reader.IsBytes(tensor_proto::kContent) &&
                 (reader.bytes().size() == 4 || reader.bytes().size() == 8)) {
        uint64_t item = 0;
        for (size_t b = reader.bytes().size(); b-- > 0;) {
          item = item << 8 | static_cast<uint8_t>(reader.bytes()[b]);
        }
        scalar =
            reader.bytes().size() == 4 ? static_cast<int32_t>(item) : static_cast<int64_t>(item);
      }
    }
    return scalar;
  }

  // The value of a loop-invariant scalar.
  absl::optional<int64_t> Value(Tensor tensor) const {
    for (int hop = 0; hop < kMaxHops && !poll_.Tick(); ++hop) {
      const auto value = shapes_.value(tensor);
      if (value && value->size() == 1 && value->front() != kUnknownElement) return value->front();
      const ShapeView shape = shapes_.shape(tensor);
      const DataType dtype = shapes_.type(tensor).dtype;
      if ((dtype == kDtInt32 || dtype == kDtInt64) && shape.known_rank && shape.dims.empty() &&
          !shapes_.IsFed(tensor.node)) {
        const auto [constant, is_new] = constants_.try_emplace(tensor.node);
        if (is_new) constant->second = ConstantScalar(tensor.node);
        if (constant->second) return constant->second;
      }
      const auto counted = counted_.find(tensor.node);
      if (counted != counted_.end()) return counted->second;
      const Tensor entered = Unchanged(tensor);
      if (entered.node != kNoNode) {
        tensor = entered;
        continue;
      }
      const absl::string_view op = graph_.op(tensor.node);
      const absl::Span<const Tensor> inputs = graph_.inputs(tensor.node);
      const size_t from = op == "IdentityN" ? tensor.port : 0;
      if (!IsName(op) && op != "Enter" && op != "IdentityN" && op != "Cast") break;
      if (tensor.port < 0 || from >= inputs.size() || inputs[from].is_control()) break;
      tensor = inputs[from];
    }
    return absl::nullopt;
  }

  struct Counter {
    int64_t start, step;
  };
  // The initial value of a loop variable, and its increment per iteration.
  absl::optional<Counter> CounterOf(NodeId merge) const {
    absl::optional<int64_t> start;
    Tensor next{kNoNode, 0};
    for (Tensor input : graph_.inputs(merge)) {
      if (input.is_control()) break;
      if (IsBackEdge(graph_, input.node, merge)) {
        if (graph_.inputs(input.node).empty()) return absl::nullopt;
        next = graph_.inputs(input.node)[0];
      } else {
        start = Value(input);
      }
    }
    if (!start || next.node == kNoNode || next.is_control()) return absl::nullopt;
    for (int hop = 0; hop < kMaxHops && IsName(graph_.op(next.node)) && !poll_.Tick(); ++hop) {
      const absl::Span<const Tensor> inputs = graph_.inputs(next.node);
      if (inputs.empty() || inputs[0].is_control()) return absl::nullopt;
      next = inputs[0];
    }
    const absl::string_view op = graph_.op(next.node);
    const bool adds = op == "Add" || op == "AddV2";
    const absl::Span<const Tensor> inputs = graph_.inputs(next.node);
    if ((!adds && op != "Sub") || inputs.size() < 2 || inputs[1].is_control()) return absl::nullopt;
    for (int variable = 0; variable < (adds ? 2 : 1); ++variable) {
      if (Variable(inputs[variable]).node != merge) continue;
      const absl::optional<int64_t> step = Value(inputs[1 - variable]);
      if (!step || *step <= -kMaxRuns || *step >= kMaxRuns) return absl::nullopt;
      return Counter{*start, adds ? *step : -*step};
    }
    return absl::nullopt;
  }

  // The number of iterations for which a comparison holds that each iteration requires.
  absl::optional<int64_t> CountWhile(NodeId comparison) const {
    const absl::string_view op = graph_.op(comparison);
    const bool or_equal = op == "LessEqual" || op == "GreaterEqual";
    const bool less = op == "Less" || op == "LessEqual";
    if (!less && op != "Greater" && op != "GreaterEqual" && op != "NotEqual") return absl::nullopt;
    const absl::Span<const Tensor> inputs = graph_.inputs(comparison);
    if (inputs.size() < 2 || inputs[1].is_control()) return absl::nullopt;
    for (int side = 0; side < 2; ++side) {
      const NodeId merge = Variable(inputs[side]).node;
      const absl::optional<Counter> counter = merge == kNoNode ? absl::nullopt : CounterOf(merge);
      const absl::optional<int64_t> bound = counter ? Value(inputs[1 - side]) : absl::nullopt;
      if (!bound) continue;
      __int128 start = counter->start, step = counter->step, end = *bound;
      if (op == "NotEqual") {
        if (step == 0 || (end - start) % step != 0 || (end - start) / step < 0) continue;
        return static_cast<int64_t>(std::min<__int128>((end - start) / step, kMaxRuns));
      }
      // The counter is below the bound; or above, which is below with inverted signs.
      if (less == (side == 1)) {
        start = -start;
        step = -step;
        end = -end;
      }
      return CountBelow(start, step, or_equal ? end + 1 : end);
    }
    return absl::nullopt;
  }

  bool Count() {
    const std::vector<NodeId>& order = result_.order_.empty() ? topology_.order() : result_.order_;
    std::vector<std::vector<NodeId>> exits(result_.loops_.size());
    std::vector<bool> reported(result_.loops_.size(), false);
    for (NodeId id : order) {
      if (poll_.Tick()) return false;
      if (kind(id) != ControlFlow::kExit) continue;
      const int32_t number = Number(control_flow_.input_frame(id));
      if (number >= 0) exits[number].push_back(id);
    }
    for (NodeId id : order) {
      if (poll_.Tick()) return false;
      if (kind(id) != ControlFlow::kLoopCond) continue;
      const int32_t number = Number(control_flow_.input_frame(id));
      if (number < 0) continue;
      Loops::Loop& loop = result_.loops_[number];
      if (loop.count == kUnknownCount) loop.count = CountOf(id).value_or(kUnknownCount);
      if (loop.count == kUnknownCount || reported[number]) continue;
      reported[number] = true;
      for (NodeId exit : exits[number]) {  // The final values of counters, for other loops.
        if (poll_.Tick()) return false;
        const absl::Span<const Tensor> inputs = graph_.inputs(exit);
        if (inputs.empty() || inputs[0].is_control()) continue;
        const NodeId merge = Variable(inputs[0]).node;
        const absl::optional<Counter> counter = merge == kNoNode ? absl::nullopt : CounterOf(merge);
        int64_t end;
        if (counter && !__builtin_mul_overflow(counter->step, loop.count, &end) &&
            !__builtin_add_overflow(counter->start, end, &end)) {
          counted_[exit] = end;
        }
      }
    }
    return !poll_.stopped();
  }

  absl::optional<int64_t> CountOf(NodeId condition) const {
    std::vector<NodeId> all = {condition};
    absl::optional<int64_t> least;
    for (size_t done = 0; done < all.size(); ++done) {
      const absl::string_view op = graph_.op(all[done]);
      const absl::Span<const Tensor> inputs = graph_.inputs(all[done]);
      if (op == "LoopCond" || op == "LogicalAnd" || op == "Identity") {
        for (Tensor input : inputs) {
          if (input.is_control() || all.size() == kMaxConjuncts) break;
          all.push_back(input.node);
        }
        continue;
      }
      const absl::optional<int64_t> count = CountWhile(all[done]);
      if (count && (!least || *count < *least)) least = count;
    }
    return least;
  }

  absl::Status Give(const v1::Step& step) {
    absl::flat_hash_map<absl::string_view, std::vector<int32_t>> by_name;
    for (size_t i = 0; i < result_.loops_.size() && step.loop_counts_size() > 0; ++i) {
      if (poll_.Tick()) return stop_.status(kLoopsStage);
      by_name[result_.loops_[i].name].push_back(static_cast<int32_t>(i));
    }
    absl::flat_hash_map<absl::string_view, int64_t> given;
    for (const v1::LoopCount& count : step.loop_counts()) {
      if (poll_.Tick()) return stop_.status(kLoopsStage);
      if (count.count() < 1) {
        return BadCount(count, v1::ERROR_REASON_BAD_OPTION,
                        absl::StrCat("is ", count.count(), "; give 1 or more iterations"));
      }
      if (!given.try_emplace(count.name(), count.count()).second) {
        return BadCount(count, v1::ERROR_REASON_BAD_OPTION, "is given twice; give it once");
      }
      const auto found = by_name.find(count.name());
      if (found != by_name.end()) {
        for (int32_t i : found->second) {
          if (poll_.Tick()) return stop_.status(kLoopsStage);
          result_.loops_[i].count = std::min(count.count(), kMaxRuns);
        }
        continue;
      }
      return BadCount(
          count, v1::ERROR_REASON_NAME_MATCHES_NOTHING,
          result_.loops_.empty()
              ? "is given, but the graph has no loops (Enter nodes); give none"
              : absl::StrCat("names no loop of the graph; loops are named by the attribute "
                             "frame_name of their Enter nodes, one of them ",
                             Quoted(ShownName(result_.loops_.front().name))));
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  const Topology& topology_;
  const Shapes& shapes_;
  const ControlFlowAnalysis& control_flow_;
  const StopToken& stop_;
  mutable StopPoller poll_;  // Results computed after it has stopped do not matter.
  mutable absl::flat_hash_map<NodeId, Tensor> unchanged_;                   // By Merge.
  mutable absl::flat_hash_map<NodeId, absl::optional<int64_t>> constants_;  // ConstantScalar.
  Loops result_;
  absl::flat_hash_map<FrameId, int32_t> numbers_;  // In result_.loops_.
  absl::flat_hash_map<NodeId, int64_t> counted_;   // By Exit: the value.
};

absl::StatusOr<Loops> Loops::Find(const Graph& graph, const Topology& topology,
                                  const Shapes& shapes, const ControlFlowAnalysis& control_flow,
                                  const v1::Step& step, const StopToken& stop) {
  return LoopFinder(graph, topology, shapes, control_flow, stop).Find(step);
}

}  // namespace spillway::core
