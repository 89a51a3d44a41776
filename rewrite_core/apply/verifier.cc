#include "rewrite_core/apply/verifier.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/attr_entry.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/no_limits.h"
#include "rewrite_core/graph/op_outputs.h"
#include "rewrite_core/graph/strip.h"
#include "rewrite_core/graph/topology.h"

namespace spillway::core {
namespace {

absl::Status Fail(absl::string_view check, absl::string_view node, absl::string_view what) {
  return Error(absl::StatusCode::kInternal, v1::ERROR_REASON_VERIFY_FAILED,
               absl::StrCat("the verifier refused the rewritten graph (check ", check, ") at node ",
                            Quoted(node), ": ", what,
                            "; this is a bug of Spillway, please report "
                            "it with the graph"),
               {{"check", check}, {"node", node}});
}

// Keeps errors from a stop, and turns all others into internal errors.
absl::Status Blame(absl::string_view check, const absl::Status& status) {
  if (GetErrorReason(status) == v1::ERROR_REASON_STOPPED) return status;
  const v1::ErrorInfo info = GetErrorInfo(status);
  const auto node = info.metadata().find("node");
  return Fail(check, node == info.metadata().end() ? "?" : node->second, status.message());
}

// The fields of a NodeDef that no edit may touch: all except the inputs and the undo record.
std::string BodyOf(absl::string_view node_def) {
  std::string body;
  WireReader reader(node_def);
  while (reader.Next()) {
    if (reader.IsBytes(node_def::kInput)) continue;
    if (IsUndoField(reader)) continue;
    body.append(reader.whole().data(), reader.whole().size());
  }
  return body;
}

// Between a tensor and its late reader: a swap-out and a swap-in.
constexpr int kMaxSwapNodes = 2;

class Verifier {
 public:
  // `edited` relates `after` to `before`.
  Verifier(const Graph& before, const Graph& after, Graph::Edited edited,
           const ControlFlowAnalysis& control_flow, const StopToken& stop)
      : before_(before),
        after_(after),
        original_(std::move(edited.origins)),
        changed_(std::move(edited.changed)),
        control_flow_(control_flow),
        stop_(stop) {}

  absl::Status Undo() const {
    std::string stripped;
    absl::string_view expected = before_.bytes();
    if (HasUndoRecords(before_)) {
      auto bytes = Strip(before_, stop_);
      if (!bytes.ok()) return bytes.status();  // Bad records in the input: not an internal error.
      stripped = *std::move(bytes);
      expected = stripped;
    }
    bool same = true;
    absl::Status status = StripTo(after_, stop_, [&](absl::string_view piece) {
      same = expected.substr(0, piece.size()) == piece;
      if (same) expected.remove_prefix(piece.size());
      return same;
    });
    if (!status.ok()) return Blame("undo", status);
    if (!same || !expected.empty()) {
      return Fail("undo", "?", "undoing the edits does not give the original bytes");
    }
    return absl::OkStatus();
  }

  absl::Status Edges() {
    // New nodes first: the checks of the others follow their inputs.
    StopPoller poll(stop_);
    for (const bool is_new : {true, false}) {
      for (NodeId id : changed_) {
        if (poll.Tick()) return stop_.status("verify");
        if ((original_[id] == kNoNode) != is_new) continue;
        absl::Status status = is_new ? NewNode(id) : OriginalNode(id);
        if (!status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  // Exits come after the whole loop: nothing that the loop waits for may wait for them. (With
  // several loop variables, edges alone need not imply this.) Does not apply if the original graph
  // already violates it.
  absl::Status Loops() const {
    if (!before_.has_control_flow()) return absl::OkStatus();
    const auto same = [](NodeId id) { return id; };
    const auto was = [this](NodeId id) { return original_[id]; };
    auto waits = LoopsWait(after_, was);
    if (!waits.ok()) return waits.status();
    if (*waits == kNoNode) return absl::OkStatus();
    const auto before = LoopsWait(before_, same);
    if (!before.ok()) return before.status();
    return *before != kNoNode
               ? absl::OkStatus()
               : Fail("acyclic", after_.name(*waits), "a loop waits for what it leaves");
  }

  // Parsing has shown that all original nodes exist.
  absl::Status Names(const v1::Step& step) const {
    for (const std::string& target : step.targets()) {
      const absl::string_view name = absl::string_view(target).substr(0, target.rfind(':'));
      if (before_.Find(name) == kNoNode) return Fail("names", name, "a target is gone");
    }
    if (step.feeds().empty()) return absl::OkStatus();
    std::vector<bool> edited(before_.num_nodes(), false);
    for (NodeId id : changed_) {
      if (original_[id] != kNoNode) edited[original_[id]] = true;
    }
    for (const v1::Feed& feed : step.feeds()) {
      const absl::string_view name =
          absl::string_view(feed.name()).substr(0, feed.name().rfind(':'));
      const NodeId id = before_.Find(name);
      if (id == kNoNode || edited[id]) return Fail("names", name, "a fed node is gone or edited");
    }
    return absl::OkStatus();
  }

 private:
  // Returns a node of `graph` that waits for itself if Exits wait for all nodes in their loop;
  // kNoNode if none. `was`: a node's id in before_.
  template <typename Was>
  absl::StatusOr<NodeId> LoopsWait(const Graph& graph, Was was) const {
    StopPoller poll(stop_);
    std::map<FrameId, int64_t> inside;              // Nodes in a loop that have not run.
    std::map<FrameId, std::vector<NodeId>> leaves;  // Its Exits.
    const auto frame_in = [&](NodeId id) {
      const NodeId node = was(id);
      const FrameId in = node == kNoNode ? kRootFrame : control_flow_.output_frame(node);
      return in == kUnknownFrame ? kRootFrame : in;
    };
    const auto frame_left = [&](NodeId id) {
      const bool is_exit = graph.op_info(id).control_flow == ControlFlow::kExit;
      const NodeId node = is_exit ? was(id) : kNoNode;
      const FrameId left = node == kNoNode ? kRootFrame : control_flow_.input_frame(node);
      return left == kUnknownFrame ? kRootFrame : left;
    };
    std::vector<int64_t> waiting(graph.num_nodes(), 0);
    std::vector<NodeId> ready;
    for (NodeId id(0); id < graph.num_nodes(); ++id) {
      if (frame_in(id) != kRootFrame) ++inside[frame_in(id)];
      for (Tensor input : graph.inputs(id)) {
        if (poll.Tick()) return stop_.status("verify");
        waiting[id] += !IsBackEdge(graph, input.node, id);
      }
      if (const FrameId left = frame_left(id); left != kRootFrame) {
        ++waiting[id];
        leaves[left].push_back(id);
      }
    }
    for (NodeId id(0); id < graph.num_nodes(); ++id) {
      if (waiting[id] == 0) ready.push_back(id);
    }
    const auto arrive = [&](NodeId id) {
      if (--waiting[id] == 0) ready.push_back(id);
    };
    for (size_t done = 0; done < ready.size(); ++done) {
      const NodeId id = ready[done];
      const Graph::Readers readers = graph.readers(id);
      for (uint32_t i = 0; i < readers.size(); ++i) {
        if (poll.Tick()) return stop_.status("verify");
        if (!IsBackEdge(graph, id, readers[i].node)) arrive(readers[i].node);
      }
      const FrameId in = frame_in(id);
      if (in == kRootFrame || --inside[in] > 0) continue;
      for (NodeId exit : leaves[in]) arrive(exit);
    }
    if (ready.size() == static_cast<size_t>(graph.num_nodes())) return kNoNode;
    return NodeId(
        std::find_if(waiting.begin(), waiting.end(), [](int64_t left) { return left > 0; }) -
        waiting.begin());
  }

  // Checks that an original node reads what it read before, and that its added waits are sound.
  absl::Status OriginalNode(NodeId id) const {
    const NodeId was = original_[id];
    const absl::Span<const Tensor> now = after_.inputs(id);
    const absl::Span<const Tensor> then = before_.inputs(was);
    const absl::string_view name = after_.name(id);
    if (BodyOf(after_.node_bytes(id)) != BodyOf(before_.node_bytes(was))) {
      return Fail("data", name, "more than inputs has changed");
    }
    if (now.size() < then.size()) return Fail("data", name, "an input is gone");
    for (size_t i = 0; i < now.size(); ++i) {
      if (i < then.size()) {
        if (now[i].is_control() != then[i].is_control()) {
          return Fail("data", name, "an input has changed its kind");
        }
        if (SameTensor(now[i], then[i])) continue;
        if (now[i].is_control()) return Fail("data", name, "a control input has changed");
        if (absl::Status s = ThroughSwap(id, was, now[i], then[i]); !s.ok()) return s;
        continue;
      }
      if (!now[i].is_control()) return Fail("data", name, "a data input was added");
      // Checks an added control edge from an original node, or from a swap node and what that waits
      // for.
      if (absl::Status s = Waits(now[i].node, was, name); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  bool SameTensor(Tensor now, Tensor then) const {
    return original_[now.node] == then.node && now.port == then.port;
  }

  // Checks that `now` is a swap-in of a swap-out of `then`.
  absl::Status ThroughSwap(NodeId reader, NodeId reader_was, Tensor now, Tensor then) const {
    const absl::string_view name = after_.name(reader);
    for (int hop = 0; hop < kMaxSwapNodes; ++hop) {
      if (original_[now.node] != kNoNode || now.port != 0) {
        return Fail("data", name, "an input reads another tensor than before");
      }
      // Readers of a swap node also wait for what it waits for.
      absl::Status status = WaitsForControlsOf(now.node, reader_was, name);
      if (!status.ok()) return status;
      now = after_.inputs(now.node)[0];
    }
    if (!SameTensor(now, then)) {
      return Fail("data", name, "an input reads another tensor than before");
    }
    if (control_flow_.output_frame(then.node) == kUnknownFrame ||
        control_flow_.output_frame(then.node) != control_flow_.input_frame(reader_was)) {
      return Fail("frames", name, "a swap crosses loop frames");
    }
    return absl::OkStatus();
  }

  // `reader_was` now waits for the end of the original node `node`.
  absl::Status WaitsForOriginal(NodeId node, NodeId reader_was, absl::string_view name) const {
    if (control_flow_.MayControl(original_[node], reader_was)) return absl::OkStatus();
    const FrameId frame = control_flow_.output_frame(original_[node]);
    const bool same = frame != kUnknownFrame && frame == control_flow_.input_frame(reader_was);
    return Fail(same ? "deadness" : "frames", name,
                absl::StrCat("it waits for ", Quoted(after_.name(node)),
                             same ? ", which may be dead while it is not"
                                  : ", which is in another loop frame"));
  }

  // `reader_was` now waits for what the new node `node` waits for besides its tensor.
  absl::Status WaitsForControlsOf(NodeId node, NodeId reader_was, absl::string_view name) const {
    for (Tensor input : after_.inputs(node)) {
      if (!input.is_control()) continue;
      if (original_[input.node] == kNoNode) {
        return Fail("deadness", name, "a swap node waits for another swap node");
      }
      if (absl::Status s = WaitsForOriginal(input.node, reader_was, name); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  // `reader_was` now waits for `node`, which is an original node, or a swap node with all its
  // ancestors.
  absl::Status Waits(NodeId node, NodeId reader_was, absl::string_view name) const {
    for (int hop = 0; hop < kMaxSwapNodes && original_[node] == kNoNode; ++hop) {
      if (absl::Status s = WaitsForControlsOf(node, reader_was, name); !s.ok()) return s;
      node = after_.inputs(node)[0].node;
    }
    if (original_[node] == kNoNode) return Fail("data", name, "swap nodes form a chain");
    if (after_.op_info(node).control_flow == ControlFlow::kSwitch) {
      return Fail("deadness", name, "it waits for one side of a Switch");
    }
    return WaitsForOriginal(node, reader_was, name);
  }

  // The type of a tensor that is read. Caches the last node's types: swaps of one node are
  // adjacent, and it may have very many outputs.
  OutputType TypeOf(Tensor tensor) {
    // Swap-outs come in between: they have one output, and must not replace the cached types.
    if (original_[tensor.node] == kNoNode) return {TypeOfNew(tensor.node), /*is_ref=*/false};
    if (typed_node_ != tensor.node) {
      typed_node_ = tensor.node;
      typed_ports_.clear();
      const Graph::Readers readers = after_.readers(tensor.node);
      for (uint32_t i = 0; i < readers.size(); ++i) {
        const int32_t port = readers[i].port;
        if (port != kControl && (typed_ports_.empty() || typed_ports_.back() != port)) {
          typed_ports_.push_back(port);
        }
      }
      types_ = GetOutputTypes(after_, tensor.node, typed_ports_);
    }
    const auto it = std::lower_bound(typed_ports_.begin(), typed_ports_.end(), tensor.port);
    return types_[it - typed_ports_.begin()];
  }

  // The type that a new node states for its output. All kinds of new nodes state it in the same
  // way.
  DataType TypeOfNew(NodeId id) const {
    return AttrType(after_.attr(id, "T").value_or(absl::string_view()));
  }

  // Checks that a new node forwards one tensor, unchanged.
  absl::Status NewNode(NodeId id) {
    const absl::string_view op = after_.op(id);
    const absl::string_view name = after_.name(id);
    if (!after_.has_undo(id)) return Fail("undo", name, "a new node carries no undo record");
    if (op != "Identity" && op != "_CopyFromGpuToHost" && op != "_CopyFromHostToGpu") {
      return Fail("data", name, absl::StrCat("a new node is a ", op));
    }
    const absl::Span<const Tensor> inputs = after_.inputs(id);
    if (inputs.empty() || inputs[0].is_control() ||
        (inputs.size() > 1 && !inputs[1].is_control())) {
      return Fail("data", name, "a new node does not have one data input");
    }
    const OutputType source = TypeOf(inputs[0]);
    if (source.is_ref || source.dtype == kDtInvalid || source.dtype != TypeOfNew(id)) {
      return Fail("data", name, "a new node's type is not that of the tensor that it forwards");
    }
    return absl::OkStatus();
  }

  const Graph& before_;
  const Graph& after_;
  const std::vector<NodeId> original_;  // Per node of after_: its id in before_, or kNoNode.
  const std::vector<NodeId> changed_;   // Nodes of after_ that are new or edited.
  const ControlFlowAnalysis& control_flow_;
  const StopToken& stop_;
  NodeId typed_node_ = kNoNode;  // TypeOf: the last node, its ports that are read, their types.
  std::vector<int32_t> typed_ports_;
  std::vector<OutputType> types_;
};

}  // namespace

absl::Status VerifyRewrite(const Graph& before, const ControlFlowAnalysis& control_flow,
                           absl::string_view after, const v1::Step& step, const StopToken& stop) {
  Graph::Edited edited;
  auto graph = Graph::ParseEdited(after, before, NoLimits(), stop, &edited);
  if (!graph.ok()) return Blame("parse", graph.status());
  Verifier verifier(before, *graph, std::move(edited), control_flow, stop);
  if (absl::Status s = verifier.Undo(); !s.ok()) return s;
  if (absl::Status s = verifier.Edges(); !s.ok()) return s;
  auto topology = Topology::Build(*graph, stop);
  if (!topology.ok()) return Blame("acyclic", topology.status());
  if (absl::Status s = verifier.Loops(); !s.ok()) return s;
  return verifier.Names(step);
}

}  // namespace spillway::core
