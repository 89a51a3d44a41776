#include "client_lib/tensorflow_plugin/graph_facts.h"

#include <algorithm>
#include <cctype>

#include "client_lib/tensorflow_plugin/wire.h"

namespace spillway::tensorflow_plugin {
namespace {

// Field numbers of tensorflow/core/framework/graph.proto and node_def.proto.
constexpr uint32_t kGraphNode = 1, kGraphLibrary = 2;
constexpr uint32_t kNodeName = 1, kNodeOp = 2, kNodeDevice = 4, kNodeAttr = 5, kAttrKey = 1;
// And of function.proto and op_def.proto; an attribute is an entry of a map with kAttrKey.
constexpr uint32_t kLibraryFunction = 1, kFunctionSignature = 1, kFunctionAttr = 5;
constexpr uint32_t kSignatureControlOutput = 20, kAttrValue = 2;

// The attribute of a function that XLA compiles (kXlaMustCompileAttr in
// tensorflow/compiler/jit/defs.cc), and an AttrValue that is true.
constexpr std::string_view kXlaAttribute = "_XlaMustCompile", kTrue = "\x28\x01";

// The attribute of every node edited by Spillway; names of swap nodes of TFLMS (and ours).
constexpr std::string_view kUndoAttribute = "_spillway_undo";
constexpr std::string_view kSwapName = "lms/swap";

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// ReluGrad, Conv2DBackpropInput, ...; ResourceApplyAdam, ApplyMomentum, AssignSubVariableOp, ...
bool IsOfTraining(std::string_view op) {
  if (op.find("Grad") != op.npos || op.find("Backprop") != op.npos) return true;
  for (const std::string_view update :
       {"Apply", "ResourceApply", "SparseApply", "ResourceSparseApply", "AssignSub"}) {
    if (StartsWith(op, update)) return true;
  }
  return false;
}

// The end of a device name that says which device of the task it is: "CPU:0".
std::string_view ShortName(std::string_view device) {
  const size_t slash = device.rfind('/');
  std::string_view name = slash == device.npos ? device : device.substr(slash + 1);
  if (StartsWith(name, "device:")) name.remove_prefix(std::string_view("device:").size());
  return name;
}

bool SameText(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

// "loss" of "loss:0".
std::string_view NodeOf(std::string_view tensor) { return tensor.substr(0, tensor.find(':')); }

struct Node {
  std::string_view name, op, device;
  bool edited = false;
};

bool ReadNode(std::string_view bytes, Node* node) {
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.IsBytes(kNodeName)) node->name = reader.payload();
    if (reader.IsBytes(kNodeOp)) node->op = reader.payload();
    if (reader.IsBytes(kNodeDevice)) node->device = reader.payload();
    if (reader.IsBytes(kNodeAttr)) {
      WireReader entry(reader.payload());
      while (entry.Next()) {
        node->edited =
            node->edited || (entry.IsBytes(kAttrKey) && entry.payload() == kUndoAttribute);
      }
    }
  }
  return reader.ok();
}

// Whether a function's effects, which are named like the nodes that have them, are those of a step:
// updates, or a sum within some scope (`SGD/AssignAddVariableOp_1`); those of metrics have none.
bool UpdatesWeights(std::string_view effect) {
  const size_t scope = effect.rfind('/');
  if (scope == effect.npos) return IsOfTraining(effect);
  const std::string_view name = effect.substr(scope + 1);
  return IsOfTraining(name) || StartsWith(name, "AssignAddVariableOp");
}

// Whether XLA compiles a function that trains. Of such a function Grappler is shown the signature
// alone, in which the results and effects are (MinimizeGraph's stubs in MetaOptimizer,
// meta_optimizer.cc).
bool IsXlaStep(std::string_view function) {
  bool xla = false, trains = false;
  for (WireReader reader(function); reader.Next();) {
    if (reader.IsBytes(kFunctionSignature)) {
      for (WireReader field(reader.payload()); field.Next();) {
        trains =
            trains || (field.IsBytes(kSignatureControlOutput) && UpdatesWeights(field.payload()));
      }
    }
    if (!reader.IsBytes(kFunctionAttr)) continue;
    std::string_view key, value;
    for (WireReader entry(reader.payload()); entry.Next();) {
      if (entry.IsBytes(kAttrKey)) key = entry.payload();
      if (entry.IsBytes(kAttrValue)) value = entry.payload();
    }
    xla = xla || (key == kXlaAttribute && value == kTrue);
  }
  return xla && trains;
}

bool HasXlaStep(std::string_view library) {
  for (WireReader reader(library); reader.Next();) {
    if (reader.IsBytes(kLibraryFunction) && IsXlaStep(reader.payload())) return true;
  }
  return false;
}

}  // namespace

GraphFacts ReadGraph(std::string_view graph, const std::set<std::string>& kept,
                     const std::set<std::string>& fetched) {
  GraphFacts facts;
  std::set<std::string_view> results;
  for (const std::string& name : fetched) results.insert(NodeOf(name));
  WireReader reader(graph);
  while (facts.ok && reader.Next()) {
    if (reader.IsBytes(kGraphLibrary)) {
      facts.xla_trains = facts.xla_trains || HasXlaStep(reader.payload());
    }
    if (!reader.IsBytes(kGraphNode)) continue;
    Node node;
    facts.ok = ReadNode(reader.payload(), &node);
    ++facts.node_count;
    facts.trains = facts.trains || IsOfTraining(node.op);
    facts.has_swaps = facts.has_swaps || node.edited || node.name.find(kSwapName) != node.name.npos;
    facts.is_function = facts.is_function || node.op == "_Arg" || node.op == "_Retval";
    if (!node.device.empty()) facts.devices.emplace(node.device);
    if (node.op == "_Arg" || StartsWith(node.op, "Placeholder")) continue;
    const std::string name(node.name);
    const bool result = results.count(name) != 0;
    if (!result && kept.count(name) == 0) continue;
    facts.targets.push_back(name);
    if (!result) facts.fed_ops.push_back(name);
  }
  facts.ok = facts.ok && reader.ok();
  // In a function these are the nodes with effects, which run for any fetches.
  if (facts.is_function) facts.fed_ops.clear();
  return facts;
}

bool IsOfType(std::string_view device, std::string_view type) {
  const std::string_view name = ShortName(device);
  return SameText(name.substr(0, name.find(':')), type);
}

bool IsDevice(std::string_view device, std::string_view name) {
  return SameText(ShortName(device), ShortName(name));
}

std::string_view TaskOf(std::string_view device) {
  const size_t slash = device.rfind('/');
  return slash == device.npos ? std::string_view() : device.substr(0, slash);
}

std::string MoveNodes(std::string_view graph, std::string_view from, std::string_view to) {
  std::string out, moved;
  out.reserve(graph.size());
  WireReader reader(graph);
  while (reader.Next()) {
    Node node;
    if (!reader.IsBytes(kGraphNode) || !ReadNode(reader.payload(), &node) ||
        !IsDevice(node.device, from)) {
      out.append(reader.whole());
      continue;
    }
    moved.clear();
    WireReader fields(reader.payload());
    while (fields.Next()) {
      if (!fields.IsBytes(kNodeDevice)) {
        moved.append(fields.whole());
        continue;
      }
      const std::string device =
          std::string(TaskOf(fields.payload())) + "/device:" + std::string(ShortName(to));
      AppendBytesField(kNodeDevice, device, &moved);
    }
    AppendBytesField(kGraphNode, moved, &out);
  }
  return out;
}

}  // namespace spillway::tensorflow_plugin
