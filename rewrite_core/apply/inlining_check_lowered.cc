// InliningCheck: what If, Case and While were lowered to.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/apply/inlining_check.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/base/wire_writer.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/op_outputs.h"

namespace spillway::core {

absl::Status InliningCheck::FindLowered(Call* call) {
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

absl::Status InliningCheck::ReadLowered(int number) {
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
    if (is_if) made.attrs = BranchAttrs(made.node_def, branch == 0 ? "else_branch" : "then_branch");
    if (absl::Status s = FindBorders(&made); !s.ok()) return s;
    calls_[number].branches.push_back(static_cast<int>(calls_.size()));
    calls_.push_back(std::move(made));
  }
  return absl::OkStatus();
}

NodeId InliningCheck::FindSwitch(const Call& call, Tensor input) {
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

std::string InliningCheck::BranchAttrs(absl::string_view node_def, absl::string_view key) {
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

absl::Status InliningCheck::CheckLowered(int number) {
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
  bool good = static_cast<int32_t>(ends.size()) == 2 * count && has_all(call.end, index_type, "N");
  for (int32_t i = 0; good && i < count; ++i) {
    good = ends[i] == Tensor{call.pivots[is_if ? count - 1 - i : i], 0} &&
           ends[count + i] == Tensor{calls_[side(i)].end, kControl};
  }
  return good ? absl::OkStatus()
              : Wrong("body", after_.name(call.end), "it is not the end of the branches");
}

bool InliningCheck::IsBeside(NodeId id, Tensor input, int caller) const {
  const Attrs attrs = AttrsOf(after_.node_bytes(id));
  const auto found = attrs.find("_class");
  const std::string beside = absl::StrCat("loc:@", after_.name(after_.inputs(id)[0].node));
  const NodeId source = NodeNow(input, caller);
  return found != attrs.end() && source != kNoNode &&
         AttrStrings(found->second) == std::vector<absl::string_view>{beside} &&
         after_.device(id) == after_.device(source);
}

absl::Status InliningCheck::CheckChooserWaits(const Call& call, absl::Span<const Tensor> inputs,
                                              size_t num_data) const {
  std::vector<Tensor> sources;
  for (NodeId id : call.arguments) sources.push_back(after_.inputs(id)[0]);
  sources.push_back(after_.inputs(call.chooser)[0]);
  return CheckWaits(call, after_.inputs(call.chooser).subspan(2), inputs.subspan(num_data),
                    sources);
}

std::vector<int32_t> InliningCheck::TypesOf(const Attrs& attrs, absl::string_view key) {
  std::vector<int32_t> types;
  const auto found = attrs.find(key);
  if (found == attrs.end()) return types;
  ForEachAttrType(found->second, [&types](DataType type) {
    types.push_back(type);
    return true;
  });
  return types;
}

}  // namespace spillway::core
