// CallInliner: lowers If, Case and While to Switch, Merge, Enter and the like, as TensorFlow 2.15
// does in common_runtime/lower_if_op.cc, lower_case_op.cc and lower_while_op.cc: each branch,
// condition and body becomes a call, which is inlined next.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/base/saturating.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/base/wire_writer.h"
#include "rewrite_core/graph/attr_entry.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/node_writer.h"
#include "rewrite_core/inline/call_inliner.h"

namespace spillway::core {
namespace {

std::string NumberField(absl::string_view key, int64_t number) {
  std::string attr;
  AppendAttrField(key, IntAttr(number), &attr);
  return attr;
}

Tensor Control(Tensor tensor) { return {tensor.node, kControl}; }

absl::string_view AttrOf(absl::string_view node_def, absl::string_view key) {
  absl::string_view value;
  WireReader reader(node_def);
  while (reader.Next()) {
    if (!reader.IsBytes(node_def::kAttr)) continue;
    const AttrEntry entry = ReadAttrEntry(reader.bytes());
    if (entry.key == key) value = entry.value;
  }
  return value;
}

std::vector<DataType> Types(absl::string_view value) {
  std::vector<DataType> types;
  ForEachAttrType(value, [&types](DataType type) {
    types.push_back(type);
    return true;
  });
  return types;
}

// The attributes passed to a function, as fields of a NodeDef: those of the NameAttrList. A Case
// passes none (CaseBuilder).
std::string FunctionAttrs(CallKind kind, absl::string_view node_def, size_t function) {
  std::string attrs;
  if (kind == CallKind::kCase) return attrs;
  const bool second = function == 1;
  const absl::string_view key =
      kind == CallKind::kIf ? (second ? "then_branch" : "else_branch") : (second ? "body" : "cond");
  WireReader reader(LastPayload(AttrOf(node_def, key), attr_value::kFunction));
  while (reader.Next()) {
    if (!reader.IsBytes(name_attr_list::kAttr)) continue;
    AppendBytesField(node_def::kAttr, reader.bytes(), &attrs);
  }
  return attrs;
}

}  // namespace

// Makes the nodes that replace a lowered node.
class LoweredNodes {
 public:
  LoweredNodes(WorkGraph* work, NodeId replaced, const WorkNode& base)
      : work_(*work), name_(work->name(replaced)), device_(work->device(replaced)), base_(base) {}

  absl::string_view device() const { return device_; }

  // Adds a node with `dtype` in attribute T, unless it is kDtInvalid, followed by more attributes.
  Tensor Add(absl::string_view what, const char* op, DataType dtype,
             absl::Span<const Tensor> inputs, absl::string_view device,
             const std::string& more = {}) {
    return Add(Node(what, op, dtype, device, more), inputs);
  }
  // Colocated with the producer of its first input.
  Tensor AddBeside(absl::string_view what, const char* op, DataType dtype,
                   absl::Span<const Tensor> inputs, const std::string& more = {}) {
    const NodeId source = work_.Resolve(inputs[0]).node;
    WorkNode node = Node(what, op, dtype, work_.device(source), more);
    node.colocated_with = inputs[0];
    return Add(node, inputs);
  }

  // Adds a call of a branch: an op with the function's name, and the attributes that the lowered
  // node passes.
  Tensor AddCall(absl::string_view what, absl::string_view function, absl::string_view attrs,
                 absl::Span<const Tensor> inputs) {
    WorkNode node = Node(what, "", kDtInvalid, device_, {});
    node.op = function;
    std::string own;
    AppendAttrField("_lower_as_multidevice_function", BoolAttr(true), &own);
    absl::StrAppend(&own, attrs);
    node.attrs = work_.Keep(own);
    std::string node_def;
    AppendBytesField(node_def::kOp, function, &node_def);
    node.node_def = work_.Keep(absl::StrCat(node_def, own));
    node.kind = CallKind::kBranch;
    return Add(node, inputs);
  }

 private:
  WorkNode Node(absl::string_view what, const char* op, DataType dtype, absl::string_view device,
                const std::string& more) {
    WorkNode node = base_;
    node.name = work_.NumberedName(name_, what);
    node.op = op;
    node.device = device;
    std::string attrs;
    if (dtype != kDtInvalid) AppendAttrField("T", TypeAttr(dtype), &attrs);
    absl::StrAppend(&attrs, more);
    node.attrs = work_.Keep(attrs);
    return node;
  }
  Tensor Add(const WorkNode& node, absl::Span<const Tensor> inputs) {
    return {work_.Add(node, inputs), 0};
  }

  WorkGraph& work_;
  const absl::string_view name_, device_;
  const WorkNode base_;
};

v1::KeptCallReason CallInliner::CheckLowered(NodeId id, CallKind kind, Call* call) {
  call->id = id;
  call->kind = kind;
  call->node_def = work_.node_def(id);
  if (!IsLowered(kind, call->node_def)) return v1::KEPT_CALL_REASON_OTHER_KIND;
  if (work_.IsOriginal(id) && fed_.contains(id)) return v1::KEPT_CALL_REASON_FED;
  WireReader reader(call->node_def);
  while (reader.Next()) {
    if (!reader.IsBytes(node_def::kAttr)) continue;
    const AttrEntry attr = ReadAttrEntry(reader.bytes());
    if (IsCompiledAttr(attr.key, attr.value)) return v1::KEPT_CALL_REASON_COMPILED;
  }
  const absl::Span<const Tensor> inputs = work_.inputs(id);
  call->num_data = static_cast<int>(
      std::find_if(inputs.begin(), inputs.end(), [](Tensor t) { return t.is_control(); }) -
      inputs.begin());
  call->functions = LoweredFunctions(kind, call->node_def);
  call->result_types = Types(AttrOf(call->node_def, kind == CallKind::kWhile ? "T" : "Tout"));
  const bool is_loop = kind == CallKind::kWhile;
  if (call->functions.empty() ||
      UseOf(id).last_port >= static_cast<int>(call->result_types.size())) {
    return v1::KEPT_CALL_REASON_BAD_FUNCTION;
  }
  // A Switch does not take a predicate of this type.
  if (kind == CallKind::kIf && AttrType(AttrOf(call->node_def, "Tcond")) != kDtBool) {
    return v1::KEPT_CALL_REASON_OTHER_KIND;
  }
  if (is_loop && (AttrInt(AttrOf(call->node_def, "parallel_iterations")).value_or(10) < 1 ||
                  std::all_of(call->result_types.begin(), call->result_types.end(),
                              [](DataType type) { return type == kDtResource; }))) {
    return v1::KEPT_CALL_REASON_BAD_FUNCTION;
  }
  if (is_loop) {
    call->input_types = call->result_types;
  } else {
    call->input_types = Types(AttrOf(call->node_def, "Tin"));
    call->input_types.insert(call->input_types.begin(), kind == CallKind::kIf ? kDtBool : kDtInt32);
  }
  if (static_cast<int>(call->input_types.size()) != call->num_data) {
    return v1::KEPT_CALL_REASON_BAD_FUNCTION;
  }
  InlinedSize size = LoweringSize(call->node_def);
  absl::flat_hash_set<int32_t> checked;  // A Case may name one function very often.
  for (size_t i = 0; i < call->functions.size(); ++i) {
    if (poll_.Tick()) return v1::KEPT_CALL_REASON_BAD_FUNCTION;  // Run looks at the token.
    const int32_t number = table_.Find(call->functions[i]);
    if (number == FunctionTable::kNoFunction) return v1::KEPT_CALL_REASON_NO_FUNCTION;
    if (table_[number].kept != v1::KEPT_CALL_REASON_UNSPECIFIED) return table_[number].kept;
    const InlineBody* body = BodyOf(number);
    const bool is_known = !is_loop && !checked.insert(number).second;
    if (body == nullptr || (!is_known && !FitsLowered(*call, *body, i))) {
      return v1::KEPT_CALL_REASON_BAD_FUNCTION;
    }
    if (!is_known && poll_.Tick(static_cast<int64_t>(body->results.size()))) {
      return v1::KEPT_CALL_REASON_BAD_FUNCTION;
    }
    if (body->has_dead_results) return v1::KEPT_CALL_REASON_DEAD_RESULTS;
    InlinedSize branch = table_[number].size;
    // Its name is longer than the node's: NODE/branch12/_34.
    constexpr int64_t kBranchNameBytes = 40;
    branch.bytes =
        SaturatingAdd(branch.bytes, SaturatingMultiply(branch.prefixes, kBranchNameBytes));
    size.Add(branch);
  }
  if (work_.IsOriginal(id) && !Admit(id, size)) return v1::KEPT_CALL_REASON_TOO_LARGE;
  return v1::KEPT_CALL_REASON_UNSPECIFIED;
}

bool CallInliner::FitsLowered(const Call& call, const InlineBody& body, size_t function) const {
  const bool is_loop = call.kind == CallKind::kWhile;
  const bool is_condition = is_loop && function == 0;
  const size_t arguments = call.num_data - (is_loop ? 0 : 1);
  const size_t results = is_condition ? 1 : call.result_types.size();
  if (call.num_data == 0 || body.arguments.size() != arguments || body.results.size() != results ||
      (is_loop && call.result_types.size() != arguments)) {
    return false;
  }
  const size_t first = is_loop ? 0 : 1;  // After the predicate.
  for (size_t i = 0; i < arguments; ++i) {
    const BorderType& type = body.arguments[i];
    if (!type.attr.empty() || type.dtype != call.input_types[first + i]) return false;
  }
  for (size_t i = 0; i < results && !is_condition; ++i) {
    const BorderType& type = body.results[i];
    if (!type.attr.empty() || type.dtype != call.result_types[i]) return false;
  }
  return !is_condition || body.results[0].dtype == kDtBool;
}

void CallInliner::Lower(const Call& call) {
  const std::vector<Tensor> inputs(work_.inputs(call.id).begin(), work_.inputs(call.id).end());
  std::vector<Tensor> controls(inputs.begin() + call.num_data, inputs.end());
  AddStrictInputs(call, &controls);
  if (controls.empty()) {
    if (const auto frame = FrameControl(call.id)) controls.push_back(*frame);
  }
  WorkNode base;
  base.top_call = work_.IsOriginal(call.id) ? call.id : work_.node(call.id).top_call;
  base.colocated_with = {kNoNode, 0};
  LoweredNodes maker(&work_, call.id, base);
  Expansion made;
  made.call = call.id;
  made.result_types = call.result_types;
  if (call.kind == CallKind::kWhile) {
    LowerLoop(call, inputs, controls, &maker, &made);
  } else {
    LowerBranches(call, inputs, controls, &maker, &made);
  }
  work_.Replace(made);
}

// As CondBuilder of lower_if_op.cc and CaseBuilder of lower_case_op.cc.
void CallInliner::LowerBranches(const Call& call, const std::vector<Tensor>& inputs,
                                const std::vector<Tensor>& controls, LoweredNodes* maker,
                                Expansion* made) {
  const bool is_if = call.kind == CallKind::kIf;
  const char* const choose = is_if ? "Switch" : "_SwitchN";
  const DataType index_type = is_if ? kDtBool : kDtInt32;
  const auto num_branches = static_cast<int32_t>(call.functions.size());
  const std::string outputs = is_if ? std::string() : NumberField("num_outs", num_branches);
  const absl::string_view device = maker->device();
  std::vector<Tensor> reads = {inputs[0], inputs[0]};
  reads.insert(reads.end(), controls.begin(), controls.end());
  const Tensor chooser = maker->Add(is_if ? "switch_pred" : "branch_index", choose, index_type,
                                    reads, device, outputs);
  std::vector<Tensor> pivots;
  for (int32_t branch = 0; branch < num_branches; ++branch) {
    if (Stops(call.id)) return;
    const std::string what =
        is_if ? (branch == 0 ? "pivot_f" : "pivot_t") : absl::StrCat("pivot_", branch);
    pivots.push_back(
        maker->Add(what, "Identity", index_type, {Tensor{chooser.node, branch}}, device));
  }
  std::vector<NodeId> switches;
  for (int i = 1; i < call.num_data; ++i) {
    if (Stops(call.id)) return;
    const std::string what(work_.name(work_.Resolve(inputs[i]).node));
    switches.push_back(
        maker->AddBeside(what, choose, call.input_types[i], {inputs[i], inputs[0]}, outputs).node);
  }
  std::vector<Tensor> calls;
  for (int32_t branch = 0; branch < num_branches; ++branch) {
    if (Stops(call.id)) return;
    reads.clear();
    for (NodeId node : switches) {
      if (poll_.Tick()) return;
      reads.push_back({node, branch});
    }
    reads.push_back(Control(pivots[branch]));
    const std::string what =
        is_if ? (branch == 0 ? "else" : "then") : absl::StrCat("branch", branch);
    calls.push_back(maker->AddCall(what, call.functions[branch],
                                   FunctionAttrs(call.kind, call.node_def, branch), reads));
  }
  const std::string count = NumberField("N", num_branches);
  // A Merge of an If reads the true side first. False if stopped.
  const auto merge = [&](auto tensor_of) {
    reads.clear();
    for (int32_t branch = 0; branch < num_branches; ++branch) {
      if (poll_.Tick()) return false;
      reads.push_back(tensor_of(is_if ? num_branches - 1 - branch : branch));
    }
    return true;
  };
  for (size_t i = 0; i < call.result_types.size(); ++i) {
    if (Stops(call.id)) return;
    const auto port = static_cast<int32_t>(i);
    if (!merge([&](int32_t branch) { return Tensor{calls[branch].node, port}; })) return;
    made->results.push_back(maker->Add(is_if ? "output" : "merge", "Merge", call.result_types[i],
                                       reads, device, count));
  }
  if (!merge([&](int32_t branch) { return pivots[branch]; })) return;
  for (int32_t branch = 0; branch < num_branches; ++branch) {
    if (poll_.Tick()) return;
    reads.push_back(Control(calls[is_if ? num_branches - 1 - branch : branch]));
  }
  made->output_control =
      maker->Add("branch_executed", "Merge", index_type, reads, device, count).node;
}

// As LowerWhileHelper of lower_while_op.cc.
void CallInliner::LowerLoop(const Call& call, const std::vector<Tensor>& inputs,
                            const std::vector<Tensor>& controls, LoweredNodes* maker,
                            Expansion* made) {
  const std::vector<DataType>& types = call.result_types;
  const absl::string_view device = maker->device();
  const int64_t parallel = AttrInt(AttrOf(call.node_def, "parallel_iterations")).value_or(10);
  std::vector<Tensor> waits;
  if (!controls.empty()) {
    waits.push_back(Control(maker->Add("LoopControlInputs", "NoOp", kDtInvalid, controls, device)));
  }
  // By loop variable. A resource stays outside: it is constant in the loop.
  const size_t count = types.size();
  std::vector<Tensor> enters(count), merges(count), switches(count), for_condition, for_body;
  std::vector<absl::string_view> devices(count);
  const auto is_constant = [&types](size_t i) { return types[i] == kDtResource; };
  for (size_t i = 0; i < count; ++i) {
    if (Stops(call.id)) return;
    devices[i] = work_.device(work_.Resolve(inputs[i]).node);
    std::string attrs;
    AppendAttrField("frame_name", StringAttr(work_.name(call.id)), &attrs);
    AppendAttrField("parallel_iterations", IntAttr(parallel), &attrs);
    if (is_constant(i)) AppendAttrField("is_constant", BoolAttr(true), &attrs);
    std::vector<Tensor> reads = {inputs[i]};
    reads.insert(reads.end(), waits.begin(), waits.end());
    enters[i] = maker->Add("enter", "Enter", types[i], reads, devices[i], attrs);
  }
  // Merges read NextIterations, which are added later, so their ids are computed in advance.
  const auto num_variables = static_cast<int32_t>(
      std::count_if(types.begin(), types.end(), [](DataType type) { return type != kDtResource; }));
  // After the Merges: the condition's call, LoopCond; Switches; the body's call and its control
  // node; Exits and the final nodes; then the NextIterations.
  const int32_t first_merge = work_.num_nodes();
  NodeId next(first_merge + num_variables + 2 + num_variables + 2 + num_variables + 1);
  const std::string two = NumberField("N", 2);
  NodeId pivot = kNoNode;
  for (size_t i = 0; i < count; ++i) {
    if (Stops(call.id)) return;
    if (is_constant(i)) {
      for_condition.push_back(enters[i]);
      continue;
    }
    merges[i] =
        maker->Add("merge", "Merge", types[i], {enters[i], Tensor{next, 0}}, devices[i], two);
    ++next;
    for_condition.push_back(merges[i]);
    if (pivot == kNoNode) pivot = merges[i].node;
  }
  for_condition.push_back({pivot, kControl});
  const Tensor condition = maker->AddCall(
      "cond", call.functions[0], FunctionAttrs(call.kind, call.node_def, 0), for_condition);
  const Tensor goes_on = maker->Add("LoopCond", "LoopCond", kDtInvalid, {condition}, device);
  for (size_t i = 0; i < count; ++i) {
    if (Stops(call.id)) return;
    if (is_constant(i)) continue;
    const std::string what = absl::StrCat(work_.name(work_.Resolve(inputs[i]).node), "_switch");
    switches[i] = maker->Add(what, "Switch", types[i], {merges[i], goes_on}, devices[i]);
  }
  size_t first = 0;
  while (is_constant(first)) ++first;
  for (size_t i = 0; i < count; ++i) {
    if (Stops(call.id)) return;
    for_body.push_back(is_constant(i) ? enters[i] : Tensor{switches[i].node, 1});
  }
  const Tensor runs = maker->Add("loop_body_control", "Identity", types[first],
                                 {Tensor{switches[first].node, 1}}, device);
  for_body.push_back(Control(runs));
  const Tensor body = maker->AddCall("body", call.functions[1],
                                     FunctionAttrs(call.kind, call.node_def, 1), for_body);
  std::vector<Tensor> ends;
  for (size_t i = 0; i < count; ++i) {
    if (Stops(call.id)) return;
    if (is_constant(i)) {
      made->results.push_back(inputs[i]);
      continue;
    }
    made->results.push_back(
        maker->Add("exit", "Exit", types[i], {Tensor{switches[i].node, 0}}, devices[i]));
    ends.push_back(Control(made->results.back()));
  }
  made->output_control = maker->Add("LoopExecuted", "NoOp", kDtInvalid, ends, device).node;
  for (size_t i = 0; i < count; ++i) {
    if (Stops(call.id)) return;
    if (is_constant(i)) continue;
    maker->Add("next_iteration", "NextIteration", types[i],
               {Tensor{body.node, static_cast<int32_t>(i)}, Control(body)}, devices[i]);
  }
}

}  // namespace spillway::core
