#include "client_lib/format/anonymize.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client_lib/format/graph_text.h"
#include "client_lib/format/message_fields.h"
#include "client_lib/format/private_names.h"
#include "google/protobuf/arena.h"
#include "nlohmann/json.hpp"
#include "rewrite_core/analysis/machine/device_name.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/wire_writer.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/op_registry.h"
#include "spillway/format/tensorflow_graph.pb.h"

namespace spillway::format {
namespace {

using google::protobuf::Arena;
using Json = nlohmann::ordered_json;

// Integer constants up to this size are sizes, axes and permutations. TensorFlow's tensors have at
// most 8 dimensions in most kernels; a permutation and a pair of paddings fit.
constexpr int64_t kMaxKeptElements = 16;
constexpr char kColocation[] = "loc:@";

bool IsNumber(absl::string_view text) {
  return !text.empty() && absl::c_all_of(text, [](char c) { return absl::ascii_isdigit(c); });
}

// Letters, commas, dots and an arrow: it shows how dimensions combine, and nothing else.
bool IsEquation(absl::string_view text) {
  return absl::c_all_of(
      text, [](char c) { return absl::ascii_isalpha(c) || absl::StrContains(",.-> ", c); });
}

bool OpIsKnown(absl::string_view op) { return core::FindOp(op).known; }

// All methods change the message in place. Recursion is as deep as messages are nested, which
// protobuf's parser limits to 100; an undo record, parsed separately, can double that.
class Anonymizer {
 public:
  // Must be called for all graphs before the first Run.
  void NoteNames(const GraphDef& graph) {
    for (const NodeDef& node : graph.node()) names_.NoteScopes(node.name());
    for (const FunctionDef& function : graph.library().function()) {
      function_names_.insert(function.signature().name());
      for (const NodeDef& node : function.node_def()) names_.NoteScopes(node.name());
    }
  }

  void Run(GraphDef* graph) {
    graph->DiscardUnknownFields();
    graph->clear_debug_info();
    // Names first: strings may refer to nodes that come later.
    for (const NodeDef& node : graph->node()) names_.Map(node.name());
    for (const FunctionDef& function : graph->library().function()) {
      for (const NodeDef& node : function.node_def()) names_.Map(node.name());
    }
    const OutputNames no_function;
    for (NodeDef& node : *graph->mutable_node()) Rename(no_function, &node);
    FunctionDefLibrary* library = graph->mutable_library();
    for (FunctionDef& function : *library->mutable_function()) Rename(&function);
    for (GradientDef& gradient : *library->mutable_gradient()) {
      gradient.set_function_name(functions_.Map(gradient.function_name()));
      gradient.set_gradient_func(functions_.Map(gradient.gradient_func()));
    }
    for (RegisteredGradient& gradient : *library->mutable_registered_gradients()) {
      gradient.set_gradient_func(functions_.Map(gradient.gradient_func()));
      gradient.set_registered_op_type(Op(gradient.registered_op_type()));
    }
    if (library->ByteSizeLong() == 0) graph->clear_library();
  }

  std::string MappingJson() const {
    Json all;
    const auto add = [&all](const char* kind, const NameMap& map) {
      Json& pairs = all[kind] = Json::object();
      for (const auto& [from, to] : map.pairs()) pairs[to] = from;
    };
    add("scopes", names_.scopes());
    add("names", names_.leaves());
    add("functions", functions_);
    add("ops", ops_);
    add("attributes", attributes_);
    add("internal_attributes", internal_attributes_);
    add("strings", strings_);
    add("jobs", jobs_);
    add("device_types", device_types_);
    return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  // The nodes of a function whose outputs have TensorFlow's names.
  using OutputNames = absl::flat_hash_set<std::string>;

  // Maps the type of a node: an op, or the name of a function.
  std::string Op(const std::string& op) {
    if (function_names_.contains(op)) return functions_.Map(op);
    return OpIsKnown(op) ? op : ops_.Map(op);
  }

  // `op`: that of the node that has the attribute; not known for functions.
  std::string Attribute(const core::OpInfo& op, const std::string& name) {
    if (IsPublicAttribute(op, name)) return name;
    return absl::StartsWith(name, "_") ? internal_attributes_.Map(name) : attributes_.Map(name);
  }

  // `node`, `node:1`, `^node`; in a function also `node:output:1`.
  std::string Input(const OutputNames& known, absl::string_view input) {
    std::string mapped;
    if (absl::ConsumePrefix(&input, "^")) mapped = "^";
    const size_t colon = std::min(input.find(':'), input.size());
    const std::string node(input.substr(0, colon));
    mapped += names_.Map(node);
    absl::string_view rest = input.substr(colon);
    while (absl::ConsumePrefix(&rest, ":")) {
      const absl::string_view part = rest.substr(0, rest.find(':'));
      absl::StrAppend(
          &mapped, ":",
          IsNumber(part) || known.contains(node) ? std::string(part) : names_.Map(part));
      rest.remove_prefix(part.size());
    }
    return mapped;
  }

  std::string Device(const std::string& device) {
    core::DeviceName name = core::ParseDeviceName(device);
    std::string mapped;
    if (!name.job.empty()) {
      absl::StrAppend(&mapped, "/job:", IsPublicJob(name.job) ? name.job : jobs_.Map(name.job));
    }
    if (IsNumber(name.replica)) absl::StrAppend(&mapped, "/replica:", name.replica);
    if (IsNumber(name.task)) absl::StrAppend(&mapped, "/task:", name.task);
    if (!name.type.empty()) {
      absl::StrAppend(&mapped, "/device:",
                      IsPublicDeviceType(name.type) ? name.type : device_types_.Map(name.type), ":",
                      IsNumber(name.index) ? name.index : "*");
    }
    return mapped;
  }

  void Rename(const OutputNames& known, NodeDef* node) {
    const std::string op = node->op();
    node->set_name(names_.Map(node->name()));
    node->set_op(Op(op));
    for (std::string& input : *node->mutable_input()) input = Input(known, input);
    node->set_device(Device(node->device()));
    node->clear_experimental_debug_info();
    Rename(node->mutable_experimental_type());
    if (node->experimental_type().ByteSizeLong() == 0) node->clear_experimental_type();
    Rename(core::FindOp(op), node->mutable_attr());
  }

  void Rename(FunctionDef* function) {
    OutputNames known;
    for (const NodeDef& node : function->node_def()) {
      if (OpIsKnown(node.op())) known.insert(node.name());
    }
    if (function->has_signature()) Rename(function->mutable_signature());
    for (NodeDef& node : *function->mutable_node_def()) Rename(known, &node);
    Rename(core::OpInfo(), function->mutable_attr());
    for (auto& entry : *function->mutable_arg_attr()) {
      Rename(core::OpInfo(), entry.mutable_value()->mutable_attr());
    }
    for (auto& entry : *function->mutable_ret()) {
      entry.set_key(names_.Map(entry.key()));
      entry.set_value(Input(known, entry.value()));
    }
    for (auto& entry : *function->mutable_control_ret()) {
      entry.set_key(names_.Map(entry.key()));
      entry.set_value(names_.Map(entry.value()));
    }
  }

  void Rename(OpDef* signature) {
    signature->set_name(functions_.Map(signature->name()));
    signature->clear_summary();
    signature->clear_description();
    if (signature->has_deprecation()) signature->mutable_deprecation()->clear_explanation();
    for (OpDef::ArgDef& arg : *signature->mutable_input_arg()) Rename(&arg);
    for (OpDef::ArgDef& arg : *signature->mutable_output_arg()) Rename(&arg);
    for (std::string& name : *signature->mutable_control_output()) name = names_.Map(name);
    for (OpDef::AttrDef& attr : *signature->mutable_attr()) {
      const core::OpInfo none;
      if (attr.has_default_value()) Rename(none, attr.name(), attr.mutable_default_value());
      if (attr.has_allowed_values()) Rename(none, attr.name(), attr.mutable_allowed_values());
      attr.set_name(Attribute(none, attr.name()));
      attr.clear_description();
      if (!IsAttributeType(attr.type())) attr.clear_type();
    }
  }

  // `type`, `list(int)`, ...
  static bool IsAttributeType(absl::string_view type) {
    absl::ConsumePrefix(&type, "list(");
    absl::ConsumeSuffix(&type, ")");
    constexpr absl::string_view kTypes[] = {"any",   "bool",   "float",  "func", "int",
                                            "shape", "string", "tensor", "type"};
    return absl::c_linear_search(kTypes, type);
  }

  void Rename(OpDef::ArgDef* arg) {
    arg->set_name(names_.Map(arg->name()));
    arg->clear_description();
    arg->set_type_attr(Attribute({}, arg->type_attr()));
    arg->set_number_attr(Attribute({}, arg->number_attr()));
    arg->set_type_list_attr(Attribute({}, arg->type_list_attr()));
    for (auto& handle : *arg->mutable_handle_data()) Rename(handle.mutable_shape());
    if (arg->has_experimental_full_type()) Rename(arg->mutable_experimental_full_type());
  }

  template <typename Entries>
  void Rename(const core::OpInfo& op, Entries* attrs) {
    for (auto& entry : *attrs) {
      Rename(op, entry.key(), entry.mutable_value());
      entry.set_key(Attribute(op, entry.key()));
    }
  }

  void Rename(const core::OpInfo& op, const std::string& key, AttrValue* value) {
    switch (value->value_case()) {
      case AttrValue::kS:
        value->set_s(String(op, key, value->s()));
        break;
      case AttrValue::kShape:
        Rename(value->mutable_shape());
        break;
      case AttrValue::kTensor:
        DropValues(value->mutable_tensor());
        break;
      case AttrValue::kFunc:
        Rename(value->mutable_func());
        break;
      case AttrValue::kPlaceholder:
        value->set_placeholder(Attribute({}, value->placeholder()));
        break;
      case AttrValue::kList:
        for (std::string& s : *value->mutable_list()->mutable_s()) s = String(op, key, s);
        for (auto& shape : *value->mutable_list()->mutable_shape()) Rename(&shape);
        for (auto& tensor : *value->mutable_list()->mutable_tensor()) DropValues(&tensor);
        for (auto& func : *value->mutable_list()->mutable_func()) Rename(&func);
        break;
      default:
        break;  // Numbers and types.
    }
  }

  void Rename(NameAttrList* function) {
    function->set_name(functions_.Map(function->name()));
    Rename(core::OpInfo(), function->mutable_attr());
  }

  static void Rename(TensorShapeProto* shape) {
    for (auto& dim : *shape->mutable_dim()) dim.clear_name();
  }

  static void Rename(FullTypeDef* type) {
    if (type->attr_case() == FullTypeDef::kS) type->clear_s();
    for (FullTypeDef& arg : *type->mutable_args()) Rename(&arg);
  }

  std::string String(const core::OpInfo& op, const std::string& key, const std::string& text) {
    if (key == core::kUndoAttr) return UndoItem(text);
    absl::string_view name = text;
    if (absl::ConsumePrefix(&name, kColocation)) return absl::StrCat(kColocation, names_.Map(name));
    if (text.empty() || IsKnownConstant(key, text)) return text;
    if (op.known && key == "equation" && IsEquation(text)) return text;
    // Serialized messages and executor names: TensorFlow would refuse unknown ones.
    if (key == "config_proto" || key == "executor_type") return "";
    if (function_names_.contains(text)) return functions_.Map(text);
    return names_.HasAll(text) ? names_.Map(text) : strings_.Map(text);
  }

  // An item of an undo record (rewrite_core/graph/undo.h).
  std::string UndoItem(const std::string& item) {
    absl::string_view rest = item;
    if (item == "added") return item;
    if (absl::StartsWith(item, "^")) return Input({}, item);
    if (absl::ConsumePrefix(&rest, "raw=")) {
      // A record holds a node as it was before the rewrite, which has no record itself. A nested
      // one is forged, and could be as deep as its size allows.
      GraphDef graph;
      if (in_undo_record_ || !graph.ParseFromArray(rest.data(), static_cast<int>(rest.size()))) {
        return "raw=";
      }
      in_undo_record_ = true;
      graph.DiscardUnknownFields();
      GraphDef nodes;
      for (NodeDef& node : *graph.mutable_node()) {
        Rename({}, &node);
        nodes.add_node()->Swap(&node);
      }
      in_undo_record_ = false;
      return absl::StrCat("raw=", nodes.SerializeAsString());
    }
    const size_t equals = std::min(item.find('='), item.size());
    if (equals == item.size() || !IsNumber(rest.substr(0, equals))) return strings_.Map(item);
    return absl::StrCat(rest.substr(0, equals), "=", Input({}, rest.substr(equals + 1)));
  }

  static bool IsKept(const TensorProto& tensor) {
    if (tensor.dtype() != DT_INT32 && tensor.dtype() != DT_INT64) return false;
    const TensorShapeProto& shape = tensor.tensor_shape();
    if (shape.unknown_rank() || shape.dim_size() > 1) return false;
    const int64_t count = shape.dim_size() == 1 ? shape.dim(0).size() : 1;
    if (count < 0 || count > kMaxKeptElements) return false;
    // Bytes beyond the elements, or of another type, may hold anything.
    const bool is_int32 = tensor.dtype() == DT_INT32;
    const size_t bytes = count * (is_int32 ? sizeof(int32_t) : sizeof(int64_t));
    return (tensor.tensor_content().empty() || tensor.tensor_content().size() == bytes) &&
           tensor.int_val_size() <= (is_int32 ? count : 0) &&
           tensor.int64_val_size() <= (is_int32 ? 0 : count);
  }

  static void DropValues(TensorProto* tensor) {
    TensorProto kept;
    kept.set_dtype(tensor->dtype());
    kept.set_version_number(tensor->version_number());
    if (tensor->has_tensor_shape()) {
      *kept.mutable_tensor_shape() = tensor->tensor_shape();
      Rename(kept.mutable_tensor_shape());
    }
    if (IsKept(*tensor)) {
      kept.set_tensor_content(tensor->tensor_content());
      *kept.mutable_int_val() = tensor->int_val();
      *kept.mutable_int64_val() = tensor->int64_val();
    }
    *tensor = std::move(kept);
  }

  bool in_undo_record_ = false;
  PathMap names_;
  absl::flat_hash_set<std::string> function_names_;
  NameMap functions_{"f"};
  NameMap ops_{"CustomOp"};
  NameMap attributes_{"attr"};
  NameMap internal_attributes_{"_attr"};
  NameMap strings_{"str"};
  NameMap jobs_{"job"};
  NameMap device_types_{"DEVICE"};
};

// A file of `format` that contains only these graphs, in the form of that file.
std::string Wrap(GraphFormat format, const std::vector<std::string>& graphs) {
  std::string out;
  switch (format) {
    case GraphFormat::kGraphDef:
    case GraphFormat::kGraphDefText:
      return graphs[0];
    case GraphFormat::kMetaGraph:
      core::AppendBytesField(meta_graph_def::kGraph, graphs[0], &out);
      return out;
    case GraphFormat::kMetaGraphText:
      return absl::StrCat("graph_def {\n", graphs[0], "}\n");
    case GraphFormat::kSavedModel:
      core::AppendVarintField(saved_model::kSchemaVersion, 1, &out);
      for (const std::string& graph : graphs) {
        std::string meta_graph;
        core::AppendBytesField(meta_graph_def::kGraph, graph, &meta_graph);
        core::AppendBytesField(saved_model::kMetaGraphs, meta_graph, &out);
      }
      return out;
    case GraphFormat::kSavedModelText:
      out = "saved_model_schema_version: 1\n";
      for (const std::string& graph : graphs) {
        absl::StrAppend(&out, "meta_graphs {\n  graph_def {\n", graph, "  }\n}\n");
      }
      return out;
  }
  return out;
}

// The number of messages around a graph in a file of `format`.
int DepthOf(GraphFormat format) { return IsGraphDef(format) ? 0 : IsSavedModel(format) ? 2 : 1; }

}  // namespace

absl::StatusOr<Anonymized> Anonymize(const GraphFile& file) {
  Arena arena;
  Anonymizer anonymizer;
  std::vector<GraphDef*> messages;
  for (size_t i = 0; i < file.num_graphs(); ++i) {
    messages.push_back(Arena::CreateMessage<GraphDef>(&arena));
    const absl::string_view graph = file.graph(i);
    if (!messages[i]->ParseFromArray(graph.data(), static_cast<int>(graph.size()))) {
      return file.WithName(i, core::InvalidError(v1::ERROR_REASON_MALFORMED_GRAPH,
                                                 "the graph is damaged: protobuf cannot read it"));
    }
    anonymizer.NoteNames(*messages[i]);
  }
  std::vector<std::string> graphs;
  for (GraphDef* message : messages) {
    anonymizer.Run(message);
    graphs.push_back(message->SerializeAsString());
    message->Clear();
    if (!IsText(file.format())) continue;
    absl::StatusOr<std::string> text = GraphToText(graphs.back(), DepthOf(file.format()));
    if (!text.ok()) return text.status();
    graphs.back() = *std::move(text);
  }
  return Anonymized{Wrap(file.format(), graphs), anonymizer.MappingJson()};
}

}  // namespace spillway::format
