// InliningCheck: calls, and the branches of lowered nodes.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "rewrite_core/analysis/machine/device_name.h"
#include "rewrite_core/apply/inlining_check.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/op_outputs.h"

namespace spillway::core {

absl::Status InliningCheck::CheckBody(int number) {
  const Call& call = calls_[number];
  if (call.is_lowered()) return absl::OkStatus();
  const Graph& graph = *call.body->graph;
  for (NodeId id(call.body->num_arguments); id < graph.num_nodes(); ++id) {
    if (poll_.Tick()) return absl::OkStatus();
    const NodeId image = call.images[id];
    if (image == kNoNode) continue;
    const absl::string_view name = after_.name(image);
    if (after_.device(image) != DeviceOf(call, graph.device(id))) {
      return Wrong("body", name, "it has another device");
    }
    const absl::string_view node_def = NodeDefOf(call, id);
    if (!SameAttrs(call, image, AttrsOf(node_def)) ||
        OtherFields(node_def) != OtherFields(after_.node_bytes(image))) {
      return Wrong("body", name, "its attributes are others");
    }
    const absl::Span<const Tensor> now = after_.inputs(image), then = graph.inputs(id);
    // Nothing may run before the call would: neither nodes without inputs, nor calls, whose bodies
    // may contain such nodes.
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

bool InliningCheck::SameAttrs(const Call& call, NodeId image, Attrs then) const {
  Attrs now = AttrsOf(after_.node_bytes(image));
  const absl::string_view op = after_.op(image);
  if (const auto colocated = then.find("_class"); colocated != then.end()) {
    const std::vector<std::string> wanted = Colocation(call, image, colocated->second);
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

bool InliningCheck::IsHandedOn(absl::string_view name, absl::string_view border) const {
  if (!absl::ConsumePrefix(&name, "loc:@") || !absl::ConsumePrefix(&border, "loc:@")) {
    return false;
  }
  const NodeId node = after_.Find(name), from = after_.Find(border);
  return node != kNoNode && from != kNoNode && IsHandedOn(node, from);
}

bool InliningCheck::Forwards(NodeId border) const {
  return origin_[border] == kNoNode && after_.op(border) == "Identity" &&
         absl::StartsWith(after_.name(border), "Func/");
}

bool InliningCheck::IsHandedOn(NodeId node, NodeId border) const {
  while (border != node && Forwards(border) && !poll_.Tick())
    border = after_.inputs(border)[0].node;
  return border == node;
}

absl::Status InliningCheck::FindGroups() {
  for (const Call& call : calls_) {
    if (call.is_lowered()) continue;
    for (NodeId id(call.body->num_arguments); id < call.body->graph->num_nodes(); ++id) {
      if (poll_.Tick()) return absl::OkStatus();
      const absl::string_view node_def = NodeDefOf(call, id);
      if (call.images[id] == kNoNode || !absl::StrContains(node_def, "_class")) continue;
      const Attrs attrs = AttrsOf(node_def);
      const auto found = attrs.find("_class");
      if (found == attrs.end()) continue;
      for (absl::string_view name : AttrStrings(found->second)) {
        if (!IsNowhere(call, name)) continue;
        NodeId& first = groups_.try_emplace(name, call.images[id]).first->second;
        first = std::min(first, call.images[id]);
      }
    }
  }
  return absl::OkStatus();
}

bool InliningCheck::IsNowhere(const Call& call, absl::string_view name) const {
  return absl::ConsumePrefix(&name, "loc:@") && call.body->graph->Find(name) == kNoNode &&
         before_.Find(name) == kNoNode;
}

std::vector<std::string> InliningCheck::Colocation(const Call& call, NodeId image,
                                                   absl::string_view value) const {
  std::vector<std::string> names;
  for (absl::string_view name : AttrStrings(value)) {
    if (IsNowhere(call, name)) {
      const NodeId first = groups_.at(name);
      if (first != image) names.push_back(absl::StrCat("loc:@", after_.name(first)));
      continue;
    }
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

std::string InliningCheck::DeviceOf(const Call& call, absl::string_view device) {
  return call.is_native() ? call.device : MergedDevice(device, call.device);
}

absl::Status InliningCheck::CheckBorders(int number) {
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
    if (poll_.Tick()) return absl::OkStatus();
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

absl::Status InliningCheck::CheckResults(int number) const {
  const Call& call = calls_[number];
  for (size_t i = 0; i < call.results.size(); ++i) {
    if (poll_.Tick()) return absl::OkStatus();
    const NodeId id = call.results[i];
    const absl::Span<const Tensor> now = after_.inputs(id);
    if (after_.op(id) != "Identity" || now.size() != 1 ||
        !Is(now[0], call.body->results[i], number)) {
      return Wrong("body", after_.name(id), "it is not the result");
    }
  }
  return absl::OkStatus();
}

Tensor InliningCheck::BranchInput(const Call& whole, int branch, size_t i) const {
  if (!whole.is_loop()) return {whole.arguments[i], branch};
  if (whole.merges[i] == kNoNode) return {whole.arguments[i], 0};
  constexpr int kBody = 1;
  return branch == kBody ? Tensor{whole.switches[i], 1} : Tensor{whole.merges[i], 0};
}

absl::Status InliningCheck::CheckBranch(int number) {
  const Call& call = calls_[number];
  const Call& whole = calls_[call.caller];
  const bool is_condition = whole.is_loop() && call.branch == 0;
  if (call.arguments.size() != whole.arguments.size() ||
      call.results.size() != (is_condition ? 1 : whole.results.size())) {
    return Wrong("body", call.name, "its arguments or results are not those of the node");
  }
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    if (poll_.Tick()) return absl::OkStatus();
    inputs.push_back(BranchInput(whole, call.branch, i));
  }
  const absl::Span<const Tensor> waits =
      call.start == kNoNode ? absl::Span<const Tensor>() : after_.inputs(call.start);
  if (waits.empty() || after_.op(call.start) != "NoOp" ||
      !(waits[0] == Tensor{whole.pivots[call.branch], kControl})) {
    return Wrong("waits", call.name, "it does not wait for its side to be taken");
  }
  // It may only wait for its inputs besides; for all of them if one is a loop constant.
  absl::flat_hash_set<NodeId> sources, waited;
  for (Tensor input : inputs) sources.insert(input.node);
  for (Tensor wait : waits) {
    if (poll_.Tick()) return absl::OkStatus();
    waited.insert(wait.node);
    if (!(wait == waits[0] || sources.contains(wait.node)) || !wait.is_control()) {
      return Wrong("waits", call.name, "it waits for more than its side");
    }
  }
  const bool is_strict =
      whole.is_loop() && std::count(whole.merges.begin(), whole.merges.end(), kNoNode) > 0;
  for (NodeId source : sources) {
    if (is_strict && !waited.contains(source)) {
      return Wrong("waits", call.name, "it does not wait for all that its loop hands it");
    }
  }
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    if (poll_.Tick()) return absl::OkStatus();
    const NodeId id = call.arguments[i];
    const absl::Span<const Tensor> now = after_.inputs(id);
    const bool good = after_.op(id) == "Identity" && now.size() == 2 && now[0] == inputs[i] &&
                      now[1] == Tensor{call.start, kControl};
    if (!good) return Wrong("body", after_.name(id), "it is not the argument");
  }
  if (absl::Status s = CheckResults(number); !s.ok()) return s;
  if (call.end == kNoNode) return Wrong("body", call.name, "it has no end");
  return CheckEnd(call, number);
}

absl::Status InliningCheck::CheckStart(const Call& call, absl::Span<const Tensor> inputs,
                                       size_t num_data) const {
  std::vector<Tensor> sources;
  for (NodeId argument : call.arguments) sources.push_back(after_.inputs(argument)[0]);
  if (call.start == kNoNode) {
    return inputs.size() == num_data && !Inherits(call, inputs.size() - num_data)
               ? absl::OkStatus()
               : Wrong("waits", call.name, "it no longer waits");
  }
  if (after_.op(call.start) != "NoOp") {
    return Wrong("waits", after_.name(call.start), "it is not the node that the call waits for");
  }
  return CheckWaits(call, after_.inputs(call.start), inputs.subspan(num_data), sources);
}

bool InliningCheck::Inherits(const Call& call, size_t num_controls) const {
  return !call.is_lowered() && num_controls == 0 && call.caller >= 0 &&
         calls_[call.caller].start != kNoNode;
}

absl::Status InliningCheck::CheckWaits(const Call& call, absl::Span<const Tensor> now,
                                       absl::Span<const Tensor> controls,
                                       const std::vector<Tensor>& sources) const {
  const absl::string_view name = after_.name(call.start);
  const bool inherits = Inherits(call, controls.size());
  if (now.size() < controls.size() + inherits) {
    return Wrong("waits", name, "it is not the node that the call waits for");
  }
  size_t i = 0;
  for (; i < controls.size(); ++i) {
    if (poll_.Tick()) return absl::OkStatus();
    if (!Is(now[i], controls[i], call.caller)) {
      return Wrong("waits", name, "it waits for another node than the call");
    }
  }
  if (inherits && !(now[i++] == Tensor{calls_[call.caller].start, kControl})) {
    return Wrong("waits", name, "it does not wait for the node that its caller waits for");
  }
  // A value that enters a loop is constant in it; and a resource may be in use by the producers of
  // the other inputs.
  bool may_wait_for_more = controls.empty() && !inherits;
  // The nodes waited for, and those that they forward. A call may have very many inputs.
  absl::flat_hash_set<NodeId> waited;
  for (Tensor more : now.subspan(i)) {
    if (poll_.Tick()) return absl::OkStatus();
    NodeId at = more.node;
    while (waited.insert(at).second && Forwards(at) && !poll_.Tick())
      at = after_.inputs(at)[0].node;
  }
  absl::optional<bool> takes_resource;
  absl::flat_hash_set<NodeId> is_source;
  for (Tensor source : sources) {
    if (poll_.Tick()) return absl::OkStatus();
    is_source.insert(source.node);
    may_wait_for_more |= after_.op_info(source.node).control_flow == ControlFlow::kEnter;
    // A call that takes a resource must wait for all its inputs.
    if (waited.contains(source.node) || !controls.empty() || inherits ||
        after_.op(source.node) == "Placeholder") {
      continue;
    }
    if (!takes_resource) {
      takes_resource = std::any_of(sources.begin(), sources.end(), [this](Tensor t) {
        return GetOutputType(after_, t).dtype == kDtResource;
      });
    }
    if (*takes_resource) return Wrong("waits", name, "it does not wait for an input of the call");
  }
  absl::flat_hash_map<NodeId, bool> leads;  // Whether a node, or one that it forwards, is a source.
  std::vector<NodeId> path;
  for (; i < now.size(); ++i) {
    if (!may_wait_for_more) return Wrong("waits", name, "it waits for more than the call");
    bool known = after_.op_info(now[i].node).control_flow == ControlFlow::kEnter ||
                 after_.op_info(now[i].node).control_flow == ControlFlow::kMerge;
    path.clear();
    for (NodeId at = now[i].node; !known;) {
      if (poll_.Tick()) return absl::OkStatus();
      const auto [found, is_new] = leads.try_emplace(at, is_source.contains(at));
      known = found->second;
      if (!is_new || known || !Forwards(at)) break;
      path.push_back(at);
      at = after_.inputs(at)[0].node;
    }
    for (NodeId passed : path) leads[passed] = known;
    if (!known || !now[i].is_control()) {
      return Wrong("waits", name, "it waits for a node that is no input of the call");
    }
  }
  return absl::OkStatus();
}

absl::Status InliningCheck::CheckEnd(const Call& call, int number) const {
  if (call.end == kNoNode) return absl::OkStatus();
  const absl::Span<const Tensor> now = after_.inputs(call.end);
  bool good = after_.op(call.end) == "NoOp";
  const size_t count = call.is_native() ? call.results.size() : call.body->control_returns.size();
  if (count == 0 && call.start != kNoNode) {
    good = good && now.size() == 1 && now[0] == Tensor{call.start, kControl};
  } else {
    good = good && now.size() == count;
    for (size_t i = 0; good && i < count; ++i) {
      if (poll_.Tick()) return absl::OkStatus();
      good = call.is_native() ? now[i] == Tensor{call.results[i], kControl}
                              : Is(now[i], {call.body->control_returns[i], kControl}, number);
    }
  }
  return good ? absl::OkStatus()
              : Wrong("body", after_.name(call.end), "it is not the end of the call");
}

bool InliningCheck::IsResult(Tensor now, int number, int32_t port) const {
  if (port >= static_cast<int32_t>(calls_[number].results.size())) return false;
  const NodeId border = calls_[number].results[port];
  if (now == Tensor{border, 0}) return true;
  const absl::Span<const Tensor> reads = after_.inputs(border);
  return !now.is_control() && reads.size() == 1 && !GetOutputType(after_, reads[0]).is_ref &&
         Is(now, calls_[number].body->results[port], number);
}

}  // namespace spillway::core
