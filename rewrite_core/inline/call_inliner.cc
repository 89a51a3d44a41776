#include "rewrite_core/inline/call_inliner.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/machine/device_name.h"
#include "rewrite_core/base/saturating.h"
#include "rewrite_core/base/shown_name.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/base/wire_writer.h"
#include "rewrite_core/graph/attr_entry.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/node_writer.h"
#include "rewrite_core/graph/op_outputs.h"
#include "rewrite_core/graph/topology.h"

namespace spillway::core {
namespace {

// The maximum number of kept calls that are reported by name (inlining.proto).
constexpr int kMaxKeptCalls = 100;

// One function called from many places makes a graph many times as large; for a hostile graph there
// is no bound. Graphs may always grow by the first constant, and by this multiple of their bytes:
// the same as for rewrites (graph_edit.cc).
constexpr int64_t kAlwaysAllowedBytes = int64_t{64} << 20;
constexpr int64_t kMaxInlinedGrowth = 16;

// Bytes for a call's own node besides those of the original: the original bytes in its record, the
// results' names.
constexpr int64_t kKeptNodeBytes = 256;
constexpr int64_t kResultNameBytes = 48;

std::string ShapesAttr(absl::string_view shape) {
  std::string list, value;
  AppendBytesField(attr_value::kListShape, shape, &list);
  AppendBytesField(attr_value::kList, list, &value);
  return value;
}

// The shapes that a node states for its outputs, each a serialized TensorShapeProto.
std::vector<absl::string_view> StatedShapes(absl::string_view node_def, StopPoller* poll) {
  absl::string_view value;
  WireReader reader(node_def);
  while (reader.Next()) {
    if (!reader.IsBytes(node_def::kAttr)) continue;
    const AttrEntry entry = ReadAttrEntry(reader.bytes());
    if (entry.key == kOutputShapesAttr) value = entry.value;
  }
  std::vector<absl::string_view> shapes;
  WireReader list(LastPayload(value, attr_value::kList));
  while (list.Next() && !poll->Tick()) {
    if (list.IsBytes(attr_value::kListShape)) shapes.push_back(list.bytes());
  }
  return shapes;
}

absl::optional<absl::string_view> FindAttr(absl::string_view node_def, absl::string_view key) {
  absl::optional<absl::string_view> found;
  WireReader reader(node_def);
  while (reader.Next()) {
    if (!reader.IsBytes(node_def::kAttr)) continue;
    const AttrEntry entry = ReadAttrEntry(reader.bytes());
    if (entry.key == key) found = entry.value;
  }
  return found;
}

}  // namespace

CallInliner::CallInliner(const FunctionTable& table, const v1::Step& step, const v1::Limits& limits,
                         const StopToken& stop, WorkGraph* work, v1::Inlining* summary)
    : table_(table), stop_(stop), poll_(stop), work_(*work), summary_(*summary) {
  const Graph& graph = work_.original();
  for (const v1::Feed& feed : step.feeds()) {
    if (poll_.Tick()) break;
    const absl::string_view name = feed.name();
    const NodeId node = graph.Find(name.substr(0, name.rfind(':')));
    if (node != kNoNode) fed_.insert(node);
  }
  for (int32_t op = 0; op < graph.num_ops(); ++op) {
    kinds_.push_back(table_.KindOf(graph.op_name(op)));
  }
  bodies_.resize(table_.size());
  read_.resize(table_.size(), false);
  const auto size = static_cast<int64_t>(graph.bytes().size());
  nodes_left_ = limits.max_node_count() - graph.num_nodes();
  inputs_left_ = limits.max_input_count() - graph.num_inputs();
  bytes_left_ = std::min(std::min<int64_t>(limits.max_graph_bytes(), kMaxMessageBytes) - size,
                         std::max(kAlwaysAllowedBytes, kMaxInlinedGrowth * size));
  bound_bytes_left_ = bytes_left_;
}

absl::Status CallInliner::Run() {
  // New nodes are appended, so calls among them are visited later.
  for (NodeId id(0); id < work_.num_nodes(); ++id) {
    if (poll_.Tick()) return stop_.status("inline");
    const CallKind kind = KindOf(id);
    if (kind == CallKind::kNone) continue;
    // All fields of the node are read.
    if (poll_.Tick(static_cast<int64_t>(work_.inputs(id).size()))) return stop_.status("inline");
    Call call;
    const v1::KeptCallReason reason = Check(id, kind, &call);
    if (absl::Status s = stop_.status("inline"); !s.ok()) return s;
    if (reason != v1::KEPT_CALL_REASON_UNSPECIFIED) {
      Note(id, kind, reason);
      continue;
    }
    if (IsCall(kind)) {
      Replace(call);
    } else {
      Lower(call);
      lowered_loops_ |= kind == CallKind::kWhile;
    }
    if (absl::Status s = stop_.status("inline"); !s.ok()) return s;
    summary_.set_inlined_call_count(summary_.inlined_call_count() + 1);
  }
  return absl::OkStatus();
}

CallKind CallInliner::KindOf(NodeId id) const {
  if (work_.IsOriginal(id)) return kinds_[work_.original().op_id(id)];
  const WorkNode& node = work_.node(id);
  if (node.body_node == kNoNode) return node.kind;
  const InlineBody& body = *work_.expansion(node.expansion).body;
  return body.kinds[body.graph->op_id(node.body_node)];
}

CallInliner::Use CallInliner::UseOf(NodeId id) const {
  Use use;
  if (work_.IsOriginal(id)) {
    const Graph::Readers readers = work_.original().readers(id);
    use.at_all = !readers.empty();
    use.by_control = !readers.empty() && readers[0].port == kControl;
    if (!readers.empty()) use.last_port = readers[readers.size() - 1].port;
    return use;
  }
  const WorkNode& node = work_.node(id);
  use.at_all = true;
  if (node.body_node == kNoNode) {  // A branch: all results and the end are used.
    use.by_control = true;
    return use;
  }
  const Expansion& parent = work_.expansion(node.expansion);
  const Graph::Readers readers = parent.body->graph->readers(node.body_node);
  use.last_port = parent.body->last_port[node.body_node];
  use.by_control = (!readers.empty() && readers[0].port == kControl) ||
                   (parent.body->returns_control[node.body_node] && !parent.is_native &&
                    parent.output_control != kNoNode);
  return use;
}

void CallInliner::Note(NodeId id, CallKind kind, v1::KeptCallReason reason) {
  summary_.set_kept_call_count(summary_.kept_call_count() + 1);
  too_large_ |= reason == v1::KEPT_CALL_REASON_TOO_LARGE;
  if (summary_.kept_calls_size() == kMaxKeptCalls) return;
  v1::KeptCall* kept = summary_.add_kept_calls();
  kept->set_node(ShownName(work_.name(id)));
  kept->set_reason(reason);
  if (IsCall(kind)) kept->set_function(ShownBytes(CalledFunction(kind, work_.node_def(id))));
}

bool CallInliner::Admit(NodeId id, const InlinedSize& added) {
  const Graph& graph = work_.original();
  const auto name_size = static_cast<int64_t>(graph.name(id).size());
  const auto device_size = static_cast<int64_t>(graph.device(id).size());
  const auto node_size = static_cast<int64_t>(graph.node_bytes(id).size());
  // For each new node: the call that it comes from, and a device merged from two.
  int64_t bytes = added.BytesAt(name_size, name_size + device_size);
  bytes = SaturatingAdd(bytes, SaturatingMultiply(4, node_size) + kKeptNodeBytes);
  const Graph::Readers readers = graph.readers(id);
  NodeId last = kNoNode;
  for (uint32_t i = 0; i < readers.size(); ++i) {
    if (poll_.Tick()) return false;
    // A longer name, plus the old one in the record; the record of a node that waits for the call
    // holds its old bytes.
    bytes = SaturatingAdd(bytes, 3 * name_size + 2 * kResultNameBytes);
    if (readers[i].port == kControl && readers[i].node != last) {
      bytes = SaturatingAdd(bytes, static_cast<int64_t>(graph.node_bytes(readers[i].node).size()));
    }
    last = readers[i].node;
  }
  const int64_t nodes = added.nodes;
  const int64_t inputs = SaturatingAdd(added.inputs, 4 * graph.inputs(id).size());
  if (nodes > nodes_left_ || inputs > inputs_left_ || bytes > bytes_left_) return false;
  nodes_left_ -= nodes;
  inputs_left_ -= inputs;
  bytes_left_ -= bytes;
  return true;
}

const InlineBody* CallInliner::BodyOf(int32_t function) {
  if (!read_[function]) {
    read_[function] = true;
    bodies_[function] = ReadBody(table_, function, stop_, &function_results_);
  }
  return bodies_[function].get();
}

v1::KeptCallReason CallInliner::Check(NodeId id, CallKind kind, Call* call) {
  if (kind == CallKind::kOther) return v1::KEPT_CALL_REASON_OTHER_KIND;
  if (!IsCall(kind)) return CheckLowered(id, kind, call);
  if (work_.IsOriginal(id) && fed_.contains(id)) return v1::KEPT_CALL_REASON_FED;
  call->id = id;
  call->kind = kind;
  call->node_def = work_.node_def(id);
  const int32_t number = table_.Find(CalledFunction(kind, call->node_def));
  if (number == FunctionTable::kNoFunction) return v1::KEPT_CALL_REASON_NO_FUNCTION;
  const FunctionTable::Function& function = table_[number];
  if (function.kept != v1::KEPT_CALL_REASON_UNSPECIFIED) return function.kept;
  WireReader reader(call->node_def);
  while (reader.Next()) {
    if (!reader.IsBytes(node_def::kAttr)) continue;
    const AttrEntry attr = ReadAttrEntry(reader.bytes());
    if (IsCompiledAttr(attr.key, attr.value)) return v1::KEPT_CALL_REASON_COMPILED;
    if (attr.key == "_noinline" && AttrBool(attr.value).value_or(false)) {
      return v1::KEPT_CALL_REASON_NOINLINE;
    }
  }
  call->body = BodyOf(number);
  if (call->body == nullptr) return v1::KEPT_CALL_REASON_BAD_FUNCTION;
  if (call->body->has_attrs) call->attrs = AttrsOfCall(kind, call->node_def);
  if (call->attrs.size() > kMaxAttributes) return v1::KEPT_CALL_REASON_BAD_FUNCTION;

  const Use use = UseOf(id);
  const absl::Span<const Tensor> inputs = work_.inputs(id);
  call->num_data = static_cast<int>(
      std::find_if(inputs.begin(), inputs.end(), [](Tensor t) { return t.is_control(); }) -
      inputs.begin());
  if (call->num_data != static_cast<int>(call->body->arguments.size()) ||
      use.last_port >= static_cast<int>(call->body->results.size())) {
    return v1::KEPT_CALL_REASON_BAD_FUNCTION;
  }
  if (const auto reason = CheckTypes(*call, &call->input_types);
      reason != v1::KEPT_CALL_REASON_UNSPECIFIED) {
    return reason;
  }
  if (call->body->has_effects) {
    const bool reach = kind == CallKind::kNative ? call->body->effects_reach_results
                                                 : call->body->effects_reach_controls;
    // A branch runs as a whole.
    if (kind != CallKind::kBranch && (!reach || (!use.by_control && use.at_all))) {
      return v1::KEPT_CALL_REASON_SIDE_EFFECTS;
    }
  }
  if (call->body->has_dead_results) return v1::KEPT_CALL_REASON_DEAD_RESULTS;
  if (call->body->has_attrs && !BindNodes(number, call)) return v1::KEPT_CALL_REASON_BAD_FUNCTION;
  if (work_.IsOriginal(id) && !Admit(id, function.size)) return v1::KEPT_CALL_REASON_TOO_LARGE;
  return v1::KEPT_CALL_REASON_UNSPECIFIED;
}

// As ValidateInlining of TensorFlow's common_runtime/inline_function_utils.cc: the call and the
// function must agree on the types of inputs and outputs.
v1::KeptCallReason CallInliner::CheckTypes(const Call& call, std::vector<DataType>* input_types) {
  const InlineBody& body = *call.body;
  const auto agree = [&call, this](absl::string_view key, const std::vector<BorderType>& border) {
    const auto list = FindAttr(call.node_def, key);
    if (!list.has_value()) return border.empty();
    size_t i = 0;
    ForEachAttrType(*list, [&](DataType type) {
      if (poll_.Tick()) return false;
      if (i >= border.size() || TypeOf(border[i], call) != type) i = border.size();
      return ++i <= border.size();
    });
    return i == border.size();
  };
  bool known = !body.has_bad_result;
  for (absl::string_view attr : body.result_attrs) {
    if (!known) break;
    known = TypeOf({kDtInvalid, attr}, call) != kDtInvalid;
  }
  for (const BorderType& type : body.arguments) {
    input_types->push_back(TypeOf(type, call));
    known = known && input_types->back() != kDtInvalid;
  }
  if (!known) return v1::KEPT_CALL_REASON_BAD_FUNCTION;
  if (call.kind == CallKind::kPartitioned &&
      (!agree("Tin", body.arguments) || !agree("Tout", body.results))) {
    return v1::KEPT_CALL_REASON_BAD_FUNCTION;
  }
  return v1::KEPT_CALL_REASON_UNSPECIFIED;
}

DataType CallInliner::TypeOf(const BorderType& type, const Call& call) const {
  DataType dtype = type.dtype;
  if (!type.attr.empty()) {
    const auto found = call.attrs.find(type.attr);
    dtype = found == call.attrs.end() ? kDtInvalid : AttrType(found->second);
  }
  return dtype > kRefOffset ? static_cast<DataType>(dtype - kRefOffset) : dtype;
}

bool CallInliner::BindNodes(int32_t function, Call* call) {
  // Most calls of a function have the same attributes.
  std::string key;
  AppendVarint(function, &key);
  for (const auto& [name, value] :
       std::map<absl::string_view, absl::string_view>(call->attrs.begin(), call->attrs.end())) {
    AppendBytesField(map_entry::kKey, name, &key);
    AppendBytesField(map_entry::kValue, value, &key);
  }
  const auto [known, is_new] = bound_.try_emplace(std::move(key));
  call->bound_nodes = known->second.get();
  if (!is_new) return call->bound_nodes != nullptr;
  const Graph& graph = *call->body->graph;
  auto nodes = std::make_unique<BoundNodes>();
  std::string bound;
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (poll_.Tick()) return false;
    bound.clear();
    const auto max_bytes = static_cast<size_t>(std::max<int64_t>(bound_bytes_left_, 0));
    if (!BindAttrs(graph.node_bytes(id), call->attrs, max_bytes, &bound)) return false;
    bound_bytes_left_ -= static_cast<int64_t>(bound.size());
    nodes->push_back(work_.Keep(bound));
  }
  known->second = std::move(nodes);
  call->bound_nodes = known->second.get();
  return true;
}

// As AddStrictInputSemantics of function_optimizer.cc.
void CallInliner::AddStrictInputs(const Call& call, std::vector<Tensor>* controls) {
  const absl::Span<const Tensor> inputs = work_.inputs(call.id);
  bool strict = false;
  for (int i = 0; i < call.num_data; ++i) {
    if (poll_.Tick()) return;
    if (controls->empty() && call.input_types[i] == kDtResource) strict = true;
    const NodeId source = work_.Resolve(inputs[i]).node;
    if (!absl::EndsWith(work_.op(source), "Enter")) continue;
    const auto [known, is_new] = is_constant_.try_emplace(source);
    if (is_new) {
      const auto constant = FindAttr(work_.node_def(source), "is_constant");
      known->second = constant.has_value() && AttrBool(*constant).value_or(false);
    }
    strict |= known->second;
  }
  if (!strict) return;
  absl::flat_hash_set<NodeId> sources;
  for (Tensor control : *controls) {
    if (poll_.Tick()) return;
    sources.insert(work_.Resolve(control).node);
  }
  for (int i = 0; i < call.num_data; ++i) {
    if (poll_.Tick()) return;
    const NodeId source = work_.Resolve(inputs[i]).node;
    if (!sources.insert(source).second || work_.op(source) == "Placeholder") continue;
    controls->push_back({inputs[i].node, ControlOf(inputs[i].port)});
  }
}

// As AddFrameForwardingControlEdge of function_optimizer.cc: nodes without inputs would run outside
// the loop that contains the call.
absl::optional<Tensor> CallInliner::FrameControl(NodeId call) {
  const Graph& graph = work_.original();
  if (!work_.IsOriginal(call) || !graph.has_control_flow()) return absl::nullopt;
  if (!frames_known_) {
    frames_known_ = true;
    auto topology = Topology::Build(graph, stop_);
    if (topology.ok()) {
      auto frames = ControlFlowAnalysis::Build(graph, *topology, stop_);
      if (frames.ok()) frames_ = *std::move(frames);
    }
    if (frames_.has_value()) FindFrameControls();
  }
  if (!frames_.has_value()) return absl::nullopt;
  const FrameId frame = frames_->input_frame(call);
  if (frame == kRootFrame || frame == kUnknownFrame) return absl::nullopt;
  const auto found = frame_controls_.find(frame);
  if (found == frame_controls_.end()) return absl::nullopt;
  return found->second;
}

// The first of each frame. Incomplete if stopped.
void CallInliner::FindFrameControls() {
  const Graph& graph = work_.original();
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (poll_.Tick()) return;
    const FrameId frame = frames_->output_frame(id);
    if (graph.op_info(id).control_flow != ControlFlow::kEnter || frame_controls_.contains(frame)) {
      continue;
    }
    const auto constant = graph.attr(id, "is_constant");
    if (constant.has_value() && AttrBool(*constant).value_or(false)) {
      frame_controls_[frame] = {id, kControl};
      continue;
    }
    const Graph::Readers readers = graph.readers(id);
    for (uint32_t i = 0; i < readers.size(); ++i) {
      if (poll_.Tick()) return;
      if (readers[i].port != kControl &&
          graph.op_info(readers[i].node).control_flow == ControlFlow::kMerge) {
        frame_controls_[frame] = {readers[i].node, kControl};
        break;
      }
    }
  }
}

bool CallInliner::StatesShapes(NodeId id) {
  const auto [known, is_new] = states_shapes_.try_emplace(id);
  if (is_new) known->second = FindAttr(work_.node_def(id), kOutputShapesAttr).has_value();
  return known->second;
}

absl::string_view CallInliner::DeviceOf(absl::string_view device, absl::string_view call_device) {
  if (device.empty() || device == call_device) return call_device;
  const auto [known, is_new] = devices_.try_emplace({device, call_device});
  if (is_new) known->second = work_.Keep(MergedDevice(device, call_device));
  return known->second;
}

bool CallInliner::IsReference(const Graph& graph, Tensor tensor) {
  const auto [found, is_new] = references_.try_emplace({&graph, tensor.node});
  References& known = found->second;
  if (is_new) {
    // A list of types has a byte for each; a number of outputs may be any.
    const auto at_most = static_cast<int64_t>(graph.node_bytes(tensor.node).size());
    known.count = static_cast<int32_t>(
        std::min<int64_t>(std::max(CountOutputs(graph, tensor.node), 0), at_most));
    std::vector<int32_t> ports(known.count);
    std::iota(ports.begin(), ports.end(), 0);
    const std::vector<OutputType> types = GetOutputTypes(graph, tensor.node, ports);
    for (int32_t port : ports) {
      if (poll_.Tick()) break;
      if (types[port].is_ref) known.ports.insert(port);
    }
  }
  return tensor.port >= 0 && tensor.port < known.count ? known.ports.contains(tensor.port)
                                                       : GetOutputType(graph, tensor).is_ref;
}

bool CallInliner::IsReference(Tensor tensor, const InlineBody& current) {
  if (work_.IsOriginal(tensor.node)) return IsReference(work_.original(), tensor);
  const WorkNode& node = work_.node(tensor.node);
  if (node.body_node == kNoNode) return false;
  // The call being replaced has no expansion yet.
  const InlineBody& body =
      node.expansion < work_.num_expansions() ? *work_.expansion(node.expansion).body : current;
  return IsReference(*body.graph, {node.body_node, tensor.port});
}

// As InlineFunctionBody of inline_function_utils.cc.
void CallInliner::Replace(const Call& call) {
  const InlineBody& body = *call.body;
  const Graph& graph = *body.graph;
  const bool is_original = work_.IsOriginal(call.id);
  const absl::string_view call_name = work_.name(call.id);
  const absl::string_view device = work_.device(call.id);
  const Use use = UseOf(call.id);
  Expansion made;
  made.call = call.id;
  made.body = &body;
  made.prefix = work_.Keep(absl::StrCat(call_name, "/"));
  made.is_native = call.kind == CallKind::kNative;
  const int32_t number = work_.num_expansions();

  WorkNode base;
  base.top_call = is_original ? call.id : work_.node(call.id).top_call;
  base.colocated_with = {kNoNode, 0};
  const std::vector<Tensor> inputs(work_.inputs(call.id).begin(), work_.inputs(call.id).end());

  std::vector<Tensor> controls(inputs.begin() + call.num_data, inputs.end());
  AddStrictInputs(call, &controls);
  if (controls.empty()) {
    if (const auto frame = FrameControl(call.id)) controls.push_back(*frame);
  }
  if (!controls.empty()) {
    WorkNode node = base;
    node.name = work_.BorderName(call_name, "input_control_node");
    node.op = "NoOp";
    node.device = device;
    made.input_control = work_.Add(node, controls);
  }
  const Tensor input_control{made.input_control, kControl};

  std::string attrs;
  const auto identity = [&](const char* what, DataType dtype, absl::string_view shape) {
    WorkNode node = base;
    node.name = work_.BorderName(call_name, what);
    node.op = "Identity";
    attrs.clear();
    AppendAttrField("T", TypeAttr(dtype), &attrs);
    if (!shape.empty()) AppendAttrField(kOutputShapesAttr, ShapesAttr(shape), &attrs);
    node.attrs = work_.Keep(attrs);
    return node;
  };
  made.first_argument = NodeId(work_.num_nodes());
  for (int i = 0; i < call.num_data; ++i) {
    if (Stops(call.id)) return;
    WorkNode node = identity("input", TypeOf(body.arguments[i], call), {});
    node.device = made.is_native ? device : work_.device(work_.Resolve(inputs[i]).node);
    if (!made.is_native) node.colocated_with = inputs[i];
    std::vector<Tensor> reads = {inputs[i]};
    if (made.input_control != kNoNode) reads.push_back(input_control);
    node.forwards = made.input_control == kNoNode && !made.is_native &&
                    !IsReference(work_.Source(inputs[i]), body);
    work_.Add(node, reads);
  }

  made.first_node = NodeId(work_.num_nodes());
  std::vector<absl::string_view> devices(graph.num_devices(), device);
  for (DeviceId i(0); i < graph.num_devices() && !made.is_native; ++i) {
    if (poll_.Tick()) return;
    devices[i] = DeviceOf(graph.device_name(i), device);
  }
  std::vector<Tensor> reads;
  for (NodeId id(body.arguments.size()); id < graph.num_nodes(); ++id) {
    if (Stops(call.id)) return;
    const CallKind kind = body.kinds[graph.op_id(id)];
    const bool calls = IsCall(kind) || graph.op(id) == "SymbolicGradient";
    WorkNode node = base;
    node.name = work_.UniqueName(made.prefix, graph.name(id));
    node.op = graph.op(id);
    node.device = devices[graph.device_id(id)];
    node.node_def = call.bound_nodes == nullptr ? graph.node_bytes(id) : (*call.bound_nodes)[id];
    node.body_node = id;
    node.expansion = number;
    reads.clear();
    bool waits = false;
    for (Tensor input : graph.inputs(id)) {
      if (poll_.Tick()) return;
      reads.push_back({made.NodeOf(input.node), input.port});
      waits |= input.is_control();
    }
    // Nothing in the body may run where the call would not have.
    if (made.input_control != kNoNode && (reads.empty() || (calls && !waits))) {
      reads.push_back(input_control);
    }
    work_.Add(node, reads);
  }

  const std::vector<absl::string_view> shapes = StatedShapes(call.node_def, &poll_);
  std::vector<Tensor> ends;  // Nodes that the end of the call waits for.
  for (size_t i = 0; i < body.results.size(); ++i) {
    if (Stops(call.id)) return;
    WorkNode node = identity("output", TypeOf(body.results[i], call),
                             shapes.size() == body.results.size() ? shapes[i] : "");
    const Tensor source{made.NodeOf(body.result_tensors[i].node), body.result_tensors[i].port};
    node.device = made.is_native ? device : absl::string_view();
    if (!made.is_native) node.colocated_with = source;
    const bool shape_is_new =
        shapes.size() == body.results.size() && !StatesShapes(work_.Source(source).node);
    node.forwards = !made.is_native && !shape_is_new && !IsReference(work_.Source(source), body);
    const NodeId result = work_.Add(node, {source});
    made.results.push_back({result, 0});
    made.result_types.push_back(TypeOf(body.results[i], call));
    if (made.is_native) ends.push_back({result, kControl});
  }
  if (is_original || use.by_control) {
    if (!made.is_native) {
      for (NodeId id : body.control_returns) ends.push_back({made.NodeOf(id), kControl});
    }
    if (ends.empty() && made.input_control != kNoNode) ends.push_back(input_control);
    WorkNode node = base;
    node.name = work_.BorderName(call_name, "output_control_node");
    node.op = "NoOp";
    node.device = device;
    made.output_control = work_.Add(node, ends);
  }
  work_.Replace(made);
}

}  // namespace spillway::core
