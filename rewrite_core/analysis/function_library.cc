#include "rewrite_core/analysis/function_library.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "rewrite_core/analysis/graph_inference.h"
#include "rewrite_core/analysis/topology.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/base/wire_writer.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::core {
namespace {

struct OutputNames {
  absl::string_view op;
  absl::string_view names;
};

// Sorted by op.
constexpr OutputNames kOutputNames[] = {
#define SPILLWAY_OUTPUTS(op, names) {op, names},
#include "rewrite_core/analysis/output_names.inc"
#undef SPILLWAY_OUTPUTS
};

// The position of an output argument among those of the op; -1 if it has none of that name.
int FindOutput(absl::string_view op, absl::string_view name) {
  const auto row = std::lower_bound(
      std::begin(kOutputNames), std::end(kOutputNames), op,
      [](const OutputNames& names, absl::string_view wanted) { return names.op < wanted; });
  if (row == std::end(kOutputNames) || row->op != op) return 0;  // It has one.
  int position = 0;
  for (absl::string_view candidate : absl::StrSplit(row->names, ' ')) {
    if (candidate == name) return position;
    ++position;
  }
  return -1;
}

absl::string_view LastBytes(absl::string_view message, uint32_t field) {
  absl::string_view found;
  WireReader reader(message);
  while (reader.Next()) {
    if (reader.IsBytes(field)) found = reader.bytes();
  }
  return found;
}

// The names of a signature's arguments of one kind; one of a list of tensors is refused.
bool ReadArguments(absl::string_view signature, uint32_t field,
                   std::vector<absl::string_view>* names) {
  WireReader reader(signature);
  while (reader.Next()) {
    if (!reader.IsBytes(field)) continue;
    absl::string_view name;
    WireReader argument(reader.bytes());
    while (argument.Next()) {
      if (argument.IsBytes(op_def::kArgName)) name = argument.bytes();
      if (argument.IsBytes(op_def::kArgNumberAttr) && !argument.bytes().empty()) return false;
      if (argument.IsBytes(op_def::kArgTypeListAttr) && !argument.bytes().empty()) return false;
    }
    names->push_back(name);
  }
  return reader.ok();
}

// What a node of a body takes, and what takes about as long: handing on some tensors (as an
// argument, a result or an input), and skipping some bytes.
constexpr int64_t kTensorsPerStep = 4;
constexpr int64_t kBytesPerStep = 256;

constexpr int64_t CallSteps(size_t tensors) {
  return 1 + static_cast<int64_t>(tensors) / kTensorsPerStep;
}

v1::Limits NoLimits() {
  v1::Limits limits;
  limits.set_max_graph_bytes(kMaxMessageBytes);
  limits.set_max_node_count(std::numeric_limits<int32_t>::max());
  limits.set_max_input_count(std::numeric_limits<int32_t>::max());
  return limits;
}

}  // namespace

struct FunctionLibrary::Body {
  std::string bytes;  // What `graph` points into.
  absl::optional<Graph> graph;
  absl::optional<Topology> topology;
  absl::optional<GraphOps> ops;
  std::vector<NodeId> arguments;  // `_Arg` nodes, in order.
  std::vector<Tensor> results;
  int64_t steps = 0;  // Of one inference.
};

bool ForEachFunction(absl::string_view graph_def, const StopToken& stop,
                     const std::function<void(absl::string_view, absl::string_view)>& visit) {
  StopPoller poll(stop);
  WireReader reader(graph_def);
  while (reader.Next()) {
    if (poll.Tick()) return false;
    if (!reader.IsBytes(graph_def::kLibrary)) continue;
    WireReader library(reader.bytes());
    while (library.Next()) {
      if (poll.Tick()) return false;
      if (!library.IsBytes(library_def::kFunction)) continue;
      // A function's fields are all read for it, its nodes among them.
      absl::string_view signature;
      WireReader function(library.bytes());
      while (function.Next()) {
        if (poll.Tick()) return false;
        if (function.IsBytes(function_def::kSignature)) signature = function.bytes();
      }
      visit(LastBytes(signature, function_def::kSignatureName), library.bytes());
    }
  }
  return true;
}

bool ReadArgumentNames(absl::string_view function_def, std::vector<absl::string_view>* names) {
  return ReadArguments(LastBytes(function_def, function_def::kSignature), op_def::kInputArg, names);
}

absl::StatusOr<absl::flat_hash_set<absl::string_view>> FunctionNames(absl::string_view graph_def,
                                                                     const StopToken& stop) {
  absl::flat_hash_set<absl::string_view> names;
  const bool done = ForEachFunction(
      graph_def, stop, [&names](absl::string_view name, absl::string_view) { names.insert(name); });
  if (!done) return stop.status("analysis");
  return names;
}

FunctionLibrary::FunctionLibrary(absl::string_view graph_def, int producer, ShapePool& pool,
                                 const StopToken& stop)
    : producer_(producer), pool_(pool), stop_(stop) {
  ForEachFunction(graph_def, stop, [this](absl::string_view name, absl::string_view function_def) {
    Entry& entry = functions_[name];
    entry.number = static_cast<int32_t>(functions_.size());
    entry.function_def = function_def;
  });
}

FunctionLibrary::~FunctionLibrary() = default;

// Writes a body as a GraphDef: `_Arg` nodes for the arguments, and the nodes with their inputs
// spelled as in a graph (`node:port` for `node:output:index`).
class BodyBuilder {
 public:
  // False if the body has something that cannot be told.
  bool Build(absl::string_view function_def, std::string* graph_def,
             std::vector<absl::string_view>* arguments, std::vector<std::string>* results) {
    const absl::string_view signature = LastBytes(function_def, function_def::kSignature);
    std::vector<absl::string_view> outputs;
    if (!ReadArguments(signature, op_def::kInputArg, arguments) ||
        !ReadArguments(signature, op_def::kOutputArg, &outputs)) {
      return false;
    }
    for (absl::string_view name : *arguments) {
      nodes_[name] = Node{"_Arg", {}, {}};
      std::string node;
      AppendBytesField(node_def::kName, name, &node);
      AppendBytesField(node_def::kOp, "_Arg", &node);
      AppendBytesField(graph_def::kNode, node, graph_def);
    }
    absl::flat_hash_map<absl::string_view, absl::string_view> returns;
    WireReader first(function_def);
    while (first.Next()) {
      if (first.IsBytes(function_def::kNode)) {
        nodes_[LastBytes(first.bytes(), node_def::kName)] =
            Node{LastBytes(first.bytes(), node_def::kOp), first.bytes(), {}};
      } else if (first.IsBytes(function_def::kReturn)) {
        returns[LastBytes(first.bytes(), map_entry::kKey)] =
            LastBytes(first.bytes(), map_entry::kValue);
      }
    }
    WireReader second(function_def);
    while (second.Next()) {
      if (second.IsBytes(function_def::kNode) && !AppendNode(second.bytes(), graph_def)) {
        return false;
      }
    }
    for (absl::string_view output : outputs) {
      std::string spelling;
      if (!Spell(returns[output], &spelling)) return false;
      results->push_back(std::move(spelling));
    }
    return first.ok();
  }

 private:
  struct Node {
    absl::string_view op;
    absl::string_view node_def;
    // By output argument, as far as they were asked for: its first port. A list may be read at many
    // places, and the node's attributes should not be.
    std::vector<int64_t> first_ports;
  };

  bool AppendNode(absl::string_view bytes, std::string* graph_def) {
    std::string node, spelling;
    WireReader reader(bytes);
    while (reader.Next()) {
      if (!reader.IsBytes(node_def::kInput)) {
        node.append(reader.whole().data(), reader.whole().size());
      } else if (!Spell(reader.bytes(), &spelling)) {
        return false;
      } else {
        AppendBytesField(node_def::kInput, spelling, &node);
      }
    }
    AppendBytesField(graph_def::kNode, node, graph_def);
    return reader.ok();
  }

  // From a body's spelling of an input to a graph's.
  bool Spell(absl::string_view input, std::string* spelling) {
    spelling->assign(input.data(), input.size());
    if (!input.empty() && input[0] == '^') return true;
    const std::vector<absl::string_view> parts = absl::StrSplit(input, ':');
    const auto node = nodes_.find(parts[0]);
    if (node == nodes_.end() || parts.size() > 3) return false;
    int64_t index = 0;
    if (parts.size() > 1 && !parts.back().empty() && parts.size() != 2 &&
        (!absl::SimpleAtoi(parts.back(), &index) || index < 0)) {
      return false;
    }
    int64_t port = index;
    if (parts.size() > 1 && !node->second.node_def.empty()) {
      const int argument = FindOutput(node->second.op, parts[1]);
      if (argument < 0) return false;
      std::vector<int64_t>& first_ports = node->second.first_ports;
      if (argument > 0 && argument >= static_cast<int>(first_ports.size())) {
        const OutputSignature outputs(FindOp(node->second.op));
        attrs_.Reset(node->second.node_def);
        for (int i = static_cast<int>(first_ports.size()); i <= argument; ++i) {
          first_ports.push_back(outputs.FirstPort(i, attrs_));
        }
      }
      const int64_t first = argument > 0 ? first_ports[argument] : 0;
      if (first < 0) return false;
      port += first;
    }
    *spelling = port == 0 ? std::string(parts[0]) : absl::StrCat(parts[0], ":", port);
    return true;
  }

  absl::flat_hash_map<absl::string_view, Node> nodes_;
  NodeAttrs attrs_;
};

std::unique_ptr<FunctionLibrary::Body> FunctionLibrary::Build(absl::string_view function_def) {
  auto body = std::make_unique<Body>();
  std::vector<absl::string_view> arguments;
  std::vector<std::string> results;
  if (!BodyBuilder().Build(function_def, &body->bytes, &arguments, &results)) return nullptr;
  auto graph = Graph::Parse(body->bytes, NoLimits(), stop_);
  if (!graph.ok()) return nullptr;
  body->graph = *std::move(graph);
  auto topology = Topology::Build(*body->graph, stop_);
  if (!topology.ok()) return nullptr;
  body->topology = *std::move(topology);
  body->ops.emplace(*body->graph);
  for (absl::string_view name : arguments) body->arguments.push_back(body->graph->Find(name));
  for (const std::string& spelling : results) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(spelling, absl::MaxSplits(':', 1));
    Tensor tensor{body->graph->Find(parts.first), 0};
    if (tensor.node == kNoNode) return nullptr;
    if (!parts.second.empty() && !absl::SimpleAtoi(parts.second, &tensor.port)) return nullptr;
    body->results.push_back(tensor);
  }
  body->steps = body->graph->num_nodes() + CallSteps(body->graph->num_inputs()) +
                static_cast<int64_t>(body->bytes.size()) / kBytesPerStep;
  return body;
}

const CallFacts* FunctionLibrary::Call(absl::string_view function,
                                       absl::Span<const TensorFact> arguments) {
  const auto found = functions_.find(function);
  if (found == functions_.end()) return nullptr;
  Entry& entry = found->second;
  if (!entry.built) {
    entry.built = true;
    entry.body = Build(entry.function_def);
  }
  if (entry.body == nullptr || entry.active || depth_ == kMaxDepth) return nullptr;
  const Body& body = *entry.body;
  if (arguments.size() != body.arguments.size()) return nullptr;
  // Calls that are known take time, too: what they are looked up by is as long as the arguments.
  const int64_t lookup = CallSteps(arguments.size() + body.results.size());
  if (steps_ > kMaxSteps || stop_.ShouldStop(lookup)) return nullptr;
  steps_ += lookup;
  std::string key(reinterpret_cast<const char*>(&entry.number), sizeof(entry.number));
  for (const TensorFact& argument : arguments) {
    const int32_t known[] = {argument.shape, argument.extra, argument.dtype};
    key.append(reinterpret_cast<const char*>(known), sizeof(known));
  }
  const auto memo = calls_.find(key);
  if (memo != calls_.end()) return memo->second.get();
  // A body may be too short for its own loop to look at the clock.
  if (stop_.ShouldStop(body.steps)) return nullptr;
  steps_ += body.steps;

  absl::flat_hash_map<NodeId, TensorFact> facts;
  for (size_t i = 0; i < arguments.size(); ++i) facts[body.arguments[i]] = arguments[i];
  InferenceInputs inputs{*body.graph, *body.topology, *body.ops};
  inputs.producer = producer_;
  inputs.arguments = &facts;
  GraphInference inference(inputs, pool_, this);
  entry.active = true;
  ++depth_;
  const bool ran = inference.Run(stop_).ok();
  --depth_;
  entry.active = false;
  if (!ran) return nullptr;  // It was stopped; the caller's loop will notice.
  auto call = std::make_unique<CallFacts>();
  for (Tensor result : body.results) call->results.push_back(inference.FactOf(result));
  const VariableFacts variables = inference.TakeVariables();
  for (NodeId argument : body.arguments) {
    if (variables.empty()) break;
    const auto said = variables.find(argument);
    call->arguments.push_back(said == variables.end() ? VariableFact() : said->second);
  }
  return calls_.emplace(std::move(key), std::move(call)).first->second.get();
}

}  // namespace spillway::core
