#include "rewrite_core/analysis/shapes/function_library.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/shapes/graph_inference.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/no_limits.h"
#include "rewrite_core/graph/topology.h"

namespace spillway::core {
namespace {

// The cost of a node of a body, and work that takes about as long: passing some tensors (as
// arguments, results or inputs), and skipping some bytes.
constexpr int64_t kTensorsPerStep = 4;
constexpr int64_t kBytesPerStep = 256;

constexpr int64_t CallSteps(size_t tensors) {
  return 1 + static_cast<int64_t>(tensors) / kTensorsPerStep;
}

}  // namespace

struct FunctionLibrary::Body {
  std::string bytes;  // `graph` points into them.
  absl::optional<Graph> graph;
  absl::optional<Topology> topology;
  absl::optional<GraphOps> ops;
  std::vector<NodeId> arguments;  // `_Arg` nodes, in order.
  std::vector<Tensor> results;
  int64_t steps = 0;  // The cost of one inference.
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
      // All of a function's fields are read for this, including its nodes.
      absl::string_view signature;
      WireReader function(library.bytes());
      while (function.Next()) {
        if (poll.Tick()) return false;
        if (function.IsBytes(function_def::kSignature)) signature = function.bytes();
      }
      absl::string_view name;
      if (!FindPayload(signature, function_def::kSignatureName, &poll, &name)) return false;
      visit(name, library.bytes());
    }
  }
  return true;
}

bool ReadArgumentNames(absl::string_view function_def, StopPoller* poll,
                       std::vector<absl::string_view>* names) {
  absl::string_view signature;
  return FindPayload(function_def, function_def::kSignature, poll, &signature) &&
         ReadArguments(signature, op_def::kInputArg, poll, names);
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

std::unique_ptr<FunctionLibrary::Body> FunctionLibrary::Build(absl::string_view function_def) {
  auto body = std::make_unique<Body>();
  FunctionBody text;
  const auto find = [this](absl::string_view name) {
    const auto found = functions_.find(name);
    return found == functions_.end() ? absl::string_view() : found->second.function_def;
  };
  if (!WriteFunctionBody(function_def, find, stop_, &text, &results_)) return nullptr;
  body->bytes = std::move(text.graph_def);
  auto graph = Graph::Parse(body->bytes, NoLimits(), stop_);
  if (!graph.ok()) return nullptr;
  body->graph = *std::move(graph);
  auto topology = Topology::Build(*body->graph, stop_);
  if (!topology.ok()) return nullptr;
  body->topology = *std::move(topology);
  body->ops.emplace(*body->graph);
  StopPoller poll(stop_);
  for (absl::string_view name : text.arguments) {
    if (poll.Tick()) return nullptr;
    body->arguments.push_back(body->graph->Find(name));
  }
  for (const std::string& spelling : text.results) {
    if (poll.Tick()) return nullptr;
    const auto tensor = FindResult(*body->graph, spelling);
    if (!tensor) return nullptr;
    body->results.push_back(*tensor);
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
    if (Stops(1)) return nullptr;  // However many functions there are.
    entry.built = true;
    entry.body = Build(entry.function_def);
  }
  if (entry.body == nullptr || entry.active || depth_ == kMaxDepth) return nullptr;
  const Body& body = *entry.body;
  if (arguments.size() != body.arguments.size()) return nullptr;
  // Known calls take time, too: their lookup key is as long as the arguments.
  const int64_t lookup = CallSteps(arguments.size() + body.results.size());
  if (steps_ > kMaxSteps || Stops(lookup)) return nullptr;
  steps_ += lookup;
  std::string key(reinterpret_cast<const char*>(&entry.number), sizeof(entry.number));
  for (const TensorFact& argument : arguments) {
    const int32_t known[] = {argument.shape, argument.extra, argument.dtype};
    key.append(reinterpret_cast<const char*>(known), sizeof(known));
  }
  const auto memo = calls_.find(key);
  if (memo != calls_.end()) return memo->second.get();
  // A body may be too short for its own loop to check the clock.
  if (Stops(body.steps)) return nullptr;
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
  StopPoller poll(stop_);
  for (Tensor result : body.results) {
    if (poll.Tick()) return nullptr;
    call->results.push_back(inference.FactOf(result));
  }
  const VariableFacts variables = inference.TakeVariables();
  for (NodeId argument : body.arguments) {
    if (variables.empty()) break;
    const auto said = variables.find(argument);
    call->arguments.push_back(said == variables.end() ? VariableFact() : said->second);
  }
  return calls_.emplace(std::move(key), std::move(call)).first->second.get();
}

}  // namespace spillway::core
