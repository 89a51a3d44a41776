// InliningCheck: lowered If, Case and While.
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
namespace {

// The default of a While without the attribute (from its OpDef).
constexpr int64_t kParallelIterations = 10;

}  // namespace

absl::Status InliningCheck::FindLowered(Call* call) {
  if (call->is_loop()) return FindLoop(call);
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
    return Wrong("body", call->name, "some nodes that it was lowered to are missing");
  }
  call->chooser = chooser[0];
  call->start = chooser[0];
  call->end = end[0];
  call->results = TakeNodes(call->name, is_if ? "output" : "merge", "Merge");
  return absl::OkStatus();
}

absl::Status InliningCheck::FindLoop(Call* call) {
  const std::vector<DataType> types = TypesOf(AttrsOf(call->node_def), "T");
  const absl::Span<const Tensor> inputs = InputsOf(*call);
  const auto is_constant = [](DataType type) { return type == kDtResource; };
  const size_t constant = std::count_if(types.begin(), types.end(), is_constant);
  const size_t variable = types.size() - constant;
  const std::vector<NodeId> start = TakeNodes(call->name, "LoopControlInputs", "NoOp");
  const std::vector<NodeId> merges = TakeNodes(call->name, "merge", "Merge");
  const std::vector<NodeId> condition = TakeNodes(call->name, "LoopCond", "LoopCond");
  const std::vector<NodeId> control = TakeNodes(call->name, "loop_body_control", "Identity");
  const std::vector<NodeId> exits = TakeNodes(call->name, "exit", "Exit");
  const std::vector<NodeId> nexts = TakeNodes(call->name, "next_iteration", "NextIteration");
  const std::vector<NodeId> end = TakeNodes(call->name, "LoopExecuted", "NoOp");
  call->arguments = TakeNodes(call->name, "enter", "Enter");
  if (start.size() > 1 || condition.size() != 1 || control.size() != 1 || end.size() != 1 ||
      variable == 0 || merges.size() != variable || exits.size() != variable ||
      nexts.size() != variable || call->arguments.size() != types.size() ||
      NumData(inputs) != types.size()) {
    return Wrong("body", call->name, "some nodes that it was lowered to are missing");
  }
  if (!start.empty()) call->start = start[0];
  call->end = end[0];
  call->chooser = condition[0];
  call->pivots = {merges[0], control[0]};
  size_t next = 0;
  for (DataType type : types) {
    const bool goes_round = !is_constant(type);
    call->merges.push_back(goes_round ? merges[next] : kNoNode);
    call->results.push_back(goes_round ? exits[next] : kNoNode);
    call->nexts.push_back(goes_round ? nexts[next] : kNoNode);
    next += goes_round;
  }
  return absl::OkStatus();
}

size_t InliningCheck::NumData(absl::Span<const Tensor> inputs) {
  return std::find_if(inputs.begin(), inputs.end(), [](Tensor t) { return t.is_control(); }) -
         inputs.begin();
}

absl::Status InliningCheck::ReadLowered(int number) {
  Call& call = calls_[number];
  const absl::Span<const Tensor> inputs = InputsOf(call);
  std::vector<NodeId>& switches = call.is_loop() ? call.switches : call.arguments;
  const size_t num_data = NumData(inputs);
  for (size_t i = call.is_loop() ? 0 : 1; i < num_data; ++i) {
    if (poll_.Tick()) return absl::OkStatus();
    const bool has_switch = !call.is_loop() || call.merges[i] != kNoNode;
    switches.push_back(has_switch ? FindSwitch(call, inputs[i]) : kNoNode);
    if (has_switch && switches.back() == kNoNode) {
      return Wrong("body", call.name, absl::StrCat("input ", i, " goes nowhere"));
    }
  }
  const std::vector<absl::string_view> functions = LoweredFunctions(call.kind, call.node_def);
  for (size_t i = 0; i < functions.size(); ++i) {
    absl::Status status = ReadBranch(number, static_cast<int>(i), functions[i]);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status InliningCheck::ReadBranch(int number, int branch, absl::string_view function) {
  const Call& call = calls_[number];
  // Its name, and the attribute with its function.
  std::string what, key;
  if (call.kind == CallKind::kIf) {
    what = branch == 0 ? "else" : "then";
    key = what + "_branch";
  } else if (call.is_loop()) {
    what = key = branch == 0 ? "cond" : "body";
  } else {
    what = absl::StrCat("branch", branch);  // Has no attributes.
  }
  Call made;
  const auto found = branches_.find(absl::StrCat(call.name, "/", what));
  if (found != branches_.end()) {
    for (absl::string_view name : found->second) {
      if (poll_.Tick()) return absl::OkStatus();
      if (made.name.empty() && HasBorders(name)) made.name = std::string(name);
    }
  }
  if (made.name.empty()) return Wrong("body", call.name, "a branch is gone");
  made.caller = number;
  made.kind = CallKind::kBranch;
  made.branch = branch;
  made.function = function;
  made.device = call.device;
  made.node_def = call.node_def;
  if (!key.empty()) made.attrs = BranchAttrs(made.node_def, key);
  if (absl::Status s = FindBorders(&made); !s.ok()) return s;
  calls_[number].branches.push_back(static_cast<int>(calls_.size()));
  calls_.push_back(std::move(made));
  return absl::OkStatus();
}

NodeId InliningCheck::FindSwitch(const Call& call, Tensor input) {
  const absl::string_view op = call.kind == CallKind::kCase ? "_SwitchN" : "Switch";
  const NodeId source = NodeNow(input, call.caller);
  if (source == kNoNode) return kNoNode;
  const auto found = borders_.find(
      absl::StrCat(call.name, "/", after_.name(source), call.is_loop() ? "_switch" : ""));
  if (found == borders_.end()) return kNoNode;
  // Those passed are claimed, or no Switch. One source may be read very often.
  size_t& next = next_switch_[found->first];
  while (next < found->second.size()) {
    const NodeId id = found->second[next++];
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
  if (call.is_loop()) return CheckLoop(number);
  const bool is_if = call.kind == CallKind::kIf;
  const auto count = static_cast<int32_t>(call.branches.size());
  const absl::Span<const Tensor> inputs = InputsOf(call);
  const size_t num_data = NumData(inputs);
  const Attrs attrs = AttrsOf(call.node_def);
  const std::vector<DataType> takes = TypesOf(attrs, "Tin"), gives = TypesOf(attrs, "Tout");
  const auto lowered = attrs.find("_lower_using_switch_merge");
  if (lowered == attrs.end() || !AttrBool(lowered->second).value_or(false) || num_data == 0 ||
      takes.size() + 1 != num_data || call.arguments.size() + 1 != num_data ||
      gives.size() != call.results.size() || count == 0) {
    return Wrong("body", call.name, "it is not a node that is lowered so");
  }
  const int32_t index_type = is_if ? kDtBool : kDtInt32;
  // Checks that there are only the type and the number of inputs or outputs; and the device.
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
           after_.device(id) == call.device;
  };
  const absl::string_view outputs = is_if ? "" : "num_outs";
  const absl::string_view choose = is_if ? "Switch" : "_SwitchN";
  // The predicate, and the nodes that the node waited for.
  const absl::Span<const Tensor> chooses = after_.inputs(call.chooser);
  if (chooses.size() < 2 || !Is(chooses[0], inputs[0], call.caller) ||
      !(chooses[1] == chooses[0]) || !has_all(call.chooser, index_type, outputs)) {
    return Wrong("body", after_.name(call.chooser), "it does not choose as the node does");
  }
  for (int32_t branch = 0; branch < count; ++branch) {
    if (poll_.Tick()) return absl::OkStatus();
    const absl::Span<const Tensor> now = after_.inputs(call.pivots[branch]);
    if (now.size() != 1 || !(now[0] == Tensor{call.chooser, branch}) ||
        !has_all(call.pivots[branch], index_type, "")) {
      return Wrong("body", after_.name(call.pivots[branch]), "it is not its side");
    }
  }
  for (size_t i = 1; i < num_data; ++i) {
    if (poll_.Tick()) return absl::OkStatus();
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
      if (poll_.Tick()) return absl::OkStatus();
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

std::vector<DataType> InliningCheck::TypesOf(const Attrs& attrs, absl::string_view key) {
  std::vector<DataType> types;
  const auto found = attrs.find(key);
  if (found == attrs.end()) return types;
  ForEachAttrType(found->second, [&types](DataType type) {
    types.push_back(type);
    return true;
  });
  return types;
}

bool InliningCheck::IsMade(NodeId id, absl::string_view op,
                           const std::map<absl::string_view, std::string>& attrs) const {
  const Attrs now = AttrsOf(after_.node_bytes(id));
  return after_.op(id) == op && OtherFields(after_.node_bytes(id)).empty() &&
         std::equal(now.begin(), now.end(), attrs.begin(), attrs.end(),
                    [](const auto& a, const auto& b) {
                      return a.first == b.first && a.second == b.second;
                    });
}

absl::Status InliningCheck::CheckLoop(int number) {
  const Call& call = calls_[number];
  const absl::Span<const Tensor> inputs = InputsOf(call);
  const Attrs attrs = AttrsOf(call.node_def);
  const std::vector<DataType> types = TypesOf(attrs, "T");
  const auto lowered = attrs.find("_lower_using_switch_merge");
  if (lowered == attrs.end() || !AttrBool(lowered->second).value_or(false)) {
    return Wrong("body", call.name, "it is not a node that is lowered so");
  }
  const auto stated = attrs.find("parallel_iterations");
  const int64_t parallel = stated == attrs.end()
                               ? kParallelIterations
                               : AttrInt(stated->second).value_or(kParallelIterations);
  for (size_t i = 0; i < types.size(); ++i) {
    if (poll_.Tick()) return absl::OkStatus();
    absl::Status status = CheckLoopVariable(number, i, types[i], parallel);
    if (!status.ok()) return status;
  }
  if (absl::Status s = CheckStart(call, inputs, types.size()); !s.ok()) return s;
  const absl::Span<const Tensor> goes_on = after_.inputs(call.chooser);
  if (!IsMade(call.chooser, "LoopCond", {}) || goes_on.size() != 1 ||
      !IsResult(goes_on[0], call.branches[0], 0)) {
    return Wrong("body", after_.name(call.chooser), "it is not the condition's result");
  }
  const size_t first =
      std::find_if(types.begin(), types.end(), [](DataType type) { return type != kDtResource; }) -
      types.begin();
  const absl::Span<const Tensor> runs = after_.inputs(call.pivots[1]);
  if (!IsMade(call.pivots[1], "Identity", {{"T", TypeAttr(types[first])}}) || runs.size() != 1 ||
      !(runs[0] == Tensor{call.switches[first], 1})) {
    return Wrong("body", after_.name(call.pivots[1]), "it is not the node that the body waits for");
  }
  std::vector<Tensor> ends;
  for (NodeId exit : call.results) {
    if (exit != kNoNode) ends.push_back({exit, kControl});
  }
  if (!IsMade(call.end, "NoOp", {}) || after_.inputs(call.end) != absl::MakeConstSpan(ends)) {
    return Wrong("body", after_.name(call.end), "it is not the end of the loop");
  }
  if (call.start != kNoNode && !IsMade(call.start, "NoOp", {})) {
    return Wrong("body", after_.name(call.start), "it is not the node that the loop waits for");
  }
  for (NodeId id : {call.chooser, call.pivots[1], call.end, call.start}) {
    if (id != kNoNode && after_.device(id) != call.device) {
      return Wrong("body", after_.name(id), "it has another device");
    }
  }
  return absl::OkStatus();
}

absl::Status InliningCheck::CheckLoopVariable(int number, size_t i, DataType type,
                                              int64_t parallel) const {
  const Call& call = calls_[number];
  const NodeId enter = call.arguments[i], merge = call.merges[i];
  std::map<absl::string_view, std::string> attrs = {
      {"T", TypeAttr(type)},
      {"frame_name", StringAttr(call.name)},
      {"parallel_iterations", IntAttr(parallel)},
  };
  if (merge == kNoNode) attrs["is_constant"] = BoolAttr(true);
  const Tensor input = InputsOf(call)[i];
  const absl::Span<const Tensor> enters = after_.inputs(enter);
  const bool starts = call.start != kNoNode;
  const NodeId source = NodeNow(input, call.caller);
  if (!IsMade(enter, "Enter", attrs) || enters.size() != 1u + starts ||
      !Is(enters[0], input, call.caller) ||
      (starts && !(enters[1] == Tensor{call.start, kControl})) || source == kNoNode ||
      after_.device(enter) != after_.device(source)) {
    return Wrong("body", after_.name(enter), "it does not enter the loop with the input");
  }
  if (merge == kNoNode) return absl::OkStatus();
  const NodeId choice = call.switches[i], exit = call.results[i], next = call.nexts[i];
  const auto reads = [this](NodeId id, Tensor first, Tensor second) {
    const absl::Span<const Tensor> now = after_.inputs(id);
    return now.size() == 2 && now[0] == first && now[1] == second;
  };
  const absl::Span<const Tensor> goes = after_.inputs(next), leaves = after_.inputs(exit);
  attrs = {{"T", TypeAttr(type)}};
  bool good = IsMade(choice, "Switch", attrs) && IsMade(exit, "Exit", attrs) &&
              IsMade(next, "NextIteration", attrs);
  attrs["N"] = IntAttr(2);
  good = good && IsMade(merge, "Merge", attrs) && reads(merge, Tensor{enter, 0}, Tensor{next, 0}) &&
         reads(choice, Tensor{merge, 0}, Tensor{call.chooser, 0}) && leaves.size() == 1 &&
         leaves[0] == Tensor{choice, 0} && goes.size() == 2 &&
         IsResult(goes[0], call.branches[1], static_cast<int32_t>(i)) &&
         goes[1] == Tensor{calls_[call.branches[1]].end, kControl};
  for (NodeId id : {merge, choice, exit, next}) {
    good = good && after_.device(id) == after_.device(enter);
  }
  return good ? absl::OkStatus()
              : Wrong("body", call.name,
                      absl::StrCat("variable ", i, " does not go round the loop"));
}

}  // namespace spillway::core
