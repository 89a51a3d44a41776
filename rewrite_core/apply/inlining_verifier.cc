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
    bool is_native = false;
    std::vector<NodeId> arguments, results;  // The Identities, in after_.
    NodeId start = kNoNode, end = kNoNode;   // The control nodes.
    std::vector<NodeId> images;              // Per node of the body; kNoNode: an inlined call.
    absl::flat_hash_map<NodeId, int> calls;  // Per such node: its index in calls_.
    std::deque<std::string> bound;           // Of a function with attributes: the bodies' nodes.
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
        const absl::string_view name = after_.name(id);
        const size_t slash = name.rfind("/_");
        if (slash != absl::string_view::npos && absl::StartsWith(name, "Func/")) {
          borders_[name.substr(0, slash)].push_back(id);
        }
        continue;
      }
      origin_[id] = before_.Find(after_.name(id));
      if (origin_[id] == kNoNode) return Wrong("graph", after_.name(id), "it is a new node");
      claimed_[id] = true;
      if (!IsInlinedCall(after_, id)) continue;
      const NodeId call = origin_[id];
      const CallKind kind = table_->KindOf(before_.op(call));
      if (kind != CallKind::kPartitioned && kind != CallKind::kNative) {
        return Wrong("graph", after_.name(id), "it was no call");
      }
      call_of_[call] = static_cast<int>(calls_.size());
      kept_.push_back(id);
      Call& made = calls_.emplace_back();
      made.node = call;
      made.name = std::string(before_.name(call));
      made.device = ParseDeviceName(before_.device(call));
      made.node_def = before_.node_bytes(call);
      made.is_native = kind == CallKind::kNative;
    }
    for (Call& call : calls_) {
      if (absl::Status s = FindBorders(&call); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  // The nodes that claim to be a call's borders.
  absl::Status FindBorders(Call* call) {
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

  // Whether `now` in after_ is what `then` is, a tensor of before_ (`caller` -1) or of a body: the
  // tensor itself, or what Identities at the borders hand on, one behind the other.
  bool Is(Tensor now, Tensor then, int caller) const {
    if (now.is_control() != then.is_control()) return false;
    while (true) {
      const absl::optional<Tensor> border = BorderOf(then, caller);
      if (!border.has_value()) break;
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
    Call& call = calls_[number];
    const absl::string_view function =
        CalledFunction(call.is_native ? CallKind::kNative : CallKind::kPartitioned, call.node_def);
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
          AttrsOfCall(call.is_native ? CallKind::kNative : CallKind::kPartitioned, call.node_def);
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

  // The node of after_ that claims to be that node of the body: `CALL/NODE`, or `CALL/NODE_1`, ...
  // where that was taken. A call without one was inlined.
  absl::Status FindImage(int number, NodeId id) {
    const Graph& graph = *calls_[number].body->graph;
    const CallKind kind = table_->KindOf(graph.op(id));
    const bool may_be_inlined = kind == CallKind::kPartitioned || kind == CallKind::kNative;
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
      const bool has_borders = may_be_inlined && HasBorders(name);
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
    nested.is_native = kind == CallKind::kNative;
    if (absl::Status s = FindBorders(&nested); !s.ok()) return s;
    calls_[number].calls[id] = static_cast<int>(calls_.size());
    calls_.push_back(std::move(nested));
    return absl::OkStatus();
  }

  // Whether there are borders of a call of that name that nobody has claimed, or somebody has.
  bool HasBorders(absl::string_view name) const { return BordersOf(name) == 1; }
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
    if (!WriteFunctionBody(function_def, find, &text)) {
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
    return call.is_native ? call.device : name;
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
    const absl::Span<const Tensor> inputs =
        call.caller < 0 ? before_.inputs(call.node)
                        : calls_[call.caller].body->graph->inputs(call.node);
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
    for (size_t i = 0; i < call.results.size(); ++i) {
      const NodeId id = call.results[i];
      const absl::Span<const Tensor> now = after_.inputs(id);
      if (after_.op(id) != "Identity" || now.size() != 1 ||
          !Is(now[0], call.body->results[i], number)) {
        return Wrong("body", after_.name(id), "it is not the result");
      }
    }
    if (absl::Status s = CheckStart(call, inputs, num_data); !s.ok()) return s;
    return CheckEnd(call, number);
  }

  // Waits for all that the call waited for. More only for its own inputs, or the frame that it is
  // in.
  absl::Status CheckStart(const Call& call, absl::Span<const Tensor> inputs,
                          size_t num_data) const {
    std::vector<Tensor> controls(inputs.begin() + num_data, inputs.end());
    // A call in a body gets the control node of its caller if it waits for nothing else.
    const NodeId callers = call.caller < 0 ? kNoNode : calls_[call.caller].start;
    const bool inherits = controls.empty() && callers != kNoNode;
    if (call.start == kNoNode) {
      return controls.empty() && !inherits ? absl::OkStatus()
                                           : Wrong("waits", call.name, "it waits no more");
    }
    const absl::string_view name = after_.name(call.start);
    const absl::Span<const Tensor> now = after_.inputs(call.start);
    if (after_.op(call.start) != "NoOp" || now.size() < controls.size() + inherits) {
      return Wrong("waits", name, "it is not what the call waits for");
    }
    size_t i = 0;
    for (; i < controls.size(); ++i) {
      if (!Is(now[i], controls[i], call.caller)) {
        return Wrong("waits", name, "it waits for another node than the call");
      }
    }
    if (inherits && !(now[i++] == Tensor{callers, kControl})) {
      return Wrong("waits", name, "it does not wait for what its caller waits for");
    }
    // What comes in from outside of a loop is there in every iteration; and a resource may be in
    // use by what makes the other inputs.
    bool may_wait_for_more = controls.empty() && !inherits;
    for (NodeId argument : call.arguments) {
      const NodeId source = after_.inputs(argument)[0].node;
      may_wait_for_more |= after_.op_info(source).control_flow == ControlFlow::kEnter;
    }
    for (; i < now.size(); ++i) {
      if (!may_wait_for_more) return Wrong("waits", name, "it waits for more than the call");
      bool known = after_.op_info(now[i].node).control_flow == ControlFlow::kEnter ||
                   after_.op_info(now[i].node).control_flow == ControlFlow::kMerge;
      for (NodeId argument : call.arguments) {
        const NodeId source = after_.inputs(argument)[0].node;
        known = known || source == now[i].node || IsHandedOn(source, now[i].node);
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
    const size_t count = call.is_native ? call.results.size() : call.body->control_returns.size();
    if (count == 0 && call.start != kNoNode) {
      good = good && now.size() == 1 && now[0] == Tensor{call.start, kControl};
    } else {
      good = good && now.size() == count;
      for (size_t i = 0; good && i < count; ++i) {
        good = call.is_native ? now[i] == Tensor{call.results[i], kControl}
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
  // By `Func/CALL/WHAT`: nodes of that name, in order.
  absl::flat_hash_map<std::string, std::vector<NodeId>> borders_;
  absl::flat_hash_map<std::string, std::unique_ptr<Body>> bodies_;  // By function.
  std::deque<Call> calls_;
};

}  // namespace

absl::Status VerifyInlining(const Graph& before, const Graph& after, const StopToken& stop) {
  return InliningVerifier(before, after, stop).Run();
}

}  // namespace spillway::core
