#include "rewrite_core/analysis/flow/variables.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/shapes/function_library.h"
#include "rewrite_core/analysis/shapes/node_attrs.h"
#include "rewrite_core/analysis/shapes/variable_handles.h"
#include "rewrite_core/base/polled_sort.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::core {
namespace {

constexpr char kVariablesStage[] = "analysis";

// Orders writes by strength: two together count as the stronger.
int Strength(Write write) {
  switch (write) {
    case Write::kNone:
      return 0;
    case Write::kPlain:
      return 1;
    case Write::kAccumulator:
      return 2;
    case Write::kOptimizer:
      return 3;
  }
  return 0;
}
Write Stronger(Write a, Write b) { return Strength(a) < Strength(b) ? b : a; }

// Which attributes of a call hold its functions, and at which input their arguments begin.
struct CallOp {
  absl::string_view op;
  int32_t first = 0;
  absl::string_view function = "";
  absl::string_view other = "";
  absl::string_view list = "";
};
constexpr CallOp kCallOps[] = {
    {"Case", 1, "", "", "branches"},
    {"If", 1, "then_branch", "else_branch"},
    {"PartitionedCall", 0, "f"},
    {"RemoteCall", 1, "f"},
    {"StatefulPartitionedCall", 0, "f"},
    {"StatelessCase", 1, "", "", "branches"},
    {"StatelessIf", 1, "then_branch", "else_branch"},
    {"StatelessWhile", 0, "body", "cond"},
    {"While", 0, "body", "cond"},
};

const CallOp* FindCallOp(absl::string_view op) {
  for (const CallOp& row : kCallOps) {
    if (row.op == op) return &row;
  }
  return nullptr;
}

// How a function uses one of its arguments.
struct ArgumentUse {
  bool is_variable = false;
  Write write = Write::kNone;
};

struct FunctionUse {
  absl::string_view function_def;
  std::vector<ArgumentUse> arguments;
  bool has_gradients = false;
  // Calls in the body: the callee, and an index into `inputs`. A node may call many functions.
  struct Call {
    int32_t callee;
    int32_t inputs;
  };
  std::vector<Call> calls;
  std::vector<std::vector<int32_t>> inputs;  // For each input of a calling node: the function's
                                             // argument that it is, or -1.
  std::vector<int32_t> callers;
};

// The functions of a library.
class LibraryUse {
 public:
  explicit LibraryUse(const StopToken& stop) : stop_(stop), poll_(stop) {}

  // Each returns false if the call must end.
  bool Read(absl::string_view graph_def) {
    if (!ForEachFunction(graph_def, stop_,
                         [this](absl::string_view name, absl::string_view function_def) {
                           if (!numbers_.try_emplace(name, functions_.size()).second) return;
                           functions_.emplace_back().function_def = function_def;
                         })) {
      return false;
    }
    for (size_t i = 0; i < functions_.size(); ++i) {
      if (!ReadBody(static_cast<int32_t>(i))) return false;
    }
    return Spread();
  }

  // The distinct functions that a node of that op calls, and the input at which their arguments
  // begin. False if the call must end.
  bool FindCallees(absl::string_view op, NodeAttrs& attrs, std::vector<int32_t>* callees,
                   int32_t* first) {
    callees->clear();
    const auto add = [&](absl::string_view name) {
      const auto found = numbers_.find(name);
      if (found != numbers_.end()) callees->push_back(found->second);
    };
    *first = 0;
    const CallOp* row = FindCallOp(op);
    if (row == nullptr) {
      add(op);  // Its op type may be a function.
      return true;
    }
    *first = row->first;
    for (absl::string_view key : {row->function, row->other}) {
      const auto value = key.empty() ? absl::nullopt : attrs.Find(key);
      if (value) add(AttrFunction(*value).value_or(""));
    }
    const auto list = row->list.empty() ? absl::nullopt : attrs.Find(row->list);
    if (list) {
      for (absl::string_view name : AttrFunctions(*list)) {
        if (poll_.Tick()) return false;
        add(name);
      }
      if (!PolledSort(callees->begin(), callees->end(), std::less<>(), &poll_)) return false;
      callees->erase(std::unique(callees->begin(), callees->end()), callees->end());
    }
    return true;
  }

  const FunctionUse& operator[](int32_t number) const { return functions_[number]; }

 private:
  struct Node {
    absl::string_view op, bytes, input;  // `input`: the first one.
    int attributes = 0;
    // The index of the function's argument that its outputs are; -1: none. Known once it is found.
    int32_t argument = -1;
    bool is_known = false;
  };

  // Finds the argument that a body's input comes from, looking through ops that forward handles; -1
  // if none. Each node is looked through once: many may read one long chain. False if the call must
  // end.
  bool FindArgument(absl::string_view input, absl::flat_hash_map<absl::string_view, Node>* nodes,
                    int32_t* argument) {
    std::vector<Node*> chain;
    *argument = -1;
    for (;;) {
      if (poll_.Tick()) return false;
      const auto found = nodes->find(input.substr(0, input.find(':')));
      if (found == nodes->end()) break;
      Node& node = found->second;
      if (node.is_known) {
        *argument = node.argument;
        break;
      }
      node.is_known = true;  // As none, until the chain ends: on a cycle it ends here.
      chain.push_back(&node);
      if (!ForwardsHandle(node.op)) break;
      input = node.input;
    }
    for (Node* node : chain) node->argument = *argument;
    return true;
  }

  bool ReadBody(int32_t number) {
    const absl::string_view function_def = functions_[number].function_def;
    absl::flat_hash_map<absl::string_view, Node> nodes;
    std::vector<absl::string_view> names;
    if (!ReadArgumentNames(function_def, &poll_, &names)) {
      return stop_.status("analysis").ok();  // Unknown.
    }
    FunctionUse use;
    use.function_def = function_def;
    use.callers = std::move(functions_[number].callers);
    use.arguments.resize(names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      if (poll_.Tick()) return false;
      Node& node = nodes[names[i]];
      node.argument = static_cast<int32_t>(i);
      node.is_known = true;
    }
    std::vector<Node> body;
    WireReader reader(function_def);
    while (reader.Next()) {
      if (poll_.Tick()) return false;
      if (!reader.IsBytes(function_def::kNode)) continue;
      Node node;
      node.bytes = reader.bytes();
      absl::string_view name;
      WireReader fields(node.bytes);
      while (fields.Next()) {
        if (poll_.Tick()) return false;
        if (fields.IsBytes(node_def::kName)) name = fields.bytes();
        if (fields.IsBytes(node_def::kOp)) node.op = fields.bytes();
        if (fields.IsBytes(node_def::kInput) && node.input.empty()) node.input = fields.bytes();
        node.attributes += fields.IsBytes(node_def::kAttr);
      }
      nodes[name] = node;
      body.push_back(node);
    }
    NodeAttrs attrs;
    std::vector<int32_t> callees;
    for (const Node& node : body) {
      if (poll_.Tick()) return false;
      use.has_gradients = use.has_gradients || IsGradientOpType(node.op);
      const Write write = WriteOf(node.op);
      if (write != Write::kNone || TakesVariable(node.op)) {
        int32_t argument = -1;
        if (!FindArgument(node.input, &nodes, &argument)) return false;
        if (argument < 0) continue;
        use.arguments[argument].is_variable = true;
        use.arguments[argument].write = Stronger(use.arguments[argument].write, write);
        continue;
      }
      if (node.attributes > kMaxAttributes) continue;  // More are for no call.
      attrs.Reset(node.bytes);
      int32_t first = 0;
      if (!FindCallees(node.op, attrs, &callees, &first)) return false;
      if (callees.empty()) continue;
      std::vector<int32_t> inputs;
      int32_t position = 0;
      WireReader fields(node.bytes);
      while (fields.Next()) {
        if (poll_.Tick()) return false;
        if (!fields.IsBytes(node_def::kInput) || position++ < first) continue;
        if (!FindArgument(fields.bytes(), &nodes, &inputs.emplace_back())) return false;
      }
      use.inputs.push_back(std::move(inputs));
      for (int32_t callee : callees) {
        if (poll_.Tick()) return false;
        use.calls.push_back({callee, static_cast<int32_t>(use.inputs.size()) - 1});
        functions_[callee].callers.push_back(number);
        if (callee == number) use.callers.push_back(number);
      }
    }
    functions_[number] = std::move(use);
    return true;
  }

  // Propagates from callees to callers until nothing changes.
  bool Spread() {
    std::vector<int32_t> queue(functions_.size());
    std::vector<bool> is_queued(functions_.size(), true);
    // The last function of a library is usually not called by an earlier one.
    for (size_t i = 0; i < queue.size(); ++i) queue[i] = static_cast<int32_t>(i);
    int64_t steps = 0;
    for (size_t done = 0; done < queue.size() && steps < Variables::kMaxSteps; ++done) {
      const int32_t at = queue[done];
      is_queued[at] = false;
      FunctionUse& use = functions_[at];
      bool changed = done < functions_.size();  // Each is propagated to its callers at least once.
      for (const FunctionUse::Call& call : use.calls) {
        if (poll_.Tick()) return false;
        const FunctionUse& callee = functions_[call.callee];
        if (callee.has_gradients && !use.has_gradients) changed = use.has_gradients = true;
        const std::vector<int32_t>& inputs = use.inputs[call.inputs];
        const size_t count = std::min(inputs.size(), callee.arguments.size());
        steps += 1 + static_cast<int64_t>(count);
        for (size_t i = 0; i < count; ++i) {
          if (poll_.Tick()) return false;
          if (inputs[i] < 0) continue;
          ArgumentUse& ours = use.arguments[inputs[i]];
          const ArgumentUse theirs = callee.arguments[i];
          if (theirs.is_variable && !ours.is_variable) changed = ours.is_variable = true;
          if (Stronger(ours.write, theirs.write) != ours.write) {
            ours.write = theirs.write;
            changed = true;
          }
        }
      }
      if (!changed) continue;
      for (int32_t caller : use.callers) {
        if (poll_.Tick()) return false;
        ++steps;
        if (is_queued[caller]) continue;
        is_queued[caller] = true;
        queue.push_back(caller);
      }
    }
    return true;
  }

  const StopToken& stop_;
  StopPoller poll_;
  absl::flat_hash_map<absl::string_view, int32_t> numbers_;
  std::vector<FunctionUse> functions_;
};

}  // namespace

absl::StatusOr<Variables> Variables::Find(const Graph& graph, const StopToken& stop) {
  Variables variables;
  StopPoller poll(stop);
  std::vector<bool> is_variable_op(graph.num_ops()), takes_handle(graph.num_ops());
  for (int32_t op = 0; op < graph.num_ops(); ++op) {
    is_variable_op[op] = IsVariableOp(graph.op_name(op));
    takes_handle[op] = TakesVariable(graph.op_name(op));
  }
  variables.variable_.assign(graph.num_nodes(), false);
  // Returns false if the call must end.
  absl::flat_hash_set<std::pair<NodeId, int32_t>> followed;
  const auto flag_origin = [&](Tensor handle) {
    if (!followed.insert({handle.node, handle.port}).second) return true;
    const NodeId origin = HandleOrigin(graph, handle).node;
    if (graph.op(origin) == "Placeholder" || graph.op(origin) == "_Arg") {
      variables.variable_[origin] = true;
    }
    return !poll.Tick(kMaxHandleHops / 8);
  };
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (poll.Tick()) return stop.status(kVariablesStage);
    if (is_variable_op[graph.op_id(id)]) variables.variable_[id] = true;
    if (!takes_handle[graph.op_id(id)]) continue;
    const absl::Span<const Tensor> inputs = graph.inputs(id);
    if (!inputs.empty() && !inputs[0].is_control() && !flag_origin(inputs[0])) {
      return stop.status(kVariablesStage);
    }
  }
  if (!graph.has_functions()) return variables;
  LibraryUse library(stop);
  if (!library.Read(graph.bytes())) return stop.status(kVariablesStage);
  NodeAttrs attrs;
  std::vector<int32_t> callees;
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (poll.Tick()) return stop.status(kVariablesStage);
    if (graph.op_info(id).known && FindCallOp(graph.op(id)) == nullptr) continue;
    attrs.Reset(graph.node_bytes(id));
    int32_t first = 0;
    CallUse call;
    const absl::Span<const Tensor> inputs = graph.inputs(id);
    std::vector<bool> is_written;  // By input: several functions may write to one.
    if (!library.FindCallees(graph.op(id), attrs, &callees, &first)) {
      return stop.status(kVariablesStage);
    }
    for (int32_t callee : callees) {
      if (poll.Tick()) return stop.status(kVariablesStage);
      const FunctionUse& use = library[callee];
      call.has_gradients = call.has_gradients || use.has_gradients;
      is_written.resize(inputs.size());
      for (size_t i = 0; i < use.arguments.size() && i + first < inputs.size(); ++i) {
        if (poll.Tick()) return stop.status(kVariablesStage);
        const Tensor input = inputs[i + first];
        if (input.is_control() || !use.arguments[i].is_variable) continue;
        if (!flag_origin(input)) return stop.status(kVariablesStage);
        if (use.arguments[i].write == Write::kNone) continue;
        is_written[i + first] = true;
        call.write = Stronger(call.write, use.arguments[i].write);
      }
    }
    for (size_t i = 0; i < is_written.size(); ++i) {
      if (poll.Tick()) return stop.status(kVariablesStage);
      if (is_written[i]) call.written.push_back(static_cast<int32_t>(i));
    }
    if (!call.has_gradients && call.written.empty()) continue;
    variables.calls_.emplace(id, std::move(call));
  }
  return variables;
}

}  // namespace spillway::core
