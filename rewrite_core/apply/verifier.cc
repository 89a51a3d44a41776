#include "rewrite_core/apply/verifier.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "rewrite_core/analysis/flow/training_ops.h"
#include "rewrite_core/analysis/machine/device_name.h"
#include "rewrite_core/apply/clone_match.h"
#include "rewrite_core/apply/verify_error.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/attr_entry.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/no_limits.h"
#include "rewrite_core/graph/node_writer.h"
#include "rewrite_core/graph/op_outputs.h"
#include "rewrite_core/graph/strip.h"
#include "rewrite_core/graph/topology.h"
#include "rewrite_core/plan/clone_rules.h"

namespace spillway::core {
namespace {

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

// The name of the node in that of a tensor or a node.
absl::string_view NodeOf(absl::string_view tensor) { return tensor.substr(0, tensor.rfind(':')); }

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
        stands_for_(original_),
        changed_(std::move(edited.changed)),
        control_flow_(control_flow),
        stop_(stop),
        poll_(stop) {}

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
    if (!status.ok()) return BlameVerified("undo", status);
    if (!same || !expected.empty()) {
      return VerifyFailed("undo", "?", "undoing the edits does not give the original bytes");
    }
    return absl::OkStatus();
  }

  // Finds the originals of all clones. Before Edges.
  absl::Status Clones(const v1::Step& step) {
    std::vector<NodeId> clones;
    absl::flat_hash_set<NodeId> left;  // Of the new nodes, those that were not looked at.
    absl::flat_hash_set<absl::string_view> ops;
    for (NodeId id : changed_) {
      if (poll_.Tick()) return stop_.status("verify");
      if (original_[id] != kNoNode) continue;
      left.insert(id);
      if (IsSwapNode(id)) continue;
      clones.push_back(id);
      ops.insert(after_.op(id));
    }
    if (clones.empty()) return absl::OkStatus();
    absl::flat_hash_set<NodeId> fed;
    for (const v1::Feed& feed : step.feeds()) {
      if (poll_.Tick()) return stop_.status("verify");
      fed.insert(before_.Find(NodeOf(feed.name())));
    }
    auto match = CloneMatch::Create(before_, ops, fed, stop_);
    if (!match.ok()) return match.status();
    kinds_ = match->kinds();
    // Each after those that it reads or waits for, perhaps through swap nodes.
    std::vector<std::pair<NodeId, size_t>> path;  // With the number of inputs not looked at.
    const auto visit = [&](NodeId id) {
      if (left.erase(id) > 0) path.emplace_back(id, after_.inputs(id).size());
    };
    for (NodeId first : clones) {
      visit(first);
      while (!path.empty()) {
        if (poll_.Tick()) return stop_.status("verify");
        const NodeId id = path.back().first;
        if (path.back().second > 0) {
          visit(after_.inputs(id)[--path.back().second].node);
          continue;
        }
        path.pop_back();
        if (IsSwapNode(id)) continue;
        if (absl::Status s = FindOriginal(id, *match, fed); !s.ok()) return s;
      }
    }
    return Variables(clones);
  }

  absl::Status Edges() {
    // New nodes first: the checks of the others follow their inputs.
    for (const bool is_new : {true, false}) {
      for (NodeId id : changed_) {
        if (poll_.Tick()) return stop_.status("verify");
        if ((original_[id] == kNoNode) != is_new || IsClone(id)) continue;
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
    return *before != kNoNode ? absl::OkStatus()
                              : VerifyFailed("acyclic", after_.name(*waits),
                                             "a loop waits for one of its own exits");
  }

  // A swap-in of a tensor that shares a variable's memory may be read late. Of its readers, one has
  // to lead to each update that the tensor led to: then it was copied before. After Edges.
  absl::Status LateReads(const Topology& topology) {
    std::vector<Late> late;  // Swap nodes of one tensor are adjacent.
    for (NodeId id : changed_) {
      if (poll_.Tick(1 + static_cast<int64_t>(after_.readers(id).size()))) {
        return stop_.status("verify");
      }
      if (stands_for_[id] != kNoNode || NextReaders(id).empty()) continue;
      const NodeId tensor = stands_for_[BehindSwap({id, 0}).node];
      if (tensor == kNoNode)
        return VerifyFailed("data", after_.name(id), "swap nodes form a chain");
      if (!MayShareMemory(before_, tensor)) continue;
      if (late.empty() || late.back().was != tensor) late.push_back({tensor, {}});
      late.back().nodes.push_back(id);
    }
    std::vector<uint64_t> leads;
    const auto begin = [&](const std::vector<NodeId>& updates, const std::vector<NodeId>& now,
                           std::vector<uint64_t>*) {
      leads.assign(after_.num_nodes(), 0);
      for (size_t i = 0; i < updates.size(); ++i) leads[now[updates[i]]] = uint64_t{1} << i;
      return Spread(after_, topology, &leads);
    };
    const auto came_before = [&](NodeId swap_node) {
      uint64_t led = 0;
      for (NodeId reader : NextReaders(swap_node)) led |= leads[reader];
      return led;
    };
    auto unsafe = FindUnsafe(late, begin, came_before);
    if (!unsafe.ok()) return unsafe.status();
    if (unsafe->first == kNoNode) return absl::OkStatus();
    return VerifyFailed("variable", after_.name(unsafe->second),
                        absl::StrCat("it may be read after ", Quoted(before_.name(unsafe->first)),
                                     " has changed the variable"));
  }

  // Each node of a step runs without the added control edges, too. (Then it ran before: reads, and
  // waits that are not new, of original nodes and clones stand for the former ones.) After Edges.
  absl::Status Step(const v1::Step& step, const std::vector<NodeId>& targets) const {
    std::vector<bool> runs(after_.num_nodes(), false), is_changed(after_.num_nodes(), false);
    absl::flat_hash_set<NodeId> fed, ends(targets.begin(), targets.end());  // In before_.
    for (const v1::Feed& feed : step.feeds()) fed.insert(before_.Find(NodeOf(feed.name())));
    for (const std::string& target : step.targets()) ends.insert(before_.Find(NodeOf(target)));
    fed.erase(kNoNode);
    ends.erase(kNoNode);
    std::vector<NodeId> todo, waiting;
    const auto visit = [&](NodeId id) {
      if (poll_.Tick() || runs[id]) return;
      runs[id] = true;
      if (!fed.contains(original_[id])) todo.push_back(id);
    };
    for (NodeId id(0); id < after_.num_nodes(); ++id) {
      if (ends.contains(original_[id])) visit(id);
    }
    for (NodeId id : changed_) is_changed[id] = true;
    while (!todo.empty() && !poll_.stopped()) {
      const NodeId id = todo.back();
      todo.pop_back();
      if (is_changed[id]) {
        waiting.push_back(id);
        for (Tensor input : OwnInputs(id)) visit(input.node);
      } else {
        for (Tensor input : after_.inputs(id)) visit(input.node);
      }
    }
    while (!waiting.empty() && !poll_.stopped()) {
      const NodeId id = waiting.back();
      waiting.pop_back();
      for (Tensor input : after_.inputs(id)) {
        if (poll_.Tick() || runs[input.node]) continue;
        if (original_[input.node] != kNoNode) {
          return VerifyFailed(
              "step", after_.name(input.node),
              absl::StrCat("it would run only because ", Quoted(after_.name(id)), " waits for it"));
        }
        runs[input.node] = true;
        waiting.push_back(input.node);
      }
    }
    return stop_.status("verify");
  }

  // Parsing has shown that all original nodes exist.
  absl::Status Names(const v1::Step& step) const {
    for (const std::string& target : step.targets()) {
      if (poll_.Tick()) return stop_.status("verify");
      const absl::string_view name = NodeOf(target);
      if (before_.Find(name) == kNoNode) return VerifyFailed("names", name, "a target is gone");
    }
    if (step.feeds().empty()) return absl::OkStatus();
    std::vector<bool> edited(before_.num_nodes(), false);
    for (NodeId id : changed_) {
      if (original_[id] != kNoNode) edited[original_[id]] = true;
    }
    for (const v1::Feed& feed : step.feeds()) {
      if (poll_.Tick()) return stop_.status("verify");
      const absl::string_view name = NodeOf(feed.name());
      const NodeId id = before_.Find(name);
      if (id == kNoNode || edited[id])
        return VerifyFailed("names", name, "a fed node is gone or edited");
    }
    return absl::OkStatus();
  }

 private:
  // The inputs of a changed node without added control edges.
  std::vector<Tensor> OwnInputs(NodeId id) const {
    const absl::Span<const Tensor> now = after_.inputs(id);
    if (const NodeId was = original_[id]; was != kNoNode) {
      return {now.begin(), now.begin() + before_.inputs(was).size()};
    }
    absl::flat_hash_set<NodeId> kept;  // Control inputs of its originals.
    const auto keep = [&](NodeId was) {
      for (Tensor input : before_.inputs(was)) {
        if (!poll_.Tick() && input.is_control()) kept.insert(input.node);
      }
    };
    if (IsClone(id)) keep(stands_for_[id]);
    if (const auto others = also_.find(id); others != also_.end()) {
      for (NodeId was : others->second) keep(was);
    }
    std::vector<Tensor> own;
    for (Tensor input : now) {
      if (!input.is_control() || kept.contains(original_[input.node])) own.push_back(input);
    }
    return own;
  }

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

  // Checks that an original node reads the same as before, and that its added waits are sound.
  absl::Status OriginalNode(NodeId id) const {
    const NodeId was = original_[id];
    const absl::Span<const Tensor> now = after_.inputs(id);
    const absl::Span<const Tensor> then = before_.inputs(was);
    const absl::string_view name = after_.name(id);
    if (BodyOf(after_.node_bytes(id)) != BodyOf(before_.node_bytes(was))) {
      return VerifyFailed("data", name, "more than inputs has changed");
    }
    if (now.size() < then.size()) return VerifyFailed("data", name, "an input is gone");
    for (size_t i = 0; i < now.size(); ++i) {
      if (poll_.Tick()) return stop_.status("verify");
      if (i < then.size()) {
        if (now[i].is_control() != then[i].is_control()) {
          return VerifyFailed("data", name, "an input has changed its kind");
        }
        if (SameTensor(now[i], then[i])) continue;
        if (now[i].is_control()) return VerifyFailed("data", name, "a control input has changed");
        if (absl::Status s = ThroughSwap(id, was, now[i], then[i]); !s.ok()) return s;
        continue;
      }
      if (!now[i].is_control()) return VerifyFailed("data", name, "a data input was added");
      // Checks an added control edge from an original node, or from a swap node and its waits.
      if (absl::Status s = Waits(now[i].node, was, name); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  bool SameTensor(Tensor now, Tensor then) const {
    if (now.port != then.port) return false;
    return stands_for_[now.node] == then.node || (IsClone(now.node) && OfSameKind(now, then));
  }
  // Whether they are outputs of nodes of one kind (CloneMatch::FindKinds), or of clones of such.
  bool OfSameKind(Tensor now, Tensor then) const {
    const NodeId was = stands_for_[now.node];
    if (now.port != then.port || was == kNoNode) return false;
    if (KindOf(was) == KindOf(then.node)) return true;
    const auto others = also_.find(now.node);
    return others != also_.end() && others->second.contains(KindOf(then.node));
  }
  NodeId KindOf(NodeId was) const { return kinds_.empty() ? was : kinds_[was]; }

  bool IsClone(NodeId id) const { return original_[id] == kNoNode && stands_for_[id] != kNoNode; }

  // Whether a new node is written as a swap node. A clone of an Identity lacks the attribute.
  bool IsSwapNode(NodeId id) const {
    const absl::string_view op = after_.op(id);
    return op == "_CopyFromGpuToHost" || op == "_CopyFromHostToGpu" ||
           (op == "Identity" && after_.attr(id, kGrapplerKeepAttr).has_value());
  }

  // The tensor behind `tensor`, if that is a swap-in's.
  Tensor BehindSwap(Tensor tensor) const {
    for (int hop = 0; hop < kMaxSwapNodes && stands_for_[tensor.node] == kNoNode; ++hop) {
      const absl::Span<const Tensor> of = after_.inputs(tensor.node);
      if (!of.empty() && !of[0].is_control()) tensor = of[0];
    }
    return tensor;
  }

  // Finds the kinds of nodes that the new node `id` is a clone of: one of several, which have the
  // same values. Its inputs were visited before. An Identity that is not a clone may still be a
  // swap node.
  absl::Status FindOriginal(NodeId id, const CloneMatch& match,
                            const absl::flat_hash_set<NodeId>& fed) {
    std::vector<Tensor> inputs;
    std::vector<NodeId> controls;  // The first ones, as far as they are original nodes.
    for (Tensor input : after_.inputs(id)) {
      if (poll_.Tick()) return stop_.status("verify");
      if (input.is_control()) {
        if (original_[input.node] == kNoNode) break;
        controls.push_back(original_[input.node]);
        continue;
      }
      const Tensor behind = BehindSwap(input);
      inputs.push_back({stands_for_[behind.node], behind.port});
    }
    absl::Status status = VerifyFailed("clone", after_.name(id), "it is a copy of no node");
    for (NodeId original : match.FindKinds(after_.node_bytes(id), inputs, controls)) {
      if (poll_.Tick(static_cast<int64_t>(inputs.size() + after_.readers(id).size()))) {
        return stop_.status("verify");
      }
      absl::Status is_clone = Clone(id, original, fed);
      if (!is_clone.ok()) {
        if (stands_for_[id] == kNoNode) status = is_clone;
        continue;
      }
      if (stands_for_[id] == kNoNode) {
        stands_for_[id] = original;
      } else {
        also_[id].insert(original);
      }
    }
    return stands_for_[id] != kNoNode || after_.op(id) == "Identity" ? absl::OkStatus() : status;
  }

  // Checks that `id`, which has the op, attributes and data inputs of `original`, is a clone of it.
  absl::Status Clone(NodeId id, NodeId original, const absl::flat_hash_set<NodeId>& fed) {
    const absl::string_view name = after_.name(id);
    if (!after_.has_undo(id))
      return VerifyFailed("undo", name, "a new node carries no undo record");
    if (before_.op_info(original).run_again == RunAgain::kNever) {
      return VerifyFailed("clone", name,
                          absl::StrCat("a ", before_.op(original), " may not run twice"));
    }
    if (fed.contains(original)) return VerifyFailed("clone", name, "its original is fed");
    if (control_flow_.input_frame(original) != kRootFrame ||
        control_flow_.output_frame(original) != kRootFrame) {
      return VerifyFailed("frames", name, "a clone is in a loop");
    }
    const auto is_value = [](OutputType type) {
      return !type.is_ref && type.dtype != kDtInvalid && type.dtype != kDtResource &&
             type.dtype != kDtVariant;
    };
    std::vector<NodeId> waits, waited;
    const absl::Span<const Tensor> then = before_.inputs(original), now = after_.inputs(id);
    for (size_t i = 0; i < then.size(); ++i) {
      if (then[i].is_control()) {
        waits.push_back(then[i].node);
      } else if (!OfSameKind(BehindSwap(now[i]), then[i])) {
        return VerifyFailed("clone", name, "it reads another tensor than its original");
      } else if (!is_value(TypeBefore(then[i]))) {
        return VerifyFailed("clone", name, "it reads a reference or a resource");
      }
    }
    for (OutputType type : GetOutputTypes(before_, original, PortsRead(after_, id))) {
      if (!is_value(type))
        return VerifyFailed("clone", name, "it outputs a reference or a resource");
    }
    bool differs = false;
    for (Tensor input : after_.inputs(id)) {
      if (!input.is_control()) {
        // Nothing merges nodes with different inputs.
        differs = differs || original_[input.node] == kNoNode;
        if (stands_for_[input.node] != kNoNode) continue;
        if (absl::Status s = WaitsForSwap(input.node, original, name); !s.ok()) return s;
        continue;
      }
      if (original_[input.node] == kNoNode) {
        differs = true;
        if (absl::Status s = Waits(input.node, original, name); !s.ok()) return s;
        continue;
      }
      waited.push_back(original_[input.node]);
    }
    std::sort(waits.begin(), waits.end());
    std::sort(waited.begin(), waited.end());
    if (!std::includes(waited.begin(), waited.end(), waits.begin(), waits.end())) {
      return VerifyFailed("clone", name, "a control input is lost");
    }
    for (NodeId node : waited) {
      if (std::binary_search(waits.begin(), waits.end(), node)) continue;
      differs = true;
      if (before_.op_info(node).control_flow == ControlFlow::kSwitch) {
        return VerifyFailed("deadness", name, "it waits for one side of a Switch");
      }
      if (!control_flow_.MayControl(node, original)) {
        return VerifyFailed("deadness", name,
                            "it waits for a node that may be dead while its original is not");
      }
    }
    if (!differs)
      return VerifyFailed("clone", name,
                          "it is identical to its original, so TensorFlow would merge them");
    return absl::OkStatus();
  }

  // `reader_was` now reads a tensor through the swap node `node`.
  absl::Status WaitsForSwap(NodeId node, NodeId reader_was, absl::string_view name) const {
    for (int hop = 0; hop < kMaxSwapNodes && stands_for_[node] == kNoNode; ++hop) {
      const absl::Span<const Tensor> inputs = after_.inputs(node);
      if (inputs.empty() || inputs[0].is_control()) {
        return VerifyFailed("data", name, "it reads a new node that reads nothing");
      }
      if (absl::Status s = WaitsForControlsOf(node, reader_was, name); !s.ok()) return s;
      node = inputs[0].node;
    }
    return absl::OkStatus();
  }

  // ---- Variables ----

  // The variable behind a reference; kNoNode if `tensor` is not one.
  NodeId VariableOf(Tensor tensor) {
    for (int hop = 0; hop < kMaxReferences; ++hop) {
      if (!TypeBefore(tensor).is_ref) return kNoNode;
      const absl::Span<const Tensor> inputs = before_.inputs(tensor.node);
      if (inputs.empty() || inputs[0].is_control() || !TypeBefore(inputs[0]).is_ref) {
        return tensor.node;
      }
      tensor = inputs[0];
    }
    return tensor.node;
  }
  static constexpr int kMaxReferences = 64;

  using Writers = absl::flat_hash_map<NodeId, std::vector<NodeId>>;  // By variable.

  // Returns the nodes of before_ that write to variables by reference; `now`: their ids in after_.
  absl::StatusOr<Writers> FindWriters(std::vector<NodeId>* now) {
    Writers writers;
    now->assign(before_.num_nodes(), kNoNode);
    for (NodeId id(0); id < after_.num_nodes(); ++id) {
      if (poll_.Tick()) return stop_.status("verify");
      const NodeId was = original_[id];
      if (was == kNoNode) continue;
      (*now)[was] = id;
      if (WriteOf(before_.op(was)) == Write::kNone) continue;
      for (Tensor input : before_.inputs(was)) {
        if (poll_.Tick()) return stop_.status("verify");
        if (input.is_control()) break;
        if (const NodeId variable = VariableOf(input); variable != kNoNode) {
          writers[variable].push_back(was);
        }
      }
    }
    return writers;
  }

  // A node of before_ that may read the memory of variables, and the new nodes that read it again.
  struct Late {
    NodeId was;
    std::vector<NodeId> nodes;
  };

  // How memory of variables comes to nodes of before_, perhaps through others that forward it.
  struct Sharing {
    std::vector<NodeId> nodes;                                 // Those that are reached.
    absl::flat_hash_map<NodeId, std::vector<NodeId>> readers;  // Of a variable or of one of them.
  };

  // Finds it for all of `late` in one walk back.
  absl::StatusOr<Sharing> FindSharing(const std::vector<Late>& late) {
    Sharing sharing;
    absl::flat_hash_set<NodeId> seen;
    for (const Late& of : late) {
      if (seen.insert(of.was).second) sharing.nodes.push_back(of.was);
    }
    for (size_t done = 0; done < sharing.nodes.size(); ++done) {
      const NodeId id = sharing.nodes[done];
      const absl::Span<const Tensor> inputs = before_.inputs(id);
      for (size_t i = 0; i < inputs.size() && !inputs[i].is_control(); ++i) {
        const Tensor input = inputs[i];
        if (poll_.Tick()) return stop_.status("verify");
        if (!ReadsInput(before_, id, static_cast<int32_t>(i))) continue;
        // Tensors from another device are copied once for all readers on this one.
        if (AreOtherDevices(before_.device(input.node), before_.device(id))) continue;
        if (const NodeId variable = VariableOf(input); variable != kNoNode) {
          sharing.readers[variable].push_back(id);
        } else if (MayShareMemory(before_, input.node)) {
          sharing.readers[input.node].push_back(id);
          if (seen.insert(input.node).second) sharing.nodes.push_back(input.node);
        }
      }
    }
    return sharing;
  }

  // Returns the first update of a variable that a new node in `late` does not precede, though its
  // original leads to the update, and the first such node; kNoNode if none. Calls `begin` with 64
  // updates at a time, one bit each, the nodes' present ids, and the bits to which each leads, and
  // then `came_before` for the bits of those that a new node comes before. Pairs of nodes and
  // updates are not listed: a variable may have very many of both.
  template <typename Begin, typename CameBefore>
  absl::StatusOr<std::pair<NodeId, NodeId>> FindUnsafe(const std::vector<Late>& late,
                                                       const Begin& begin,
                                                       const CameBefore& came_before) {
    std::pair<NodeId, NodeId> first(kNoNode, kNoNode);
    auto sharing = FindSharing(late);
    if (!sharing.ok()) return sharing.status();
    if (sharing->readers.empty()) return first;
    std::vector<NodeId> now;
    auto writers = FindWriters(&now);
    if (!writers.ok()) return writers.status();
    std::vector<std::pair<NodeId, NodeId>> updates;  // And their variables.
    for (const auto& [variable, of] : *writers) {
      if (!sharing->readers.contains(variable)) continue;
      for (NodeId update : of) {
        if (poll_.Tick()) return stop_.status("verify");
        updates.emplace_back(update, variable);
      }
    }
    if (updates.empty()) return first;
    auto topology = Topology::Build(before_, stop_);
    if (!topology.ok()) return BlameVerified("acyclic", topology.status());
    if (!PolledSort(updates.begin(), updates.end(), std::less<>(), &poll_)) {
      return stop_.status("verify");
    }
    for (size_t next = 0; next < updates.size() && first.first == kNoNode;) {
      std::vector<uint64_t> leads(before_.num_nodes(), 0);
      std::vector<uint64_t> reads(before_.num_nodes(), 0);  // By variable: its updates.
      std::vector<NodeId> of_bits, todo;
      for (; next < updates.size(); ++next) {
        const auto [update, variable] = updates[next];
        if (of_bits.empty() || of_bits.back() != update) {
          if (of_bits.size() == 64) break;
          of_bits.push_back(update);
        }
        const uint64_t bit = uint64_t{1} << (of_bits.size() - 1);
        leads[update] |= bit;
        if (reads[variable] == 0) todo.push_back(variable);
        reads[variable] |= bit;
      }
      // To all readers of the memory. A node is visited again if it gets more bits: mostly once.
      for (size_t done = 0; done < todo.size(); ++done) {
        const auto readers = sharing->readers.find(todo[done]);
        if (readers == sharing->readers.end()) continue;
        for (NodeId reader : readers->second) {
          if (poll_.Tick()) return stop_.status("verify");
          const uint64_t bits = reads[reader] | reads[todo[done]];
          if (std::exchange(reads[reader], bits) != bits) todo.push_back(reader);
        }
      }
      if (absl::Status s = Spread(before_, *topology, &leads); !s.ok()) return s;
      if (absl::Status s = begin(of_bits, now, &leads); !s.ok()) return s;
      for (const Late& of : late) {
        if (poll_.Tick()) return stop_.status("verify");
        const uint64_t led = reads[of.was] & leads[of.was];
        for (size_t i = 0; led != 0 && i < of.nodes.size(); ++i) {
          const NodeId node = of.nodes[i];
          if (poll_.Tick(1 + static_cast<int64_t>(after_.readers(node).size()))) {
            return stop_.status("verify");
          }
          const uint64_t late_bits = led & ~came_before(node);
          if (late_bits == 0) continue;
          size_t bit = 0;
          while ((late_bits >> bit & 1) == 0) ++bit;
          const std::pair<NodeId, NodeId> found(of_bits[bit], node);
          if (first.first == kNoNode || found < first) first = found;
        }
      }
    }
    return first;
  }

  // A clone of a node that reads a variable by reference has to read it before the updates that
  // come after the node: these must wait for the clone.
  absl::Status Variables(const std::vector<NodeId>& clones) {
    std::vector<Late> late;
    absl::flat_hash_map<NodeId, size_t> index;  // In `late`.
    for (NodeId id : clones) {
      if (poll_.Tick()) return stop_.status("verify");
      if (!IsClone(id)) continue;
      const auto [found, is_new] = index.try_emplace(stands_for_[id], late.size());
      if (is_new) late.push_back({stands_for_[id], {}});
      late[found->second].nodes.push_back(id);
    }
    absl::flat_hash_map<NodeId, uint64_t> waited;  // By clone: the updates that wait for it.
    const auto begin = [&](const std::vector<NodeId>& updates, const std::vector<NodeId>& now,
                           std::vector<uint64_t>* leads) {
      // A clone of a kind may be one of each node of it.
      for (NodeId id(0); id < before_.num_nodes(); ++id) (*leads)[KindOf(id)] |= (*leads)[id];
      waited.clear();
      for (size_t i = 0; i < updates.size(); ++i) {
        for (Tensor input : after_.inputs(now[updates[i]])) {
          if (poll_.Tick()) return stop_.status("verify");
          if (IsClone(input.node)) waited[input.node] |= uint64_t{1} << i;
        }
      }
      return absl::OkStatus();
    };
    const auto came_before = [&waited](NodeId clone) {
      const auto found = waited.find(clone);
      return found == waited.end() ? 0 : found->second;
    };
    auto unsafe = FindUnsafe(late, begin, came_before);
    if (!unsafe.ok()) return unsafe.status();
    if (unsafe->first == kNoNode) return absl::OkStatus();
    return VerifyFailed("variable", after_.name(unsafe->second),
                        absl::StrCat("it may read a variable after ",
                                     Quoted(before_.name(unsafe->first)), " has changed it"));
  }

  // The nodes other than swap nodes that read the output of a swap node.
  std::vector<NodeId> NextReaders(NodeId id) const {
    std::vector<NodeId> next;
    const Graph::Readers readers = after_.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (readers[i].port == kControl || stands_for_[readers[i].node] == kNoNode) continue;
      next.push_back(readers[i].node);
    }
    return next;
  }

  // Adds the bits of each node to all nodes that lead to it.
  absl::Status Spread(const Graph& graph, const Topology& topology,
                      std::vector<uint64_t>* bits) const {
    const std::vector<NodeId>& order = topology.order();
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      const Graph::Readers readers = graph.readers(*id);
      for (uint32_t i = 0; i < readers.size(); ++i) {
        if (poll_.Tick()) return stop_.status("verify");
        if (!IsBackEdge(graph, *id, readers[i].node)) (*bits)[*id] |= (*bits)[readers[i].node];
      }
    }
    return absl::OkStatus();
  }

  // Checks that `now` is a swap-in of a swap-out of `then`.
  absl::Status ThroughSwap(NodeId reader, NodeId reader_was, Tensor now, Tensor then) const {
    const absl::string_view name = after_.name(reader);
    for (int hop = 0; hop < kMaxSwapNodes; ++hop) {
      if (stands_for_[now.node] != kNoNode || now.port != 0) {
        return VerifyFailed("data", name, "an input reads another tensor than before");
      }
      // Readers of a swap node also have its waits.
      absl::Status status = WaitsForControlsOf(now.node, reader_was, name);
      if (!status.ok()) return status;
      now = after_.inputs(now.node)[0];
    }
    if (!SameTensor(now, then)) {
      return VerifyFailed("data", name, "an input reads another tensor than before");
    }
    if (control_flow_.output_frame(then.node) == kUnknownFrame ||
        control_flow_.output_frame(then.node) != control_flow_.input_frame(reader_was)) {
      return VerifyFailed("frames", name, "a swap crosses loop frames");
    }
    return absl::OkStatus();
  }

  // `reader_was` now waits for the end of the original node `node`.
  absl::Status WaitsForOriginal(NodeId node, NodeId reader_was, absl::string_view name) const {
    const NodeId was = stands_for_[node];
    if (control_flow_.MayControl(was, reader_was)) return absl::OkStatus();
    const FrameId frame = control_flow_.output_frame(was);
    const bool same = frame != kUnknownFrame && frame == control_flow_.input_frame(reader_was);
    return VerifyFailed(same ? "deadness" : "frames", name,
                        absl::StrCat("it waits for ", Quoted(after_.name(node)),
                                     same ? ", which may be dead while it is not"
                                          : ", which is in another loop frame"));
  }

  // `reader_was` now waits for the control inputs of the new node `node`.
  absl::Status WaitsForControlsOf(NodeId node, NodeId reader_was, absl::string_view name) const {
    // It may wait for as many nodes as read it.
    if (sound_.contains(node)) return absl::OkStatus();
    for (Tensor input : after_.inputs(node)) {
      if (poll_.Tick()) return stop_.status("verify");
      if (!input.is_control()) continue;
      if (stands_for_[input.node] == kNoNode) {
        return VerifyFailed("deadness", name, "a swap node waits for another swap node");
      }
      if (absl::Status s = WaitsForOriginal(input.node, reader_was, name); !s.ok()) return s;
    }
    // Without control flow, any node may wait for any other.
    if (!before_.has_control_flow()) sound_.insert(node);
    return absl::OkStatus();
  }

  // `reader_was` now waits for `node`, which is an original node, or a swap node with all its
  // ancestors.
  absl::Status Waits(NodeId node, NodeId reader_was, absl::string_view name) const {
    for (int hop = 0; hop < kMaxSwapNodes && stands_for_[node] == kNoNode; ++hop) {
      if (absl::Status s = WaitsForControlsOf(node, reader_was, name); !s.ok()) return s;
      node = after_.inputs(node)[0].node;
    }
    if (stands_for_[node] == kNoNode) return VerifyFailed("data", name, "swap nodes form a chain");
    if (after_.op_info(node).control_flow == ControlFlow::kSwitch) {
      return VerifyFailed("deadness", name, "it waits for one side of a Switch");
    }
    return WaitsForOriginal(node, reader_was, name);
  }

  // The type of a tensor of before_ that is read. A node may have very many outputs, and is
  // examined once.
  OutputType TypeBefore(Tensor tensor) {
    const auto [found, is_new] = types_before_.try_emplace(tensor.node);
    auto& [ports, types] = found->second;
    if (is_new) {
      ports = PortsRead(before_, tensor.node);
      types = GetOutputTypes(before_, tensor.node, ports);
    }
    return types[std::lower_bound(ports.begin(), ports.end(), tensor.port) - ports.begin()];
  }

  // Ascending, each once.
  static std::vector<int32_t> PortsRead(const Graph& graph, NodeId id) {
    std::vector<int32_t> ports;
    const Graph::Readers readers = graph.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      const int32_t port = readers[i].port;
      if (port != kControl && (ports.empty() || ports.back() != port)) ports.push_back(port);
    }
    return ports;
  }

  // The type of a tensor that is read. Caches the last node's types: swaps of one node are
  // adjacent, and it may have very many outputs.
  OutputType TypeOf(Tensor tensor) {
    // Swap-outs come in between: they have one output, and must not replace the cached types.
    if (stands_for_[tensor.node] == kNoNode) return {TypeOfNew(tensor.node), /*is_ref=*/false};
    if (typed_node_ != tensor.node) {
      typed_node_ = tensor.node;
      typed_ports_ = PortsRead(after_, tensor.node);
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
    if (!after_.has_undo(id))
      return VerifyFailed("undo", name, "a new node carries no undo record");
    if (op != "Identity" && op != "_CopyFromGpuToHost" && op != "_CopyFromHostToGpu") {
      return VerifyFailed("data", name, absl::StrCat("a new node is a ", op));
    }
    const absl::Span<const Tensor> inputs = after_.inputs(id);
    if (inputs.empty() || inputs[0].is_control() ||
        (inputs.size() > 1 && !inputs[1].is_control())) {
      return VerifyFailed("data", name, "a new node does not have one data input");
    }
    const OutputType source = TypeOf(inputs[0]);
    if (source.is_ref || source.dtype == kDtInvalid || source.dtype != TypeOfNew(id)) {
      return VerifyFailed("data", name,
                          "a new node's type is not that of the tensor that it forwards");
    }
    return absl::OkStatus();
  }

  const Graph& before_;
  const Graph& after_;
  const std::vector<NodeId> original_;  // Per node of after_: its id in before_, or kNoNode.
  // The same, and for a clone that of its original. Set by Clones.
  std::vector<NodeId> stands_for_;
  absl::flat_hash_map<NodeId, absl::flat_hash_set<NodeId>> also_;  // Further kinds of clones.
  const std::vector<NodeId> changed_;  // Nodes of after_ that are new or edited.
  const ControlFlowAnalysis& control_flow_;
  const StopToken& stop_;
  mutable StopPoller poll_;
  // Swap nodes that any reader may wait for.
  mutable absl::flat_hash_set<NodeId> sound_;
  std::vector<NodeId> kinds_;  // By node of before_ (CloneMatch::kinds); empty without clones.
  absl::flat_hash_map<NodeId, std::pair<std::vector<int32_t>, std::vector<OutputType>>>
      types_before_;             // Ports that are read, and their types.
  NodeId typed_node_ = kNoNode;  // TypeOf: the last node, its ports that are read, their types.
  std::vector<int32_t> typed_ports_;
  std::vector<OutputType> types_;
};

}  // namespace

absl::Status VerifyRewrite(const Graph& before, const ControlFlowAnalysis& control_flow,
                           absl::string_view after, const v1::Step& step, const StopToken& stop,
                           const std::vector<NodeId>& targets) {
  Graph::Edited edited;
  auto graph = Graph::ParseEdited(after, before, NoLimits(), stop, &edited);
  if (!graph.ok()) return BlameVerified("parse", graph.status());
  Verifier verifier(before, *graph, std::move(edited), control_flow, stop);
  if (absl::Status s = verifier.Undo(); !s.ok()) return s;
  if (absl::Status s = verifier.Clones(step); !s.ok()) return s;
  if (absl::Status s = verifier.Edges(); !s.ok()) return s;
  auto topology = Topology::Build(*graph, stop);
  if (!topology.ok()) return BlameVerified("acyclic", topology.status());
  if (absl::Status s = verifier.Loops(); !s.ok()) return s;
  if (absl::Status s = verifier.LateReads(*topology); !s.ok()) return s;
  if (absl::Status s = verifier.Step(step, targets); !s.ok()) return s;
  return verifier.Names(step);
}

}  // namespace spillway::core
