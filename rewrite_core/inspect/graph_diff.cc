#include "rewrite_core/inspect/graph_diff.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/shapes/shapes.h"
#include "rewrite_core/apply/clone_match.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/shown_name.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/attr_entry.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/no_limits.h"
#include "rewrite_core/graph/strip.h"
#include "rewrite_core/graph/topology.h"
#include "rewrite_core/graph/undo.h"
#include "rewrite_core/inline/function_table.h"
#include "rewrite_core/inline/inline_calls.h"

namespace spillway::core {
namespace {

constexpr char kDiffStage[] = "diff";

using Attributes = std::map<absl::string_view, absl::string_view>;

// At most kMaxAttributes.
Attributes AttributesOf(const Graph& graph, NodeId id) {
  Attributes attributes;
  WireReader reader(graph.node_bytes(id));
  while (reader.Next()) {
    if (!reader.IsBytes(node_def::kAttr)) continue;
    const AttrEntry entry = ReadAttrEntry(reader.bytes());
    attributes[entry.key] = entry.value;  // The last one counts, as in protobuf.
  }
  return attributes;
}

bool IsBookkeeping(absl::string_view key) { return key == kUndoAttr || key == kGrapplerKeepAttr; }

constexpr char kCopyOut[] = "_CopyFromGpuToHost";
constexpr char kCopyIn[] = "_CopyFromHostToGpu";

bool MayCopy(absl::string_view op, absl::string_view copy_op) {
  return op == "Identity" || op == copy_op;
}

std::string ShownTensor(const Graph& graph, Tensor tensor) {
  return absl::StrCat(ShownName(graph.name(tensor.node)), ":", tensor.port);
}

// Collects the differences of one pair.
class Differ {
 public:
  Differ(const Graph& a, const Graph& b, const StopToken& stop)
      : a_(a), b_(b), stop_(stop), poll_(stop) {}

  absl::StatusOr<v1::GraphDiff> Run() {
    diff_.set_identical(a_.bytes() == b_.bytes());
    diff_.set_node_count_a(a_.num_nodes());
    diff_.set_node_count_b(b_.num_nodes());
    diff_.set_graph_bytes_a(static_cast<int64_t>(a_.bytes().size()));
    diff_.set_graph_bytes_b(static_cast<int64_t>(b_.bytes().size()));
    if (!diff_.identical()) {
      for (auto step : {&Differ::MatchNodes, &Differ::FindMeanings, &Differ::FindSwaps,
                        &Differ::ListNodes, &Differ::CompareNodes, &Differ::CompareOtherFields}) {
        if (absl::Status status = (this->*step)(); !status.ok()) return status;
      }
    }
    diff_.set_same_graph(diff_.added().empty() && diff_.removed().empty() &&
                         diff_.changed().empty() && diff_.rewired().empty() &&
                         diff_.controls_added().empty() && diff_.controls_removed().empty() &&
                         diff_.bookkeeping_count() == 0 && !diff_.library_changed() &&
                         !diff_.versions_changed() && !diff_.other_fields_changed());
    return std::move(diff_);
  }

 private:
  absl::Status Stopped() const { return stop_.status(kDiffStage); }

  absl::Status MatchNodes() {
    in_a_.resize(b_.num_nodes());
    in_b_.assign(a_.num_nodes(), kNoNode);
    NodeId last = kNoNode;
    for (NodeId id(0); id < b_.num_nodes(); ++id) {
      if (poll_.Tick()) return Stopped();
      in_a_[id] = a_.Find(b_.name(id));
      if (in_a_[id] == kNoNode) continue;
      in_b_[in_a_[id]] = id;
      if (in_a_[id] < last) diff_.set_reordered(true);
      last = in_a_[id];
    }
    return absl::OkStatus();
  }

  // The meaning in A of added nodes' outputs: copies of a tensor, or outputs of a clone of one of
  // A's nodes. Each is examined once its inputs are known.
  absl::Status FindMeanings() {
    copy_of_.assign(b_.num_nodes(), Tensor{});
    is_swap_out_.assign(b_.num_nodes(), false);
    runs_again_.assign(b_.num_nodes(), kNoNode);
    absl::flat_hash_set<absl::string_view> ops;
    std::vector<int> waiting(b_.num_nodes(), 0);
    std::vector<NodeId> ready;
    for (NodeId id(0); id < b_.num_nodes(); ++id) {
      if (in_a_[id] != kNoNode) continue;
      ops.insert(b_.op(id));
      for (int i = 0; i < CountDataInputs(b_, id); ++i) {
        if (poll_.Tick()) return Stopped();
        waiting[id] += in_a_[b_.inputs(id)[i].node] == kNoNode;
      }
      if (waiting[id] == 0) ready.push_back(id);
    }
    if (ops.empty()) return absl::OkStatus();
    match_ = CloneMatch::Create(a_, ops, /*fed=*/{}, stop_);
    if (absl::Status s = Stopped(); !s.ok()) return s;
    while (!ready.empty()) {
      const NodeId id = ready.back();
      ready.pop_back();
      FindMeaning(id);
      const Graph::Readers readers = b_.readers(id);
      for (uint32_t i = 0; i < readers.size(); ++i) {
        if (poll_.Tick()) break;
        const NodeId reader = readers[i].node;
        if (readers[i].port == kControl || in_a_[reader] != kNoNode) continue;
        if (--waiting[reader] == 0) ready.push_back(reader);
      }
      if (absl::Status s = Stopped(); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  void FindMeaning(NodeId id) {
    std::vector<Tensor> inputs;
    for (int i = 0; i < CountDataInputs(b_, id); ++i) {
      if (poll_.Tick()) return;
      inputs.push_back(Meaning(b_.inputs(id)[i]));
      if (inputs.back().node == kNoNode) return;
    }
    if (inputs.empty()) return;
    const Tensor read = b_.inputs(id)[0];
    const bool may_copy =
        inputs.size() == 1 && (MayCopy(b_.op(id), kCopyOut) || b_.op(id) == kCopyIn);
    // A swap-out is not a clone of an Identity, nor is its swap-in.
    is_swap_out_[id] = may_copy && b_.device(id) != b_.device(read.node) && HasCopy(id);
    const bool copies = may_copy && (is_swap_out_[id] || is_swap_out_[read.node]);
    if (!copies && match_.ok())
      runs_again_[id] = Original(id, match_->Find(b_.node_bytes(id), inputs));
    if (runs_again_[id] == kNoNode && may_copy) copy_of_[id] = inputs[0];
  }

  // Whether an added node may copy its output.
  bool HasCopy(NodeId id) {
    const Graph::Readers readers = b_.readers(id);
    for (uint32_t i = 0; i < readers.size() && !poll_.Tick(); ++i) {
      if (readers[i].port == 0 && Copied(readers[i].node, kCopyIn).node != kNoNode) return true;
    }
    return false;
  }

  // Of nodes of A with the same values, the one in a name of Spillway's, if it is among the first;
  // otherwise the first.
  NodeId Original(NodeId id, absl::Span<const NodeId> same) const {
    if (same.empty()) return kNoNode;
    for (NodeId original : same.subspan(0, kMaxSame)) {
      const std::string name =
          absl::StrCat(kCloneMark, absl::StrReplaceAll(a_.name(original), {{"/", "_"}}));
      if (absl::StartsWith(b_.name(id), name)) return original;
    }
    return same[0];
  }

  // The tensor of A with the value of one of B; without a node if none is known.
  Tensor Meaning(Tensor tensor) const {
    const NodeId original = OriginalOf(tensor.node);
    if (original != kNoNode) return {original, tensor.port};
    return tensor.port == 0 ? copy_of_[tensor.node] : Tensor{};
  }

  // The node of A that it is, or recomputes.
  NodeId OriginalOf(NodeId id) const { return in_a_[id] != kNoNode ? in_a_[id] : runs_again_[id]; }

  // Maps an output of A to B's ids, for comparison. A node that B does not have becomes kNoNode,
  // which no input of B is.
  Tensor FromA(Tensor tensor) const { return {in_b_[tensor.node], tensor.port}; }

  // The data input of an added node that only forwards it; otherwise kNoNode.
  Tensor Copied(NodeId id, absl::string_view copy_op) const {
    if (OriginalOf(id) != kNoNode || CountDataInputs(b_, id) != 1 || !MayCopy(b_.op(id), copy_op)) {
      return {};
    }
    return b_.inputs(id)[0];
  }

  absl::Status FindSwaps() {
    swap_of_.assign(b_.num_nodes(), kNoSwap);
    for (NodeId id(0); id < b_.num_nodes(); ++id) {
      if (poll_.Tick()) return Stopped();
      const Tensor tensor = Copied(id, kCopyOut);
      if (tensor.node == kNoNode || OriginalOf(tensor.node) == kNoNode) continue;
      v1::FoundSwap swap;
      std::vector<NodeId> nodes = {id};
      const Graph::Readers readers = b_.readers(id);
      for (uint32_t i = 0; i < readers.size(); ++i) {
        if (poll_.Tick()) return Stopped();
        if (readers[i].port == kControl) continue;
        const NodeId swap_in = readers[i].node;
        if (Copied(swap_in, kCopyIn).node == kNoNode) continue;
        if (!DescribeSwapIn(swap_in, tensor, swap.add_swap_ins())) {
          swap.mutable_swap_ins()->RemoveLast();
        } else {
          nodes.push_back(swap_in);
        }
      }
      if (swap.swap_ins().empty()) continue;
      swap.set_tensor(ShownTensor(b_, tensor));
      swap.set_swap_out(ShownName(b_.name(id)));
      swap.set_device(ShownName(b_.device(id)));
      for (NodeId node : nodes) swap_of_[node] = diff_.swaps_size();
      swapped_.push_back(tensor);
      *diff_.add_swaps() = std::move(swap);
    }
    return SetSizes();
  }

  // False unless some node of both, or a clone, reads the swap-in, and each such node reads
  // `tensor` in A.
  bool DescribeSwapIn(NodeId id, Tensor tensor, v1::FoundSwapIn* swap_in) const {
    const Graph::Readers readers = b_.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      const Graph::Reader reader = readers[i];
      if (reader.port == kControl) continue;
      const NodeId before = OriginalOf(reader.node);
      if (before == kNoNode) return false;
      const absl::Span<const Tensor> inputs = a_.inputs(before);
      if (reader.index >= static_cast<int>(inputs.size()) || inputs[reader.index].is_control() ||
          !(inputs[reader.index] == Meaning(tensor))) {
        return false;
      }
      v1::InputRef* consumer = swap_in->add_consumers();
      consumer->set_node(ShownName(b_.name(reader.node)));
      consumer->set_input_index(reader.index);
    }
    if (swap_in->consumers().empty()) return false;
    swap_in->set_name(ShownName(b_.name(id)));
    for (Tensor input : b_.inputs(id)) {
      if (input.is_control()) swap_in->add_triggers(ShownName(b_.name(input.node)));
    }
    return true;
  }

  // Sets sizes from B, or from A if B lost the shape.
  absl::Status SetSizes() {
    if (swapped_.empty()) return absl::OkStatus();
    const auto shapes_a = InferShapes(a_);
    if (!shapes_a.ok()) return shapes_a.status();
    const auto shapes_b = InferShapes(b_);
    if (!shapes_b.ok()) return shapes_b.status();
    for (int i = 0; i < diff_.swaps_size(); ++i) {
      if (poll_.Tick()) return Stopped();
      const Tensor tensor = swapped_[i];
      int64_t size_bytes = *shapes_b ? (*shapes_b)->size_bytes(tensor) : kUnknownSize;
      if (size_bytes == kUnknownSize && *shapes_a) {
        size_bytes = (*shapes_a)->size_bytes(Meaning(tensor));
      }
      if (size_bytes != kUnknownSize) diff_.mutable_swaps(i)->set_size_bytes(size_bytes);
    }
    return absl::OkStatus();
  }

  // Returns nullopt for a graph that TensorFlow would reject: the differences can still be listed.
  absl::StatusOr<absl::optional<Shapes>> InferShapes(const Graph& graph) const {
    auto topology = Topology::Build(graph, stop_);
    absl::Status status = topology.status();
    if (status.ok()) {
      auto shapes = Shapes::Infer(graph, *topology, v1::Step(), stop_);
      if (shapes.ok()) return *std::move(shapes);
      status = shapes.status();
    }
    if (absl::IsInvalidArgument(status)) return absl::optional<Shapes>();
    return status;
  }

  absl::Status ListNodes() {
    const auto describe = [](const Graph& graph, NodeId id, v1::DiffNode* node) {
      node->set_name(ShownName(graph.name(id)));
      node->set_op(ShownName(graph.op(id)));
      node->set_device(ShownName(graph.device(id)));
    };
    for (NodeId id(0); id < b_.num_nodes(); ++id) {
      if (poll_.Tick()) return Stopped();
      if (in_a_[id] != kNoNode) continue;
      v1::DiffNode* node = diff_.add_added();
      describe(b_, id, node);
      node->set_in_swap(swap_of_[id] != kNoSwap);
      if (runs_again_[id] != kNoNode) node->set_runs_again(ShownName(a_.name(runs_again_[id])));
    }
    for (NodeId id(0); id < a_.num_nodes(); ++id) {
      if (poll_.Tick()) return Stopped();
      if (in_b_[id] == kNoNode) describe(a_, id, diff_.add_removed());
    }
    return absl::OkStatus();
  }

  absl::Status CompareNodes() {
    for (NodeId id(0); id < b_.num_nodes(); ++id) {
      if (poll_.Tick()) return Stopped();
      const NodeId before = in_a_[id];
      if (before == kNoNode || a_.node_bytes(before) == b_.node_bytes(id)) continue;
      bool differs = CompareItself(before, id);
      differs |= CompareDataInputs(before, id);
      differs |= CompareControlInputs(before, id);
      if (absl::Status s = Stopped(); !s.ok()) return s;
      if (!differs) diff_.set_reencoded_count(diff_.reencoded_count() + 1);
    }
    return absl::OkStatus();
  }

  // Each of the three returns whether there was a difference. They poll, because a node may have
  // very many inputs.
  bool CompareItself(NodeId a, NodeId b) {
    v1::NodeChange change;
    if (a_.op(a) != b_.op(b)) {
      change.set_op_a(ShownName(a_.op(a)));
      change.set_op_b(ShownName(b_.op(b)));
    }
    if (a_.device(a) != b_.device(b)) {
      change.set_device_a(ShownName(a_.device(a)));
      change.set_device_b(ShownName(b_.device(b)));
    }
    bool bookkeeping = false;
    const Attributes before = AttributesOf(a_, a);
    const Attributes after = AttributesOf(b_, b);
    for (const auto& [key, value] : before) {
      const auto it = after.find(key);
      if (it != after.end() && it->second == value) continue;
      if (IsBookkeeping(key)) {
        bookkeeping = true;
      } else if (it == after.end()) {
        change.add_attributes_removed(ShownBytes(key));
      } else {
        change.add_attributes_changed(ShownBytes(key));
      }
    }
    for (const auto& [key, value] : after) {
      if (before.count(key) > 0) continue;
      if (IsBookkeeping(key)) {
        bookkeeping = true;
      } else {
        change.add_attributes_added(ShownBytes(key));
      }
    }
    if (bookkeeping) diff_.set_bookkeeping_count(diff_.bookkeeping_count() + 1);
    const bool changed = change.ByteSizeLong() > 0;
    if (changed) {
      change.set_name(ShownName(b_.name(b)));
      *diff_.add_changed() = std::move(change);
    }
    return bookkeeping || changed;
  }

  bool CompareDataInputs(NodeId a, NodeId b) {
    const absl::Span<const Tensor> before = a_.inputs(a);
    const absl::Span<const Tensor> after = b_.inputs(b);
    const int count_a = CountDataInputs(a_, a);
    const int count_b = CountDataInputs(b_, b);
    bool differs = false;
    for (int i = 0; i < std::max(count_a, count_b) && !poll_.Tick(); ++i) {
      if (i < count_a && i < count_b && FromA(before[i]) == after[i]) continue;
      differs = true;
      v1::InputChange* change = diff_.add_rewired();
      change->set_node(ShownName(b_.name(b)));
      change->set_input_index(i);
      if (i < count_a) change->set_tensor_a(ShownTensor(a_, before[i]));
      if (i < count_b) change->set_tensor_b(ShownTensor(b_, after[i]));
      // The readers of a swap-in were checked when the swap was found.
      change->set_in_swap(i < count_b && swap_of_[after[i].node] != kNoSwap &&
                          swap_of_[b_.inputs(after[i].node)[0].node] != kNoSwap);
      change->set_made_again(i < count_a && i < count_b && IsMadeAgain(before[i], after[i]));
    }
    return differs;
  }

  bool IsMadeAgain(Tensor a, Tensor b) const {
    const NodeId original = runs_again_[b.node];
    return original != kNoNode && a.port == b.port &&
           match_->FirstLike(a.node) == match_->FirstLike(original);
  }

  bool CompareControlInputs(NodeId a, NodeId b) {
    // Each name once: TensorFlow ignores repetitions.
    const auto controls = [this](const Graph& graph, NodeId id) {
      std::map<absl::string_view, NodeId> names;
      for (Tensor input : graph.inputs(id)) {
        if (poll_.Tick()) break;
        if (input.is_control()) names.emplace(graph.name(input.node), input.node);
      }
      return names;
    };
    const auto before = controls(a_, a);
    const auto after = controls(b_, b);
    bool differs = false;
    for (const auto& [name, node] : after) {
      if (poll_.Tick()) break;
      if (before.count(name) > 0) continue;
      differs = true;
      AddControl(b, name, node, diff_.add_controls_added());
    }
    for (const auto& [name, node] : before) {
      if (poll_.Tick()) break;
      if (after.count(name) > 0) continue;
      differs = true;
      AddControl(b, name, in_b_[node], diff_.add_controls_removed());
    }
    return differs;
  }

  void AddControl(NodeId node, absl::string_view control, NodeId control_in_b,
                  v1::ControlChange* change) const {
    change->set_node(ShownName(b_.name(node)));
    change->set_control(ShownName(control));
    const int32_t swap = control_in_b == kNoNode ? kNoSwap : swap_of_[control_in_b];
    change->set_in_swap(swap_of_[node] != kNoSwap || swap != kNoSwap);
    if (swap == kNoSwap) return;
    // A swap-in reads its swap-out.
    const bool is_swap_in = swap_of_[b_.inputs(control_in_b)[0].node] == swap;
    change->set_kind(is_swap_in ? v1::EDGE_KIND_PACE : v1::EDGE_KIND_DEADLINE);
  }

  absl::Status CompareOtherFields() {
    std::vector<absl::string_view> fields[2][3];  // For A and B: library, versions, others.
    const Graph* graphs[] = {&a_, &b_};
    for (int g = 0; g < 2; ++g) {
      WireReader reader(graphs[g]->bytes());
      while (reader.Next()) {
        if (poll_.Tick()) return Stopped();
        if (reader.field() == graph_def::kNode) continue;
        const int kind = reader.field() == graph_def::kLibrary    ? 0
                         : reader.field() == graph_def::kVersions ? 1
                                                                  : 2;
        fields[g][kind].push_back(reader.whole());
      }
    }
    diff_.set_library_changed(fields[0][0] != fields[1][0]);
    diff_.set_versions_changed(fields[0][1] != fields[1][1]);
    diff_.set_other_fields_changed(fields[0][2] != fields[1][2]);
    return absl::OkStatus();
  }

  static constexpr int32_t kNoSwap = -1;
  static constexpr size_t kMaxSame = 64;  // Names that are examined for one node.

  const Graph& a_;
  const Graph& b_;
  const StopToken& stop_;
  StopPoller poll_;
  v1::GraphDiff diff_;
  std::vector<NodeId> in_a_;  // By node of B: the node of that name in A, or kNoNode.
  std::vector<NodeId> in_b_;  // By node of A, likewise.
  // By added node of B, in ids of A: its copied tensor, and the node that it recomputes.
  std::vector<Tensor> copy_of_;
  std::vector<bool> is_swap_out_;
  std::vector<NodeId> runs_again_;
  absl::StatusOr<CloneMatch> match_ = absl::UnknownError("");  // A graph with a cycle has none.
  std::vector<int32_t> swap_of_;  // By node of B: its swap among diff_.swaps(), or kNoSwap.
  std::vector<Tensor> swapped_;   // By swap.
};

// One of the two graphs; errors about it say which.
absl::StatusOr<Graph> ParseNamed(absl::string_view name, absl::string_view bytes,
                                 const v1::Limits& limits, const StopToken& stop) {
  auto graph = Graph::Parse(bytes, limits, stop);
  if (graph.ok() || GetErrorReason(graph.status()) == v1::ERROR_REASON_STOPPED) return graph;
  absl::Status named(graph.status().code(),
                     absl::StrCat("graph ", name, ": ", graph.status().message()));
  graph.status().ForEachPayload(
      [&named](absl::string_view url, const absl::Cord& info) { named.SetPayload(url, info); });
  return WithDetail(named, "graph", name);
}

// A with the calls inlined that B's undo records name: the graph from a rewrite before swaps were
// inserted.
class InlinedAsInB {
 public:
  InlinedAsInB(const Graph& a, const Graph& b, const StopToken& stop)
      : a_(a), b_(b), stop_(stop), poll_(stop) {}

  // False if there are no such calls, or the records do not match A. The only error is that of the
  // stop token.
  absl::StatusOr<bool> Run() {
    if (!FindCalls()) return stop_.status(kDiffStage);
    if (calls_.empty()) return false;
    auto inlined = InlineCalls(a_, step_, NoLimits(), stop_);
    if (!inlined.ok()) return inlined.status();
    if (inlined->graph_def.empty()) return false;
    bytes_ = std::move(inlined->graph_def);  // Large, so not copied.
    auto graph = Graph::Parse(bytes_, NoLimits(), stop_);
    if (absl::Status s = stop_.status(kDiffStage); !s.ok()) return s;
    if (!graph.ok()) return false;
    graph_ = *std::move(graph);
    return true;
  }

  const Graph& graph() const { return *graph_; }

  void Tell(v1::GraphDiff* diff) const {
    for (NodeId call : calls_) {
      // New nodes follow the old ones.
      if (IsInlinedCall(*graph_, call)) diff->add_inlined_calls(ShownName(a_.name(call)));
    }
    diff->set_inlined_node_count(graph_->num_nodes() - a_.num_nodes());
    diff->set_node_count_a(a_.num_nodes());
    diff->set_graph_bytes_a(static_cast<int64_t>(a_.bytes().size()));
    diff->set_identical(false);
    diff->set_same_graph(false);
  }

 private:
  // False if the call must end.
  bool FindCalls() {
    std::vector<bool> inlined(a_.num_nodes(), false);
    std::string last;  // One call's nodes are consecutive.
    for (NodeId id(0); id < b_.num_nodes(); ++id) {
      if (poll_.Tick()) return false;
      if (!b_.has_undo(id)) continue;
      const auto record = ParseUndoAttr(b_.name(id), b_.attr(id, kUndoAttr).value_or(""));
      if (!record.ok() || !record->call.has_value() || *record->call == last) continue;
      last = *record->call;
      const NodeId call = a_.Find(last);
      if (call != kNoNode) inlined[call] = true;
    }
    for (NodeId id(0); id < a_.num_nodes(); ++id) {
      if (poll_.Tick()) return false;
      if (a_.op_info(id).known && KindOfOp(a_.op(id)) == CallKind::kNone) continue;
      if (inlined[id]) {
        calls_.push_back(id);
      } else {  // Fed calls are kept.
        step_.add_feeds()->set_name(std::string(a_.name(id)));
      }
    }
    return true;
  }

  const Graph& a_;
  const Graph& b_;
  const StopToken& stop_;
  StopPoller poll_;
  std::vector<NodeId> calls_;  // Calls in a_, by id.
  v1::Step step_;
  std::string bytes_;  // graph_ points into them.
  absl::optional<Graph> graph_;
};

}  // namespace

absl::StatusOr<v1::GraphDiff> DiffGraphs(const Graph& a, const Graph& b, const StopToken& stop) {
  InlinedAsInB inlined(a, b, stop);
  const auto found = inlined.Run();
  if (!found.ok()) return found.status();
  if (!*found) return Differ(a, b, stop).Run();
  auto diff = Differ(inlined.graph(), b, stop).Run();
  if (diff.ok()) inlined.Tell(&*diff);
  return diff;
}

absl::StatusOr<v1::GraphDiff> DiffGraphs(absl::string_view a, absl::string_view b,
                                         const v1::Limits& limits, const StopToken& stop) {
  const auto graph_a = ParseNamed("A", a, limits, stop);
  if (!graph_a.ok()) return graph_a.status();
  const auto graph_b = ParseNamed("B", b, limits, stop);
  if (!graph_b.ok()) return graph_b.status();
  return DiffGraphs(*graph_a, *graph_b, stop);
}

}  // namespace spillway::core
