// Control flow: dataflow ops (Switch, Merge, loops), calls of functions, and their arguments.
#include <algorithm>

#include "rewrite_core/analysis/shapes/shape_table.h"

namespace spillway::core {
namespace {

// Rounds of a functional loop after which a loop variable that still changes is unknown.
constexpr int kMaxWhileRounds = 8;

// Input 0 on every output.
void Forward(ShapeContext& c) {
  c.Value(0);  // Reads a constant: a loop may count from it.
  for (int i = 0; i < c.num_outputs(); ++i) c.pass(i, 0);
}

// The predicate may be a constant, which is read for conditionals.h.
void Switch(ShapeContext& c) {
  c.Value(1);
  Forward(c);
}

// Merge(inputs...) -> output, value_index.
void Merge(ShapeContext& c) {
  bool any = false;
  TensorFact joined;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.pending(i)) continue;
    c.Value(i);  // Reads constants.
    joined = any ? c.JoinFacts(joined, c.fact(i)) : c.fact(i);
    any = true;
  }
  if (any) c.set_fact(0, joined);
  c.set(1, kScalar);
}

// ---- Calls. Inputs from `first` are the arguments.
std::vector<TensorFact> Arguments(ShapeContext& c, int first) {
  std::vector<TensorFact> arguments;
  for (int i = first; i < c.num_inputs(); ++i) {
    c.Value(i);
    arguments.push_back(c.fact(i));
  }
  return arguments;
}

void SetResults(ShapeContext& c, const std::vector<TensorFact>& results) {
  for (int i = 0; i < static_cast<int>(results.size()); ++i) c.set_fact(i, results[i]);
}

void PartitionedCall(ShapeContext& c) {
  std::vector<TensorFact> results;
  c.Call(c.Function("f"), 0, Arguments(c, 0), &results);
  SetResults(c, results);
}

void Gradient(ShapeContext& c) {
  // SymbolicGradient: the gradients of a function's arguments, which come first.
  for (int i = 0; i < c.num_outputs(); ++i) c.set(i, c.input(i));
}

// The results that any of several branches may return. An unknown branch makes everything unknown.
void CallBranches(ShapeContext& c, const std::vector<absl::string_view>& branches) {
  const std::vector<TensorFact> arguments = Arguments(c, 1);
  std::vector<TensorFact> joined, results;
  bool known = !branches.empty();
  for (size_t b = 0; known && b < branches.size(); ++b) {
    known = c.Call(branches[b], 1, arguments, &results);
    if (b == 0) joined = results;
    known = known && joined.size() == results.size();
    for (size_t i = 0; known && i < joined.size(); ++i) {
      joined[i] = c.JoinFacts(joined[i], results[i]);
    }
  }
  if (known) SetResults(c, joined);
  // The node's statements hold for every branch.
  const std::vector<ShapeId> stated = c.ShapesAttr("output_shapes");
  for (int i = 0; i < static_cast<int>(stated.size()); ++i) c.refine(i, stated[i]);
}

void If(ShapeContext& c) {
  CallBranches(c, {c.Function("then_branch"), c.Function("else_branch")});
}

void Case(ShapeContext& c) { CallBranches(c, c.Functions("branches")); }

// The loop variables on entry, joined with the body's results until nothing changes.
void While(ShapeContext& c) {
  const absl::string_view body = c.Function("body");
  const std::vector<ShapeId> stated = c.ShapesAttr("output_shapes");
  std::vector<TensorFact> variables = Arguments(c, 0), results;
  bool stable = false;
  for (int round = 0; round < kMaxWhileRounds && !stable; ++round) {
    if (!c.Call(body, 0, variables, &results) || results.size() != variables.size()) break;
    stable = true;
    for (size_t i = 0; i < variables.size(); ++i) {
      const TensorFact joined = c.JoinFacts(variables[i], results[i]);
      stable = stable && joined.shape == variables[i].shape && joined.extra == variables[i].extra;
      variables[i] = joined;
    }
  }
  if (stable) SetResults(c, variables);
  for (int i = 0; i < static_cast<int>(stated.size()); ++i) c.refine(i, stated[i]);
}

constexpr ShapeRule kControlFlowRules[] = {
    {"Abort", Scalars},
    {"Case", Case},
    {"ControlTrigger", Scalars},
    {"Enter", Forward},
    {"Exit", Forward},
    {"If", If},
    {"LoopCond", Scalars},
    {"Merge", Merge},
    {"NextIteration", Forward},
    {"PartitionedCall", PartitionedCall},
    {"RefEnter", Forward},
    {"RefExit", Forward},
    {"RefMerge", Merge},
    {"RefNextIteration", Forward},
    {"RefSwitch", Switch},
    {"StatefulPartitionedCall", PartitionedCall},
    {"StatelessCase", Case},
    {"StatelessIf", If},
    {"StatelessWhile", While},
    {"Switch", Switch},
    {"SymbolicGradient", Gradient},
    {"While", While},
    {"_SwitchN", Forward},
};

}  // namespace

absl::Span<const ShapeRule> ControlFlowShapeRules() { return kControlFlowRules; }

}  // namespace spillway::core
