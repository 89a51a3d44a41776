#include "rewrite_core/apply/inlining_verifier.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "rewrite_core/analysis/shapes/function_body.h"
#include "rewrite_core/apply/inlining_check.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/attr_entry.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/no_limits.h"
#include "rewrite_core/graph/op_outputs.h"
#include "rewrite_core/graph/strip.h"
#include "rewrite_core/graph/topology.h"
#include "rewrite_core/graph/undo.h"
#include "rewrite_core/inline/attr_binding.h"

namespace spillway::core {

absl::Status InliningCheck::Wrong(absl::string_view check, absl::string_view node,
                                  absl::string_view what) {
  return Error(absl::StatusCode::kInternal, v1::ERROR_REASON_VERIFY_FAILED,
               absl::StrCat("the verifier refused the inlined graph (check ", check, ") at node ",
                            Quoted(node), ": ", what,
                            "; this is a bug of Spillway, please report it with the graph, and "
                            "give inline_calls = NEVER"),
               {{"check", check}, {"node", node}});
}

InliningCheck::Attrs InliningCheck::AttrsOf(absl::string_view node_def) {
  Attrs attrs;
  WireReader reader(node_def);
  while (reader.Next()) {
    if (!reader.IsBytes(node_def::kAttr)) continue;
    const AttrEntry entry = ReadAttrEntry(reader.bytes());
    if (entry.key != kUndoAttr) attrs[entry.key] = entry.value;
  }
  return attrs;
}

std::string InliningCheck::OtherFields(absl::string_view node_def) {
  std::string other;
  WireReader reader(node_def);
  while (reader.Next()) {
    if (reader.field() > node_def::kAttr) absl::StrAppend(&other, reader.whole());
  }
  return other;
}

absl::Status InliningCheck::Run() {
  for (auto step :
       {&InliningCheck::CheckUndo, &InliningCheck::ReadLibrary, &InliningCheck::SortNodes,
        &InliningCheck::ReadCalls, &InliningCheck::FindGroups, &InliningCheck::CheckGraph,
        &InliningCheck::CheckCalls, &InliningCheck::CheckRest}) {
    absl::Status status = (this->*step)();
    if (absl::Status s = stop_.status("verify"); !s.ok()) return s;
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status InliningCheck::CheckUndo() {
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

absl::Status InliningCheck::ReadLibrary() {
  auto table = FunctionTable::Read(before_.bytes(), stop_);
  if (!table.ok()) return table.status();
  table_ = *std::move(table);
  return absl::OkStatus();
}

absl::Status InliningCheck::SortNodes() {
  origin_.assign(after_.num_nodes(), kNoNode);
  claimed_.assign(after_.num_nodes(), false);
  call_of_.assign(before_.num_nodes(), -1);
  for (NodeId id(0); id < after_.num_nodes(); ++id) {
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
    made.device = std::string(before_.device(call));
    made.node_def = before_.node_bytes(call);
    made.kind = kind;
  }
  for (Call& call : calls_) {
    if (poll_.Tick()) return absl::OkStatus();
    if (absl::Status s = FindBorders(&call); !s.ok()) return s;
  }
  return absl::OkStatus();
}

bool InliningCheck::MayBeInlined(CallKind kind) {
  return kind == CallKind::kPartitioned || kind == CallKind::kNative || kind == CallKind::kIf ||
         kind == CallKind::kCase || kind == CallKind::kWhile;
}

void InliningCheck::NoteBranch(absl::string_view name) {
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

std::vector<NodeId> InliningCheck::TakeNodes(absl::string_view name, absl::string_view what,
                                             absl::string_view op) {
  std::vector<NodeId> nodes;
  const auto found = borders_.find(absl::StrCat(name, "/", what));
  if (found == borders_.end()) return nodes;
  for (NodeId id : found->second) {
    if (poll_.Tick()) break;
    if (claimed_[id] || after_.op(id) != op) continue;
    claimed_[id] = true;
    nodes.push_back(id);
  }
  return nodes;
}

absl::Status InliningCheck::FindBorders(Call* call) {
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
      if (poll_.Tick()) return absl::OkStatus();
      if (claimed_[id]) return Wrong("body", after_.name(id), "it is of two calls");
      claimed_[id] = true;
    }
  }
  return absl::OkStatus();
}

absl::Status InliningCheck::ReadCalls() {
  // Calls in bodies are appended.
  for (size_t i = 0; i < calls_.size(); ++i) {
    if (poll_.Tick()) return absl::OkStatus();
    if (absl::Status s = ReadCall(static_cast<int>(i)); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status InliningCheck::ReadCall(int number) {
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
    for (NodeId id(0); id < graph.num_nodes(); ++id) {
      if (poll_.Tick()) return absl::OkStatus();
      std::string& bound = call.bound.emplace_back();
      if (!BindAttrs(graph.node_bytes(id), values, kMaxMessageBytes, &bound)) {
        return Wrong("body", call.name, "an attribute of its function has no value");
      }
    }
  }
  call.images.assign(graph.num_nodes(), kNoNode);
  for (NodeId id(call.body->num_arguments); id < graph.num_nodes(); ++id) {
    if (poll_.Tick()) return absl::OkStatus();
    if (absl::Status s = FindImage(number, id); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status InliningCheck::FindImage(int number, NodeId id) {
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

bool InliningCheck::HasLowered(absl::string_view name, CallKind kind) const {
  absl::string_view what;
  if (kind == CallKind::kIf) what = "/switch_pred";
  if (kind == CallKind::kCase) what = "/branch_index";
  if (kind == CallKind::kWhile) what = "/LoopCond";
  if (what.empty()) return false;
  const auto found = borders_.find(absl::StrCat(name, what));
  return found != borders_.end() && !claimed_[found->second[0]];
}

int InliningCheck::BordersOf(absl::string_view name) const {
  for (const char* what : {"input", "output", "input_control_node", "output_control_node"}) {
    const auto found = borders_.find(absl::StrCat("Func/", name, "/", what));
    if (found != borders_.end()) return claimed_[found->second[0]] ? 2 : 1;
  }
  return 0;
}

absl::string_view InliningCheck::NodeDefOf(const Call& call, NodeId id) {
  return call.bound.empty() ? call.body->graph->node_bytes(id) : call.bound[id];
}

absl::StatusOr<const InliningCheck::Body*> InliningCheck::BodyOfFunction(absl::string_view name) {
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
  if (!WriteFunctionBody(function_def, find, stop_, &text, &function_results_)) {
    return Wrong("body", name, "the function cannot be read");
  }
  made->bytes = std::move(text.graph_def);
  made->num_arguments = static_cast<int>(text.arguments.size());
  auto graph = Graph::Parse(made->bytes, NoLimits(), stop_);
  if (!graph.ok()) return Wrong("body", name, graph.status().message());
  made->graph = *std::move(graph);
  for (const std::string& spelling : text.results) {
    if (poll_.Tick()) return stop_.status("verify");
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
    if (poll_.Tick()) return stop_.status("verify");
    if (!reader.IsBytes(function_def::kControlReturn)) continue;
    made->control_returns.push_back(
        made->graph->Find(LastPayload(reader.bytes(), map_entry::kValue)));
  }
  std::vector<NodeId>& returns = made->control_returns;
  if (!PolledSort(returns.begin(), returns.end(), std::less<>(), &poll_)) {
    return stop_.status("verify");
  }
  returns.erase(std::unique(returns.begin(), returns.end()), returns.end());
  body = std::move(made);
  return body.get();
}

absl::Span<const Tensor> InliningCheck::InputsOf(const Call& call) const {
  return call.caller < 0 ? before_.inputs(call.node)
                         : calls_[call.caller].body->graph->inputs(call.node);
}

NodeId InliningCheck::NodeNow(Tensor then, int caller) const {
  SkipLoops(&then, caller);
  const absl::optional<Tensor> border = BorderOf(then, caller);
  if (border.has_value()) return border->node;
  return caller < 0 ? after_.Find(before_.name(then.node)) : calls_[caller].images[then.node];
}

bool InliningCheck::Is(Tensor now, Tensor then, int caller) const {
  if (now.is_control() != then.is_control()) return false;
  std::vector<std::tuple<int, NodeId, int32_t>> passed;
  bool same = false;
  while (true) {
    if (poll_.Tick()) return false;
    SkipLoops(&then, caller);
    const absl::optional<Tensor> border = BorderOf(then, caller);
    if (!border.has_value()) {
      const NodeId node = caller < 0 ? then.node : calls_[caller].images[then.node];
      same = (caller < 0 ? origin_[now.node] : now.node) == node && now.port == then.port;
      break;
    }
    if (border->node == kNoNode) return false;
    const auto known = known_.find({caller, then.node, then.port});
    same = now == *border || (known != known_.end() && known->second == now);
    if (same) break;
    passed.emplace_back(caller, then.node, then.port);
    // The Identity must not wait for anything, nor move the tensor.
    const absl::Span<const Tensor> reads = after_.inputs(border->node);
    if (now.is_control() || reads.size() != 1 || after_.op(border->node) != "Identity") {
      return false;
    }
    if (!FollowBorder(&then, &caller)) return false;
    if (GetOutputType(after_, reads[0]).is_ref) return false;
  }
  if (same) {
    for (const auto& tensor : passed) known_.insert_or_assign(tensor, now);
  }
  return same;
}

const InliningCheck::Call* InliningCheck::CallAt(Tensor then, int caller) const {
  if (caller < 0) return call_of_[then.node] < 0 ? nullptr : &calls_[call_of_[then.node]];
  const auto nested = calls_[caller].calls.find(then.node);
  return nested == calls_[caller].calls.end() ? nullptr : &calls_[nested->second];
}

void InliningCheck::SkipLoops(Tensor* then, int caller) const {
  std::vector<std::pair<const Call*, int32_t>> skipped;
  // With a cycle in the graph this may not end.
  while (skipped.size() <= calls_.size() && !then->is_control() && !poll_.Tick()) {
    const Call* loop = CallAt(*then, caller);
    if (loop == nullptr || !loop->is_loop()) break;
    const auto port = static_cast<size_t>(then->port);
    if (port >= loop->results.size() || loop->results[port] != kNoNode) break;
    skipped.emplace_back(loop, then->port);
    const auto known = before_loops_.find(skipped.back());
    *then = known != before_loops_.end() ? known->second : InputsOf(*loop)[port];
    if (known != before_loops_.end()) break;
  }
  for (const auto& result : skipped) before_loops_[result] = *then;
}

absl::optional<Tensor> InliningCheck::BorderOf(Tensor then, int caller) const {
  if (caller >= 0 && then.node < calls_[caller].body->num_arguments) {
    return Tensor{calls_[caller].arguments[then.node], then.port};
  }
  const Call* call = CallAt(then, caller);
  if (call == nullptr) return absl::nullopt;
  if (then.is_control()) return Tensor{call->end, kControl};
  if (then.port >= static_cast<int32_t>(call->results.size())) return Tensor{kNoNode, 0};
  return Tensor{call->results[then.port], 0};
}

bool InliningCheck::FollowBorder(Tensor* then, int* caller) const {
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

absl::Status InliningCheck::CheckGraph() {
  for (NodeId id(0); id < after_.num_nodes(); ++id) {
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

absl::Status InliningCheck::CheckCalls() {
  for (NodeId kept : kept_) {
    if (poll_.Tick()) return absl::OkStatus();
    if (absl::Status s = CheckKept(kept); !s.ok()) return s;
  }
  for (size_t i = 0; i < calls_.size(); ++i) {
    if (poll_.Tick()) return absl::OkStatus();
    for (auto check : {&InliningCheck::CheckBody, &InliningCheck::CheckBorders}) {
      if (absl::Status s = (this->*check)(static_cast<int>(i)); !s.ok()) return s;
    }
  }
  return absl::OkStatus();
}

absl::Status InliningCheck::CheckKept(NodeId id) const {
  const Call& call = calls_[call_of_[origin_[id]]];
  const absl::Span<const Tensor> inputs = after_.inputs(id);
  bool good = call.end != kNoNode && inputs.size() == call.results.size() + 1 &&
              after_.op(id) == (call.results.empty() ? "NoOp" : "IdentityN") &&
              after_.device(id) == before_.device(call.node) &&
              inputs.back() == Tensor{call.end, kControl};
  for (size_t i = 0; good && i < call.results.size(); ++i) {
    if (poll_.Tick()) return absl::OkStatus();
    good = call.results[i] == kNoNode ? Is(inputs[i], before_.inputs(call.node)[i], -1)
                                      : inputs[i] == Tensor{call.results[i], 0};
  }
  return good ? absl::OkStatus() : Wrong("graph", call.name, "it is not the results of the call");
}

absl::Status InliningCheck::CheckRest() {
  for (NodeId id(0); id < after_.num_nodes(); ++id) {
    if (poll_.Tick()) return absl::OkStatus();
    if (!claimed_[id]) return Wrong("body", after_.name(id), "it comes from no call");
  }
  auto topology = Topology::Build(before_, stop_);
  if (!topology.ok()) return absl::OkStatus();  // It had a cycle, which the analysis reports.
  topology = Topology::Build(after_, stop_);
  return topology.ok() ? absl::OkStatus() : Wrong("acyclic", "?", topology.status().message());
}

absl::Status VerifyInlining(const Graph& before, const Graph& after, const StopToken& stop) {
  return InliningCheck(before, after, stop).Run();
}

}  // namespace spillway::core
