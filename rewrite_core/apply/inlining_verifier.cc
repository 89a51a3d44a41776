#include "rewrite_core/apply/inlining_verifier.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "rewrite_core/analysis/device_name.h"
#include "rewrite_core/analysis/function_body.h"
#include "rewrite_core/analysis/topology.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/base/wire_writer.h"
#include "rewrite_core/graph/attr_entry.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/op_outputs.h"
#include "rewrite_core/graph/strip.h"
#include "rewrite_core/graph/undo.h"
#include "rewrite_core/inline/attr_binding.h"
#include "rewrite_core/inline/function_table.h"

namespace spillway::core {
namespace {

absl::Status Wrong(absl::string_view check, absl::string_view node, absl::string_view what) {
  return Error(absl::StatusCode::kInternal, v1::ERROR_REASON_VERIFY_FAILED,
               absl::StrCat("the verifier refused the inlined graph (check ", check, ") at node ",
                            Quoted(node), ": ", what,
                            "; this is a bug of Spillway, please report it with the graph, and "
                            "give inline_calls = NEVER"),
               {{"check", check}, {"node", node}});
}

using Attrs = std::map<absl::string_view, absl::string_view>;

// The attributes of a node but for the undo record.
Attrs AttrsOf(absl::string_view node_def) {
  Attrs attrs;
  WireReader reader(node_def);
  while (reader.Next()) {
    if (!reader.IsBytes(node_def::kAttr)) continue;
    const AttrEntry entry = ReadAttrEntry(reader.bytes());
    if (entry.key != kUndoAttr) attrs[entry.key] = entry.value;
  }
  return attrs;
}

// What is neither name, op, input, device nor attribute.
std::string OtherFields(absl::string_view node_def) {
  std::string other;
  WireReader reader(node_def);
  while (reader.Next()) {
    if (reader.field() > node_def::kAttr) absl::StrAppend(&other, reader.whole());
  }
  return other;
}

// A function's body, read anew.
struct Body {
  std::string bytes;
  absl::optional<Graph> graph;
  int num_arguments = 0;
  std::vector<Tensor> results;
  std::vector<NodeId> control_returns;
  bool has_attrs = false;
};

class InliningVerifier {
 public:
  InliningVerifier(const Graph& before, const Graph& after, const StopToken& stop)
      : before_(before), after_(after), stop_(stop), poll_(stop) {}

  absl::Status Run() {
    for (auto step :
         {&InliningVerifier::CheckUndo, &InliningVerifier::ReadLibrary,
          &InliningVerifier::SortNodes, &InliningVerifier::ReadCalls, &InliningVerifier::CheckGraph,
          &InliningVerifier::CheckCalls, &InliningVerifier::CheckRest}) {
      absl::Status status = (this->*step)();
      if (absl::Status s = stop_.status("verify"); !s.ok()) return s;
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  // A call that was inlined: of the graph (no caller), or of a body that was.
  struct Call {
    int caller = -1;        // Index in calls_.
    NodeId node = kNoNode;  // In before_, or in the caller's body.
    std::string name;       // As its nodes have it.
    DeviceName device;      // Where it would run.
    absl::string_view node_def;
    const Body* body = nullptr;
    CallKind kind = CallKind::kPartitioned;
    std::vector<NodeId> arguments, results;  // The Identities, in after_; of an If or Case:
                                             // Switches and Merges.
    NodeId start = kNoNode, end = kNoNode;   // The control nodes.
    std::vector<NodeId> images;              // Per node of the body; kNoNode: an inlined call.
    absl::flat_hash_map<NodeId, int> calls;  // Per such node: its index in calls_.
    std::deque<std::string> bound;           // Of a function with attributes: the bodies' nodes.
    // Of an If or Case: what chooses a branch, the node behind each side, and the branches' calls.
    NodeId chooser = kNoNode;
    std::vector<NodeId> pivots;
    std::vector<int> branches;
    // Of a branch (of its caller, an If or Case; it has no node): which one, and its attributes.
    int branch = -1;
    absl::string_view function;
    std::string attrs;

    bool is_native() const { return kind == CallKind::kNative; }
    bool is_lowered() const { return kind == CallKind::kIf || kind == CallKind::kCase; }
  };

  absl::Status CheckUndo() {
    absl::string_view expected = before_.bytes();
    bool same = true;
    absl::Status status = StripTo(after_, stop_, [&](absl::string_view piece) {
      same = expected.substr(0, piece.size()) == piece;
      if (same) expected.remove_prefix(piece.size());
      return same;
    });
    if (!status.ok()) return Wrong("undo", "?", status.message());
    if (!same || !expected.empty()) {
      return Wrong("undo", "?", "undoing the edits does not give the original bytes");
    }
    return absl::OkStatus();
  }

  absl::Status ReadLibrary() {
    auto table = FunctionTable::Read(before_.bytes(), stop_);
    if (!table.ok()) return table.status();
    table_ = *std::move(table);
    return absl::OkStatus();
  }

  // What each node of after_ is.
  absl::Status SortNodes() {
    origin_.assign(after_.num_nodes(), kNoNode);
    claimed_.assign(after_.num_nodes(), false);
    call_of_.assign(before_.num_nodes(), -1);
    for (NodeId id = 0; id < after_.num_nodes(); ++id) {
      if (poll_.Tick()) return absl::OkStatus();
      if (IsInlinedNode(after_, id)) {
        absl::string_view name = after_.name(id);
        const size_t slash = name.rfind("/_");
        if (slash != absl::string_view::npos) borders_[name.substr(0, slash)].push_back(id);
        if (absl::ConsumePrefix(&name, "Func/")) NoteBranch(name);
        continue;
      }
      origin_[id] = before_.Find(after_.name(id));
      if (origin_[id] == kNoNode) return Wrong("graph", after_.name(id), "it is a new node");
      claimed_[id] = true;
      if (!IsInlinedCall(after_, id)) continue;
      const NodeId call = origin_[id];
      const CallKind kind = table_->KindOf(before_.op(call));
      if (!MayBeInlined(kind)) return Wrong("graph", after_.name(id), "it was no call");
      call_of_[call] = static_cast<int>(calls_.size());
      kept_.push_back(id);
      Call& made = calls_.emplace_back();
      made.node = call;
      made.name = std::string(before_.name(call));
      made.device = ParseDeviceName(before_.device(call));
      made.node_def = before_.node_bytes(call);
      made.kind = kind;
    }
    for (Call& call : calls_) {
      if (absl::Status s = FindBorders(&call); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  static bool MayBeInlined(CallKind kind) {
    return kind == CallKind::kPartitioned || kind == CallKind::kNative || kind == CallKind::kIf ||
           kind == CallKind::kCase;
  }

  // Of the name of a border, without `Func/`, `NODE/BRANCH/_N/WHAT/_M`: there is such a branch.
  void NoteBranch(absl::string_view name) {
    for (int part = 0; part < 2; ++part) {
      const size_t slash = name.rfind('/');
      if (slash == absl::string_view::npos) return;
      name = name.substr(0, slash);
    }
    const size_t number = name.rfind("/_");
    if (number == absl::string_view::npos) return;
    std::vector<absl::string_view>& names = branches_[name.substr(0, number)];
    if (names.empty() || names.back() != name) names.push_back(name);
  }

  // The nodes of that name and op that nobody has claimed, which are claimed now.
  std::vector<NodeId> TakeNodes(absl::string_view name, absl::string_view what,
                                absl::string_view op) {
    std::vector<NodeId> nodes;
    const auto found = borders_.find(absl::StrCat(name, "/", what));
    if (found == borders_.end()) return nodes;
    for (NodeId id : found->second) {
      if (claimed_[id] || after_.op(id) != op) continue;
      claimed_[id] = true;
      nodes.push_back(id);
    }
    return nodes;
  }

  // The nodes that claim to be a call's borders.
  absl::Status FindBorders(Call* call) {
    if (call->is_lowered()) return FindLowered(call);
    const auto take = [&](absl::string_view what) {
      const auto found = borders_.find(absl::StrCat("Func/", call->name, "/", what));
      return found == borders_.end() ? std::vector<NodeId>() : found->second;
    };
    call->arguments = take("input");
    call->results = take("output");
    const std::vector<NodeId> start = take("input_control_node");
    const std::vector<NodeId> end = take("output_control_node");
    if (start.size() > 1 || end.size() > 1) {
      return Wrong("body", call->name, "it has a control node twice");
    }
    if (!start.empty()) call->start = start[0];
    if (!end.empty()) call->end = end[0];
    const std::vector<NodeId>* const all[] = {&call->arguments, &call->results, &start, &end};
    for (const std::vector<NodeId>* nodes : all) {
      for (NodeId id : *nodes) {
        if (claimed_[id]) return Wrong("body", after_.name(id), "it is of two calls");
        claimed_[id] = true;
      }
    }
    return absl::OkStatus();
  }

  // The nodes that claim to be what an If or Case was lowered to.
  absl::Status FindLowered(Call* call) {
    const bool is_if = call->kind == CallKind::kIf;
    const absl::string_view op = is_if ? "Switch" : "_SwitchN";
    const std::vector<NodeId> chooser =
        TakeNodes(call->name, is_if ? "switch_pred" : "branch_index", op);
    const size_t count = LoweredFunctions(call->kind, call->node_def).size();
    for (size_t branch = 0; branch < count; ++branch) {
      for (NodeId id :
           TakeNodes(call->name,
                     is_if ? (branch == 0 ? "pivot_f" : "pivot_t") : absl::StrCat("pivot_", branch),
                     "Identity")) {
        call->pivots.push_back(id);
      }
    }
    const std::vector<NodeId> end = TakeNodes(call->name, "branch_executed", "Merge");
    if (chooser.size() != 1 || call->pivots.size() != count || end.size() != 1) {
      return Wrong("body", call->name, "what it was lowered to is not all there");
    }
    call->chooser = chooser[0];
    call->start = chooser[0];
    call->end = end[0];
    call->results = TakeNodes(call->name, is_if ? "output" : "merge", "Merge");
    return absl::OkStatus();
  }

  // Whether `now` in after_ is what `then` is, a tensor of before_ (`caller` -1) or of a body: the
  // tensor itself, or what Identities at the borders hand on, one behind the other.
  bool Is(Tensor now, Tensor then, int caller) const {
    if (now.is_control() != then.is_control()) return false;
    while (true) {
      const absl::optional<Tensor> border = BorderOf(then, caller);
      if (!border.has_value()) break;
      if (border->node == kNoNode) return false;
      if (now == *border) return true;
      // Nothing waits in between, and nothing is moved.
      const absl::Span<const Tensor> reads = after_.inputs(border->node);
      if (now.is_control() || reads.size() != 1 || after_.op(border->node) != "Identity") {
        return false;
      }
      if (!FollowBorder(&then, &caller)) return false;
      if (GetOutputType(after_, reads[0]).is_ref) return false;
    }
    if (caller < 0) return origin_[now.node] == then.node && now.port == then.port;
    return now.node == calls_[caller].images[then.node] && now.port == then.port;
  }

  // The border node that stands for a tensor; none: it is made by a node that was not inlined.
  absl::optional<Tensor> BorderOf(Tensor then, int caller) const {
    const Call* call = nullptr;
    if (caller < 0) {
      if (call_of_[then.node] >= 0) call = &calls_[call_of_[then.node]];
    } else {
      const Call& in = calls_[caller];
      if (then.node < in.body->num_arguments) return Tensor{in.arguments[then.node], then.port};
      const auto nested = in.calls.find(then.node);
      if (nested != in.calls.end()) call = &calls_[nested->second];
    }
    if (call == nullptr) return absl::nullopt;
    if (then.is_control()) return Tensor{call->end, kControl};
    if (then.port >= static_cast<int32_t>(call->results.size())) return Tensor{kNoNode, 0};
    return Tensor{call->results[then.port], 0};
  }

  // From a tensor that has a border node to what that hands on.
  bool FollowBorder(Tensor* then, int* caller) const {
    int inside = -1;
    if (*caller < 0) {
      inside = call_of_[then->node];
    } else {
      const Call& in = calls_[*caller];
      if (then->node < in.body->num_arguments) {
        if (in.branch >= 0) return false;  // Its arguments wait for its pivot.
        *then = in.caller < 0 ? before_.inputs(in.node)[then->node]
                              : calls_[in.caller].body->graph->inputs(in.node)[then->node];
        *caller = in.caller;
        return true;
      }
      inside = in.calls.at(then->node);
    }
    const Body* body = calls_[inside].body;
    if (body == nullptr || then->port >= static_cast<int32_t>(body->results.size())) return false;
    *then = body->results[then->port];
    *caller = inside;
    return true;
  }

  // Nodes of the graph but for those that were calls.
  absl::Status CheckGraph() {
    for (NodeId id = 0; id < after_.num_nodes(); ++id) {
      if (poll_.Tick()) return absl::OkStatus();
      const NodeId was = origin_[id];
      if (was == kNoNode || call_of_[was] >= 0) continue;
      const absl::string_view name = after_.name(id);
      const absl::Span<const Tensor> now = after_.inputs(id), then = before_.inputs(was);
      if (now.size() != then.size()) return Wrong("graph", name, "it has other inputs");
      for (size_t i = 0; i < now.size(); ++i) {
        if (poll_.Tick()) return absl::OkStatus();
        if (!Is(now[i], then[i], -1)) {
          return Wrong("graph", name, absl::StrCat("input ", i, " is another"));
        }
      }
      if (after_.node_bytes(id) == before_.node_bytes(was)) continue;
      if (after_.op(id) != before_.op(was) || after_.device(id) != before_.device(was) ||
          AttrsOf(after_.node_bytes(id)) != AttrsOf(before_.node_bytes(was)) ||
          OtherFields(after_.node_bytes(id)) != OtherFields(before_.node_bytes(was))) {
        return Wrong("graph", name, "more than inputs has changed");
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadCalls() {
    // Calls in bodies come behind.
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (poll_.Tick()) return absl::OkStatus();
      if (absl::Status s = ReadCall(static_cast<int>(i)); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  absl::Status CheckCalls() {
    for (NodeId kept : kept_) {
      if (absl::Status s = CheckKept(kept); !s.ok()) return s;
    }
    for (size_t i = 0; i < calls_.size(); ++i) {
      for (auto check : {&InliningVerifier::CheckBody, &InliningVerifier::CheckBorders}) {
        if (absl::Status s = (this->*check)(static_cast<int>(i)); !s.ok()) return s;
      }
    }
    return absl::OkStatus();
  }

  // The node in the place of a call of the graph.
  absl::Status CheckKept(NodeId id) const {
    const Call& call = calls_[call_of_[origin_[id]]];
    const absl::Span<const Tensor> inputs = after_.inputs(id);
    bool good = call.end != kNoNode && inputs.size() == call.results.size() + 1 &&
                after_.op(id) == (call.results.empty() ? "NoOp" : "IdentityN") &&
                after_.device(id) == before_.device(call.node) &&
                inputs.back() == Tensor{call.end, kControl};
    for (size_t i = 0; good && i < call.results.size(); ++i) {
      good = inputs[i] == Tensor{call.results[i], 0};
    }
    return good ? absl::OkStatus() : Wrong("graph", call.name, "it is not the results of the call");
  }

  // Its function, the images of the body's nodes, and the calls in it that were inlined.
  absl::Status ReadCall(int number) {
    if (calls_[number].is_lowered()) return ReadLowered(number);
    Call& call = calls_[number];
    const absl::string_view function = call.branch >= 0 ? absl::string_view(call.function)
                                                        : CalledFunction(call.kind, call.node_def);
    auto body = BodyOfFunction(function);
    if (!body.ok()) return body.status();
    call.body = *body;
    const Graph& graph = *call.body->graph;
    if (static_cast<int>(call.arguments.size()) != call.body->num_arguments ||
        call.results.size() != call.body->results.size()) {
      return Wrong("body", call.name, "its arguments or results are not all there");
    }
    if (call.body->has_attrs) {
      const AttrValues values =
          AttrsOfCall(call.kind, call.branch >= 0 ? absl::string_view(call.attrs) : call.node_def);
      for (NodeId id = 0; id < graph.num_nodes(); ++id) {
        std::string& bound = call.bound.emplace_back();
        if (!BindAttrs(graph.node_bytes(id), values, kMaxMessageBytes, &bound)) {
          return Wrong("body", call.name, "an attribute of its function has no value");
        }
      }
    }
    call.images.assign(graph.num_nodes(), kNoNode);
    for (NodeId id = call.body->num_arguments; id < graph.num_nodes(); ++id) {
      if (poll_.Tick()) return absl::OkStatus();
      if (absl::Status s = FindImage(number, id); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  // The branches of an If or Case, each a call; and the Switches of what they take, which are named
  // by where that comes from.
  absl::Status ReadLowered(int number) {
    const bool is_if = calls_[number].kind == CallKind::kIf;
    const std::vector<absl::string_view> functions =
        LoweredFunctions(calls_[number].kind, calls_[number].node_def);
    const absl::Span<const Tensor> inputs = InputsOf(calls_[number]);
    for (size_t i = 1; i < inputs.size() && !inputs[i].is_control(); ++i) {
      const NodeId id = FindSwitch(calls_[number], inputs[i]);
      if (id == kNoNode) {
        return Wrong("body", calls_[number].name, absl::StrCat("input ", i, " goes nowhere"));
      }
      calls_[number].arguments.push_back(id);
    }
    for (size_t branch = 0; branch < functions.size(); ++branch) {
      const auto found = branches_.find(
          absl::StrCat(calls_[number].name, "/",
                       is_if ? (branch == 0 ? "else" : "then") : absl::StrCat("branch", branch)));
      Call made;
      if (found != branches_.end()) {
        for (absl::string_view name : found->second) {
          if (made.name.empty() && HasBorders(name)) made.name = std::string(name);
        }
      }
      if (made.name.empty()) return Wrong("body", calls_[number].name, "a branch is gone");
      made.caller = number;
      made.kind = CallKind::kBranch;
      made.branch = static_cast<int>(branch);
      made.function = functions[branch];
      made.device = calls_[number].device;
      made.node_def = calls_[number].node_def;
      if (is_if)
        made.attrs = BranchAttrs(made.node_def, branch == 0 ? "else_branch" : "then_branch");
      if (absl::Status s = FindBorders(&made); !s.ok()) return s;
      calls_[number].branches.push_back(static_cast<int>(calls_.size()));
      calls_.push_back(std::move(made));
    }
    return absl::OkStatus();
  }

  // Of a call: as its node has them, in before_ or in the caller's body.
  absl::Span<const Tensor> InputsOf(const Call& call) const {
    return call.caller < 0 ? before_.inputs(call.node)
                           : calls_[call.caller].body->graph->inputs(call.node);
  }

  // The node of after_ that makes a tensor: its border, if it has one. kNoNode: there is none.
  NodeId NodeNow(Tensor then, int caller) const {
    const absl::optional<Tensor> border = BorderOf(then, caller);
    if (border.has_value()) return border->node;
    return caller < 0 ? after_.Find(before_.name(then.node)) : calls_[caller].images[then.node];
  }

  // The first Switch of an If or Case, claimed by nobody, of that tensor.
  NodeId FindSwitch(const Call& call, Tensor input) {
    const absl::string_view op = call.kind == CallKind::kIf ? "Switch" : "_SwitchN";
    const NodeId source = NodeNow(input, call.caller);
    if (source == kNoNode) return kNoNode;
    const auto found = borders_.find(absl::StrCat(call.name, "/", after_.name(source)));
    if (found == borders_.end()) return kNoNode;
    for (NodeId id : found->second) {
      if (claimed_[id] || after_.op(id) != op) continue;
      claimed_[id] = true;
      return id;
    }
    return kNoNode;
  }

  // The attributes of a NameAttrList in an attribute, as a node's.
  static std::string BranchAttrs(absl::string_view node_def, absl::string_view key) {
    std::string attrs;
    const Attrs all = AttrsOf(node_def);
    const auto found = all.find(key);
    if (found == all.end()) return attrs;
    WireReader reader(LastPayload(found->second, attr_value::kFunction));
    while (reader.Next()) {
      if (reader.IsBytes(name_attr_list::kAttr)) {
        AppendBytesField(node_def::kAttr, reader.bytes(), &attrs);
      }
    }
    return attrs;
  }

  // The node of after_ that claims to be that node of the body: `CALL/NODE`, or `CALL/NODE_1`, ...
  // where that was taken. A call without one was inlined.
  absl::Status FindImage(int number, NodeId id) {
    const Graph& graph = *calls_[number].body->graph;
    const CallKind kind = table_->KindOf(graph.op(id));
    const bool may_be_inlined = MayBeInlined(kind);
    const std::string wanted = absl::StrCat(calls_[number].name, "/", graph.name(id));
    std::string name = wanted;
    for (int taken = 1;; ++taken) {
      if (poll_.Tick()) return absl::OkStatus();
      const NodeId found = after_.Find(name);
      if (found != kNoNode && !claimed_[found] && after_.op(found) == graph.op(id)) {
        claimed_[found] = true;
        calls_[number].images[id] = found;
        return absl::OkStatus();
      }
      const bool has_borders = may_be_inlined && (HasBorders(name) || HasLowered(name, kind));
      if (has_borders || (found == kNoNode && !IsBorderTaken(name))) break;
      name = absl::StrCat(wanted, "_", taken);
    }
    if (!may_be_inlined) return Wrong("body", wanted, "it is gone");
    Call nested;
    nested.caller = number;
    nested.node = id;
    nested.name = std::move(name);
    nested.device = DeviceOf(calls_[number], graph.device(id));
    nested.node_def = NodeDefOf(calls_[number], id);
    nested.kind = kind;
    if (absl::Status s = FindBorders(&nested); !s.ok()) return s;
    calls_[number].calls[id] = static_cast<int>(calls_.size());
    calls_.push_back(std::move(nested));
    return absl::OkStatus();
  }

  // Whether there are borders of a call of that name that nobody has claimed, or somebody has.
  bool HasBorders(absl::string_view name) const { return BordersOf(name) == 1; }
  // Likewise for what an If or Case was lowered to.
  bool HasLowered(absl::string_view name, CallKind kind) const {
    if (kind != CallKind::kIf && kind != CallKind::kCase) return false;
    const auto found =
        borders_.find(absl::StrCat(name, kind == CallKind::kIf ? "/switch_pred" : "/branch_index"));
    return found != borders_.end() && !claimed_[found->second[0]];
  }
  bool IsBorderTaken(absl::string_view name) const { return BordersOf(name) == 2; }
  int BordersOf(absl::string_view name) const {
    for (const char* what : {"input", "output", "input_control_node", "output_control_node"}) {
      const auto found = borders_.find(absl::StrCat("Func/", name, "/", what));
      if (found != borders_.end()) return claimed_[found->second[0]] ? 2 : 1;
    }
    return 0;
  }

  static absl::string_view NodeDefOf(const Call& call, NodeId id) {
    return call.bound.empty() ? call.body->graph->node_bytes(id) : call.bound[id];
  }

  absl::StatusOr<const Body*> BodyOfFunction(absl::string_view name) {
    std::unique_ptr<Body>& body = bodies_[name];
    if (body != nullptr) return body.get();
    const int32_t function = table_->Find(name);
    if (function == FunctionTable::kNoFunction ||
        (*table_)[function].kept != v1::KEPT_CALL_REASON_UNSPECIFIED) {
      return Wrong("body", name, "there is no function of that name that may be inlined");
    }
    const absl::string_view function_def = (*table_)[function].function_def;
    FunctionBody text;
    const auto find = [this](absl::string_view callee) {
      const int32_t found = table_->Find(callee);
      return found == FunctionTable::kNoFunction ? absl::string_view()
                                                 : (*table_)[found].function_def;
    };
    auto made = std::make_unique<Body>();
    made->has_attrs = (*table_)[function].has_attrs;
    if (!WriteFunctionBody(function_def, find, stop_, &text)) {
      return Wrong("body", name, "the function cannot be read");
    }
    made->bytes = std::move(text.graph_def);
    made->num_arguments = static_cast<int>(text.arguments.size());
    constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
    v1::Limits limits;
    limits.set_max_graph_bytes(kMax);
    limits.set_max_node_count(kMax);
    limits.set_max_input_count(kMax);
    auto graph = Graph::Parse(made->bytes, limits, stop_);
    if (!graph.ok()) return Wrong("body", name, graph.status().message());
    made->graph = *std::move(graph);
    for (const std::string& spelling : text.results) {
      const std::pair<absl::string_view, absl::string_view> parts =
          absl::StrSplit(spelling, absl::MaxSplits(':', 1));
      Tensor tensor{made->graph->Find(parts.first), 0};
      if (!parts.second.empty() && !absl::SimpleAtoi(parts.second, &tensor.port)) {
        tensor.node = kNoNode;
      }
      if (tensor.node == kNoNode) return Wrong("body", name, "a result is no tensor");
      made->results.push_back(tensor);
    }
    WireReader reader(function_def);
    while (reader.Next()) {
      if (!reader.IsBytes(function_def::kControlReturn)) continue;
      made->control_returns.push_back(
          made->graph->Find(LastPayload(reader.bytes(), map_entry::kValue)));
    }
    std::vector<NodeId>& returns = made->control_returns;
    std::sort(returns.begin(), returns.end());
    returns.erase(std::unique(returns.begin(), returns.end()), returns.end());
    body = std::move(made);
    return body.get();
  }

  // Where a node runs that names `device` in the body of `call`: parts that it leaves open are the
  // call's.
  static DeviceName DeviceOf(const Call& call, absl::string_view device) {
    DeviceName name = ParseDeviceName(device);
    const auto fill = [](std::string* part, const std::string& other) {
      if (part->empty()) *part = other;
    };
    fill(&name.job, call.device.job);
    fill(&name.replica, call.device.replica);
    fill(&name.task, call.device.task);
    fill(&name.type, call.device.type);
    fill(&name.index, call.device.index);
    return call.is_native() ? call.device : name;
  }

  static bool IsDevice(absl::string_view now, const DeviceName& wanted) {
    const DeviceName is = ParseDeviceName(now);
    // Any index of a type may be spelled so.
    const bool same_index = is.index == wanted.index || (wanted.index.empty() && is.index == "*");
    return is.job == wanted.job && is.replica == wanted.replica && is.task == wanted.task &&
           is.type == wanted.type && same_index;
  }

  absl::Status CheckBody(int number) {
    const Call& call = calls_[number];
    if (call.is_lowered()) return absl::OkStatus();
    const Graph& graph = *call.body->graph;
    for (NodeId id = call.body->num_arguments; id < graph.num_nodes(); ++id) {
      if (poll_.Tick()) return absl::OkStatus();
      const NodeId image = call.images[id];
      if (image == kNoNode) continue;
      const absl::string_view name = after_.name(image);
      if (!IsDevice(after_.device(image), DeviceOf(call, graph.device(id)))) {
        return Wrong("body", name, "it has another device");
      }
      const absl::string_view node_def = NodeDefOf(call, id);
      if (!SameAttrs(call, AttrsOf(node_def), AttrsOf(after_.node_bytes(image)), graph.op(id)) ||
          OtherFields(node_def) != OtherFields(after_.node_bytes(image))) {
        return Wrong("body", name, "its attributes are others");
      }
      const absl::Span<const Tensor> now = after_.inputs(image), then = graph.inputs(id);
      // Nothing may run before the call would: neither what has no inputs nor a call, whose body
      // may have such nodes.
      const CallKind kind = table_->KindOf(graph.op(id));
      const bool calls = kind == CallKind::kPartitioned || kind == CallKind::kNative ||
                         graph.op(id) == "SymbolicGradient";
      const bool waits =
          call.start != kNoNode && (then.empty() || (calls && !then.back().is_control()));
      if (now.size() != then.size() + waits ||
          (waits && !(now.back() == Tensor{call.start, kControl}))) {
        return Wrong("waits", name, "it has other inputs");
      }
      for (size_t i = 0; i < then.size(); ++i) {
        if (poll_.Tick()) return absl::OkStatus();
        if (!Is(now[i], then[i], number)) {
          return Wrong("body", name, absl::StrCat("input ", i, " is another"));
        }
      }
    }
    return absl::OkStatus();
  }

  bool SameAttrs(const Call& call, Attrs then, Attrs now, absl::string_view op) const {
    if (const auto colocated = then.find("_class"); colocated != then.end()) {
      const std::vector<std::string> wanted = Colocation(call, colocated->second);
      const auto found = now.find("_class");
      const std::vector<absl::string_view> is =
          found == now.end() ? std::vector<absl::string_view>() : AttrStrings(found->second);
      if (!std::equal(is.begin(), is.end(), wanted.begin(), wanted.end(),
                      [this](absl::string_view name, absl::string_view other) {
                        return name == other || IsHandedOn(name, other);
                      })) {
        return false;
      }
      then.erase("_class");
      now.erase("_class");
    }
    if (const auto frame = then.find("frame_name");
        frame != then.end() && absl::EndsWith(op, "Enter")) {
      const auto found = now.find("frame_name");
      if (found == now.end() ||
          AttrString(found->second) !=
              absl::StrCat(call.name, "/", AttrString(frame->second).value_or(""))) {
        return false;
      }
      then.erase("frame_name");
      now.erase("frame_name");
    }
    return then == now;
  }

  // Whether `border` names an Identity that hands on what the node in `name` makes.
  bool IsHandedOn(absl::string_view name, absl::string_view border) const {
    if (!absl::ConsumePrefix(&name, "loc:@") || !absl::ConsumePrefix(&border, "loc:@")) {
      return false;
    }
    const NodeId node = after_.Find(name), from = after_.Find(border);
    return node != kNoNode && from != kNoNode && IsHandedOn(node, from);
  }
  bool IsHandedOn(NodeId node, NodeId border) const {
    while (border != node && origin_[border] == kNoNode && after_.op(border) == "Identity" &&
           absl::StartsWith(after_.name(border), "Func/")) {
      border = after_.inputs(border)[0].node;
    }
    return border == node;
  }

  std::vector<std::string> Colocation(const Call& call, absl::string_view value) const {
    std::vector<std::string> names;
    for (absl::string_view name : AttrStrings(value)) {
      absl::string_view other = name;
      const NodeId found =
          absl::ConsumePrefix(&other, "loc:@") ? call.body->graph->Find(other) : kNoNode;
      if (found == kNoNode) {
        names.emplace_back(name);
      } else if (found < call.body->num_arguments) {
        names.push_back(absl::StrCat("loc:@", after_.name(call.arguments[found])));
      } else if (call.images[found] != kNoNode) {
        names.push_back(absl::StrCat("loc:@", after_.name(call.images[found])));
      }
    }
    return names;
  }

  absl::Status CheckBorders(int number) {
    const Call& call = calls_[number];
    if (call.is_lowered()) return CheckLowered(number);
    if (call.branch >= 0) return CheckBranch(number);
    const absl::Span<const Tensor> inputs = InputsOf(call);
    const auto first_control =
        std::find_if(inputs.begin(), inputs.end(), [](Tensor t) { return t.is_control(); });
    const size_t num_data = first_control - inputs.begin();
    if (num_data != call.arguments.size()) {
      return Wrong("body", call.name, "it has other arguments");
    }
    const bool starts = call.start != kNoNode;
    for (size_t i = 0; i < num_data; ++i) {
      const NodeId id = call.arguments[i];
      const absl::Span<const Tensor> now = after_.inputs(id);
      const bool good = after_.op(id) == "Identity" && now.size() == 1u + starts &&
                        Is(now[0], inputs[i], call.caller) &&
                        (!starts || now[1] == Tensor{call.start, kControl});
      if (!good) return Wrong("body", after_.name(id), "it is not the argument");
    }
    if (absl::Status s = CheckResults(number); !s.ok()) return s;
    if (absl::Status s = CheckStart(call, inputs, num_data); !s.ok()) return s;
    return CheckEnd(call, number);
  }

  absl::Status CheckResults(int number) const {
    const Call& call = calls_[number];
    for (size_t i = 0; i < call.results.size(); ++i) {
      const NodeId id = call.results[i];
      const absl::Span<const Tensor> now = after_.inputs(id);
      if (after_.op(id) != "Identity" || now.size() != 1 ||
          !Is(now[0], call.body->results[i], number)) {
        return Wrong("body", after_.name(id), "it is not the result");
      }
    }
    return absl::OkStatus();
  }

  // A branch takes its side of the Switches, and waits for its pivot.
  absl::Status CheckBranch(int number) {
    const Call& call = calls_[number];
    const Call& whole = calls_[call.caller];
    if (call.arguments.size() != whole.arguments.size() ||
        call.results.size() != whole.results.size()) {
      return Wrong("body", call.name, "its arguments or results are not those of the node");
    }
    const absl::Span<const Tensor> waits =
        call.start == kNoNode ? absl::Span<const Tensor>() : after_.inputs(call.start);
    if (waits.empty() || after_.op(call.start) != "NoOp" ||
        !(waits[0] == Tensor{whole.pivots[call.branch], kControl})) {
      return Wrong("waits", call.name, "it does not wait for its side to be taken");
    }
    // More only for what is there in every iteration of a loop.
    for (size_t i = 1; i < waits.size(); ++i) {
      const bool known = std::find(whole.arguments.begin(), whole.arguments.end(), waits[i].node) !=
                         whole.arguments.end();
      if (!known || !waits[i].is_control()) {
        return Wrong("waits", call.name, "it waits for more than its side");
      }
    }
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      const NodeId id = call.arguments[i];
      const absl::Span<const Tensor> now = after_.inputs(id);
      const bool good = after_.op(id) == "Identity" && now.size() == 2 &&
                        now[0] == Tensor{whole.arguments[i], call.branch} &&
                        now[1] == Tensor{call.start, kControl};
      if (!good) return Wrong("body", after_.name(id), "it is not the argument");
    }
    if (absl::Status s = CheckResults(number); !s.ok()) return s;
    if (call.end == kNoNode) return Wrong("body", call.name, "it has no end");
    return CheckEnd(call, number);
  }

  // Whether `now` is result `port` of a call, or what that hands on.
  bool IsResult(Tensor now, int number, int32_t port) const {
    if (port >= static_cast<int32_t>(calls_[number].results.size())) return false;
    const NodeId border = calls_[number].results[port];
    if (now == Tensor{border, 0}) return true;
    const absl::Span<const Tensor> reads = after_.inputs(border);
    return !now.is_control() && reads.size() == 1 && !GetOutputType(after_, reads[0]).is_ref &&
           Is(now, calls_[number].body->results[port], number);
  }

  // An If or Case: Switches of all that it takes, by its predicate; Merges of what its branches
  // give; and its end, which is there when a branch is.
  absl::Status CheckLowered(int number) {
    const Call& call = calls_[number];
    const bool is_if = call.kind == CallKind::kIf;
    const auto count = static_cast<int32_t>(call.branches.size());
    const absl::Span<const Tensor> inputs = InputsOf(call);
    const size_t num_data =
        std::find_if(inputs.begin(), inputs.end(), [](Tensor t) { return t.is_control(); }) -
        inputs.begin();
    const Attrs attrs = AttrsOf(call.node_def);
    const std::vector<int32_t> takes = TypesOf(attrs, "Tin"), gives = TypesOf(attrs, "Tout");
    const auto lowered = attrs.find("_lower_using_switch_merge");
    if (lowered == attrs.end() || !AttrBool(lowered->second).value_or(false) || num_data == 0 ||
        takes.size() + 1 != num_data || call.arguments.size() + 1 != num_data ||
        gives.size() != call.results.size() || count == 0) {
      return Wrong("body", call.name, "it is not a node that is lowered so");
    }
    const int32_t index_type = is_if ? kDtBool : kDtInt32;
    // Type, number of inputs or outputs, and nothing else; and where it runs.
    const auto has = [&](NodeId id, int32_t type, absl::string_view number_of) {
      const Attrs now = AttrsOf(after_.node_bytes(id));
      const auto of_type = now.find("T");
      if (of_type == now.end() || AttrType(of_type->second) != type) return false;
      const auto of_number = now.find(number_of);
      return OtherFields(after_.node_bytes(id)).empty() &&
             now.size() == 1u + !number_of.empty() + now.count("_class") &&
             (number_of.empty() || (of_number != now.end() && AttrInt(of_number->second) == count));
    };
    const auto has_all = [&](NodeId id, int32_t type, absl::string_view number_of) {
      return has(id, type, number_of) && AttrsOf(after_.node_bytes(id)).count("_class") == 0 &&
             IsDevice(after_.device(id), call.device);
    };
    const absl::string_view outputs = is_if ? "" : "num_outs";
    const absl::string_view choose = is_if ? "Switch" : "_SwitchN";
    // The predicate, and what the node waited for.
    const absl::Span<const Tensor> chooses = after_.inputs(call.chooser);
    if (chooses.size() < 2 || !Is(chooses[0], inputs[0], call.caller) ||
        !(chooses[1] == chooses[0]) || !has_all(call.chooser, index_type, outputs)) {
      return Wrong("body", after_.name(call.chooser), "it does not choose as the node does");
    }
    for (int32_t branch = 0; branch < count; ++branch) {
      const absl::Span<const Tensor> now = after_.inputs(call.pivots[branch]);
      if (now.size() != 1 || !(now[0] == Tensor{call.chooser, branch}) ||
          !has_all(call.pivots[branch], index_type, "")) {
        return Wrong("body", after_.name(call.pivots[branch]), "it is not its side");
      }
    }
    for (size_t i = 1; i < num_data; ++i) {
      const NodeId id = call.arguments[i - 1];
      const absl::Span<const Tensor> now = after_.inputs(id);
      if (now.size() != 2 || after_.op(id) != choose || !Is(now[0], inputs[i], call.caller) ||
          !Is(now[1], inputs[0], call.caller) || !has(id, takes[i - 1], outputs) ||
          !IsBeside(id, inputs[i], call.caller)) {
        return Wrong("body", after_.name(id), "it does not switch the input");
      }
    }
    if (absl::Status s = CheckChooserWaits(call, inputs, num_data); !s.ok()) return s;
    const auto side = [&](int32_t i) { return call.branches[is_if ? count - 1 - i : i]; };
    for (size_t port = 0; port < call.results.size(); ++port) {
      const NodeId id = call.results[port];
      const absl::Span<const Tensor> now = after_.inputs(id);
      bool good = static_cast<int32_t>(now.size()) == count && has_all(id, gives[port], "N");
      for (int32_t i = 0; good && i < count; ++i) {
        good = IsResult(now[i], side(i), static_cast<int32_t>(port));
      }
      if (!good) return Wrong("body", after_.name(id), "it is not the result of the branches");
    }
    const absl::Span<const Tensor> ends = after_.inputs(call.end);
    bool good =
        static_cast<int32_t>(ends.size()) == 2 * count && has_all(call.end, index_type, "N");
    for (int32_t i = 0; good && i < count; ++i) {
      good = ends[i] == Tensor{call.pivots[is_if ? count - 1 - i : i], 0} &&
             ends[count + i] == Tensor{calls_[side(i)].end, kControl};
    }
    return good ? absl::OkStatus()
                : Wrong("body", after_.name(call.end), "it is not the end of the branches");
  }

  // Whether a Switch runs where `input`, which it reads first, is made.
  bool IsBeside(NodeId id, Tensor input, int caller) const {
    const Attrs attrs = AttrsOf(after_.node_bytes(id));
    const auto found = attrs.find("_class");
    const std::string beside = absl::StrCat("loc:@", after_.name(after_.inputs(id)[0].node));
    const NodeId source = NodeNow(input, caller);
    return found != attrs.end() && source != kNoNode &&
           AttrStrings(found->second) == std::vector<absl::string_view>{beside} &&
           after_.device(id) == after_.device(source);
  }

  // Behind the predicate: what the node waited for, and no more than its inputs besides.
  absl::Status CheckChooserWaits(const Call& call, absl::Span<const Tensor> inputs,
                                 size_t num_data) const {
    std::vector<Tensor> sources;
    for (NodeId id : call.arguments) sources.push_back(after_.inputs(id)[0]);
    sources.push_back(after_.inputs(call.chooser)[0]);
    return CheckWaits(call, after_.inputs(call.chooser).subspan(2), inputs.subspan(num_data),
                      sources);
  }

  static std::vector<int32_t> TypesOf(const Attrs& attrs, absl::string_view key) {
    std::vector<int32_t> types;
    const auto found = attrs.find(key);
    if (found == attrs.end()) return types;
    ForEachAttrType(found->second, [&types](DataType type) {
      types.push_back(type);
      return true;
    });
    return types;
  }

  // Waits for all that the call waited for. More only for its own inputs, or the frame that it is
  // in.
  absl::Status CheckStart(const Call& call, absl::Span<const Tensor> inputs,
                          size_t num_data) const {
    std::vector<Tensor> sources;
    for (NodeId argument : call.arguments) sources.push_back(after_.inputs(argument)[0]);
    if (call.start == kNoNode) {
      return inputs.size() == num_data && !Inherits(call, inputs.size() - num_data)
                 ? absl::OkStatus()
                 : Wrong("waits", call.name, "it waits no more");
    }
    if (after_.op(call.start) != "NoOp") {
      return Wrong("waits", after_.name(call.start), "it is not what the call waits for");
    }
    return CheckWaits(call, after_.inputs(call.start), inputs.subspan(num_data), sources);
  }

  // A call in a body gets the control node of its caller if it waits for nothing else.
  bool Inherits(const Call& call, size_t num_controls) const {
    return !call.is_lowered() && num_controls == 0 && call.caller >= 0 &&
           calls_[call.caller].start != kNoNode;
  }

  // Whether `now` are `controls` of a call, which takes its data from `sources`; and more only for
  // these, or the frame that it is in.
  absl::Status CheckWaits(const Call& call, absl::Span<const Tensor> now,
                          absl::Span<const Tensor> controls,
                          const std::vector<Tensor>& sources) const {
    const absl::string_view name = after_.name(call.start);
    const bool inherits = Inherits(call, controls.size());
    if (now.size() < controls.size() + inherits) {
      return Wrong("waits", name, "it is not what the call waits for");
    }
    size_t i = 0;
    for (; i < controls.size(); ++i) {
      if (!Is(now[i], controls[i], call.caller)) {
        return Wrong("waits", name, "it waits for another node than the call");
      }
    }
    if (inherits && !(now[i++] == Tensor{calls_[call.caller].start, kControl})) {
      return Wrong("waits", name, "it does not wait for what its caller waits for");
    }
    // What comes in from outside of a loop is there in every iteration; and a resource may be in
    // use by what makes the other inputs.
    bool may_wait_for_more = controls.empty() && !inherits;
    const absl::Span<const Tensor> more = now.subspan(i);
    for (Tensor source : sources) {
      may_wait_for_more |= after_.op_info(source.node).control_flow == ControlFlow::kEnter;
      // What takes a resource has to wait for all that it takes.
      const bool waits = std::any_of(more.begin(), more.end(), [&](Tensor t) {
        return source.node == t.node || IsHandedOn(source.node, t.node);
      });
      if (!waits && controls.empty() && !inherits && after_.op(source.node) != "Placeholder" &&
          std::any_of(sources.begin(), sources.end(),
                      [this](Tensor t) { return GetOutputType(after_, t).dtype == kDtResource; })) {
        return Wrong("waits", name, "it does not wait for an input of the call");
      }
    }
    for (; i < now.size(); ++i) {
      if (!may_wait_for_more) return Wrong("waits", name, "it waits for more than the call");
      bool known = after_.op_info(now[i].node).control_flow == ControlFlow::kEnter ||
                   after_.op_info(now[i].node).control_flow == ControlFlow::kMerge;
      for (Tensor source : sources) {
        known = known || source.node == now[i].node || IsHandedOn(source.node, now[i].node);
      }
      if (!known || !now[i].is_control()) {
        return Wrong("waits", name, "it waits for a node that is no input of the call");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckEnd(const Call& call, int number) const {
    if (call.end == kNoNode) return absl::OkStatus();
    const absl::Span<const Tensor> now = after_.inputs(call.end);
    bool good = after_.op(call.end) == "NoOp";
    const size_t count = call.is_native() ? call.results.size() : call.body->control_returns.size();
    if (count == 0 && call.start != kNoNode) {
      good = good && now.size() == 1 && now[0] == Tensor{call.start, kControl};
    } else {
      good = good && now.size() == count;
      for (size_t i = 0; good && i < count; ++i) {
        good = call.is_native() ? now[i] == Tensor{call.results[i], kControl}
                                : Is(now[i], {call.body->control_returns[i], kControl}, number);
      }
    }
    return good ? absl::OkStatus()
                : Wrong("body", after_.name(call.end), "it is not the end of the call");
  }

  // Whatever claims to come from a call was found to.
  absl::Status CheckRest() {
    for (NodeId id = 0; id < after_.num_nodes(); ++id) {
      if (poll_.Tick()) return absl::OkStatus();
      if (!claimed_[id]) return Wrong("body", after_.name(id), "it comes from no call");
    }
    auto topology = Topology::Build(before_, stop_);
    if (!topology.ok()) return absl::OkStatus();  // It had a cycle: the analysis says so.
    topology = Topology::Build(after_, stop_);
    return topology.ok() ? absl::OkStatus() : Wrong("acyclic", "?", topology.status().message());
  }

  const Graph& before_;
  const Graph& after_;
  const StopToken& stop_;
  StopPoller poll_;
  absl::optional<FunctionTable> table_;
  std::vector<NodeId> origin_;  // Per node of after_: its id in before_; kNoNode: from a call.
  std::vector<bool> claimed_;   // Per node of after_: what it is is known.
  std::vector<int> call_of_;    // Per node of before_: its index in calls_, or -1.
  std::vector<NodeId> kept_;    // Nodes of after_ in the place of calls.
  // By `Func/CALL/WHAT` or `NODE/WHAT`: nodes of that name, in order.
  absl::flat_hash_map<std::string, std::vector<NodeId>> borders_;
  // By `NODE/BRANCH`: the names of such branches.
  absl::flat_hash_map<std::string, std::vector<absl::string_view>> branches_;
  absl::flat_hash_map<std::string, std::unique_ptr<Body>> bodies_;  // By function.
  std::deque<Call> calls_;
};

}  // namespace

absl::Status VerifyInlining(const Graph& before, const Graph& after, const StopToken& stop) {
  return InliningVerifier(before, after, stop).Run();
}

}  // namespace spillway::core
