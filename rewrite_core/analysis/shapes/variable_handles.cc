#include "rewrite_core/analysis/shapes/variable_handles.h"

#include <algorithm>
#include <iterator>

#include "absl/types/span.h"
#include "rewrite_core/graph/topology.h"

namespace spillway::core {
namespace {

constexpr VariableOp Operand(absl::string_view op, int operand) {
  return {op, "T", HandleShape::kOperand, operand};
}
constexpr VariableOp Rows(absl::string_view op, int operand) {
  return {op, "T", HandleShape::kRows, operand};
}
constexpr VariableOp Scatter(absl::string_view op) { return {op, "dtype", HandleShape::kScatter}; }
constexpr VariableOp List(absl::string_view op, HandleShape shape, int operand) {
  return {op, "", shape, operand};
}

// Sorted by op. Operands are the positions of the gradients in tensorflow/core/ops/training_ops.cc,
// whose shape functions merge the gradient's shape with those of all variables.
constexpr VariableOp kVariableOps[] = {
    {"AssignAddVariableOp", "dtype", HandleShape::kOperand, 1},
    {"AssignSubVariableOp", "dtype", HandleShape::kOperand, 1},
    {"AssignVariableOp", "dtype", HandleShape::kOperand, 1},
    {"ReadVariableOp", "dtype", HandleShape::kOutput},
    Operand("ResourceApplyAdaMax", 8),
    Operand("ResourceApplyAdadelta", 6),
    Operand("ResourceApplyAdagrad", 3),
    Operand("ResourceApplyAdagradDA", 3),
    Operand("ResourceApplyAdagradV2", 4),
    Operand("ResourceApplyAdam", 9),
    Operand("ResourceApplyAdamWithAmsgrad", 10),
    Operand("ResourceApplyAddSign", 6),
    Operand("ResourceApplyCenteredRMSProp", 8),
    Operand("ResourceApplyFtrl", 3),
    Operand("ResourceApplyFtrlV2", 3),
    Operand("ResourceApplyGradientDescent", 2),
    Operand("ResourceApplyKerasMomentum", 3),
    Operand("ResourceApplyMomentum", 3),
    Operand("ResourceApplyPowerSign", 6),
    Operand("ResourceApplyProximalAdagrad", 5),
    Operand("ResourceApplyProximalGradientDescent", 4),
    Operand("ResourceApplyRMSProp", 7),
    {"ResourceCountUpTo", "T"},
    {"ResourceGather", "dtype", HandleShape::kGather},
    {"ResourceGatherNd", "dtype", HandleShape::kGatherNd},
    Scatter("ResourceScatterAdd"),
    Scatter("ResourceScatterDiv"),
    Scatter("ResourceScatterMax"),
    Scatter("ResourceScatterMin"),
    Scatter("ResourceScatterMul"),
    {"ResourceScatterNdAdd", "T"},
    {"ResourceScatterNdMax", "T"},
    {"ResourceScatterNdMin", "T"},
    {"ResourceScatterNdSub", "T"},
    {"ResourceScatterNdUpdate", "T"},
    Scatter("ResourceScatterSub"),
    Scatter("ResourceScatterUpdate"),
    Rows("ResourceSparseApplyAdadelta", 6),
    Rows("ResourceSparseApplyAdagrad", 3),
    Rows("ResourceSparseApplyAdagradDA", 3),
    Rows("ResourceSparseApplyAdagradV2", 4),
    Rows("ResourceSparseApplyCenteredRMSProp", 8),
    Rows("ResourceSparseApplyFtrl", 3),
    Rows("ResourceSparseApplyFtrlV2", 3),
    Rows("ResourceSparseApplyKerasMomentum", 3),
    Rows("ResourceSparseApplyMomentum", 3),
    Rows("ResourceSparseApplyProximalAdagrad", 5),
    Rows("ResourceSparseApplyProximalGradientDescent", 4),
    Rows("ResourceSparseApplyRMSProp", 7),
    {"ResourceStridedSliceAssign", "T"},
    List("StackPushV2", HandleShape::kElement, 1),
    List("TensorArrayScatterV3", HandleShape::kUnpack, 2),
    List("TensorArraySplitV3", HandleShape::kPieces, 1),
    List("TensorArrayWriteV3", HandleShape::kElement, 2),
    List("TensorListConcatLists", HandleShape::kList, 1),
    List("TensorListPushBack", HandleShape::kElement, 1),
    List("TensorListScatterIntoExistingList", HandleShape::kUnpack, 1),
    List("TensorListSetItem", HandleShape::kElement, 2),
};

// Ops that forward a handle: from input 0, or from the input with the output's number.
constexpr absl::string_view kForward[] = {"Enter",
                                          "Exit",
                                          "Identity",
                                          "NextIteration",
                                          "Switch",
                                          "TensorListConcatLists",
                                          "TensorListPopBack",
                                          "TensorListPushBack",
                                          "TensorListResize",
                                          "TensorListScatterIntoExistingList",
                                          "TensorListSetItem"};
constexpr absl::string_view kHandOnEach[] = {"IdentityN", "StatelessWhile", "While"};

template <size_t n>
bool Contains(const absl::string_view (&ops)[n], absl::string_view op) {
  return std::find(std::begin(ops), std::end(ops), op) != std::end(ops);
}

// Prepends an unknown dimension to a shape.
ShapeId BehindAny(ShapeContext& c, ShapeId shape) { return c.Concat(c.OfRank(1), shape); }

}  // namespace

const VariableOp* FindVariableOp(absl::string_view op) {
  const auto* row = std::lower_bound(
      std::begin(kVariableOps), std::end(kVariableOps), op,
      [](const VariableOp& known, absl::string_view wanted) { return known.op < wanted; });
  return row != std::end(kVariableOps) && row->op == op ? row : nullptr;
}

bool TakesVariable(absl::string_view op) {
  const VariableOp* row = FindVariableOp(op);
  return row != nullptr && row->shape < HandleShape::kElement;
}

void NoteVariables(const VariableOp& op, ShapeContext& c) {
  const DataType dtype = op.dtype.empty() ? kDtInvalid : c.Type(op.dtype);
  const bool is_list = op.shape >= HandleShape::kElement;
  ShapeId shape = kUnknownShape, value = kUnknownShape;
  switch (op.shape) {
    case HandleShape::kNoWord:
      break;
    case HandleShape::kOutput:
      shape = c.output(0);
      break;
    case HandleShape::kOperand:
      shape = c.input(op.operand);
      break;
    case HandleShape::kRows:
      if (c.rank(c.input(op.operand)) > 0) {
        shape = c.ReplaceDim(c.input(op.operand), 0, kUnknownDim);
      }
      break;
    case HandleShape::kGather: {
      const int indices = c.rank(c.input(1)), gathered = c.rank(c.output(0));
      if (c.Int("batch_dims") == 0 && indices >= 0 && gathered >= indices) {
        shape = BehindAny(c, c.Slice(c.output(0), indices));
      }
      break;
    }
    case HandleShape::kGatherNd: {
      const int indices = c.rank(c.input(1)), gathered = c.rank(c.output(0));
      const int64_t depth = c.dim(c.input(1), -1);
      if (depth >= 0 && depth <= kMaxRank && gathered >= indices - 1) {
        shape = c.Concat(c.OfRank(static_cast<int>(depth)), c.Slice(c.output(0), indices - 1));
      }
      break;
    }
    case HandleShape::kScatter: {
      // A scalar is written to each row, of any shape.
      const int indices = c.rank(c.input(1)), updates = c.rank(c.input(2));
      if (indices >= 0 && updates > 0 && updates >= indices) {
        shape = BehindAny(c, c.Slice(c.input(2), indices));
      }
      break;
    }
    case HandleShape::kElement:
      shape = c.input(op.operand);
      if (c.Value(op.operand)) value = c.fact(op.operand).extra;
      break;
    case HandleShape::kUnpack:
      if (c.rank(c.input(op.operand)) > 0) shape = c.Slice(c.input(op.operand), 1);
      break;
    case HandleShape::kPieces:
      if (c.rank(c.input(op.operand)) > 0) {
        shape = c.ReplaceDim(c.input(op.operand), 0, kUnknownDim);
      }
      break;
    case HandleShape::kList:
      if (c.rank(c.handle(op.operand)) > 0) shape = c.Slice(c.handle(op.operand), 1);
      break;
  }
  if (is_list) {
    if (IsHandleType(c.input_type(0))) c.note_variable(0, {kDtInvalid, shape, false, true, value});
    return;
  }
  const bool all = op.shape == HandleShape::kOperand || op.shape == HandleShape::kRows;
  // An optimizer's op takes a variable and its slots: fewer than this.
  constexpr int kMaxHandles = 16;
  for (int i = 0; i < (all ? std::min(c.num_inputs(), kMaxHandles) : 1); ++i) {
    if (c.input_type(i) != kDtResource) continue;
    c.note_variable(i, {dtype, shape, false, false, kUnknownShape});
    // Variables that are updated together have the same shape.
    if (all && op.dtype == "T" && c.known(c.handle(i))) {
      for (int other = 0; other < i; ++other) {
        if (c.input_type(other) != kDtResource) continue;
        c.note_variable(other, {dtype, c.handle(i), false, false, kUnknownShape});
      }
      if (i > 0) c.note_variable(i, {dtype, c.handle(0), false, false, kUnknownShape});
    }
  }
}

bool ForwardsHandle(absl::string_view op) { return Contains(kForward, op); }

Tensor HandleOrigin(const Graph& graph, Tensor handle) {
  for (int hop = 0; hop < kMaxHandleHops; ++hop) {
    const absl::string_view op = graph.op(handle.node);
    const absl::Span<const Tensor> inputs = graph.inputs(handle.node);
    const bool each = Contains(kHandOnEach, op);
    // The initial value of a loop.
    const bool is_loop = op == "Merge" && handle.port == 0 && inputs.size() > 1 &&
                         IsBackEdge(graph, inputs[1].node, handle.node);
    if (!each && !is_loop && !ForwardsHandle(op)) break;
    const size_t from = each ? handle.port : 0;
    if (handle.port < 0 || from >= inputs.size() || inputs[from].is_control()) break;
    if (op == "TensorListPopBack" && handle.port != 0) break;
    handle = inputs[from];
  }
  return handle;
}

VariableFact JoinVariables(const VariableFact& a, const VariableFact& b, ShapePool* pool) {
  if (b.is_list || a.is_list) {
    if (!b.is_list || !a.is_list) return a.is_list ? a : b;
    VariableFact both = a;
    both.shape = JoinShapes(*pool, a.shape, b.shape);
    if (a.value != b.value) both.value = kUnknownShape;
    return both;
  }
  VariableFact joined = a;
  if (joined.dtype == kDtInvalid) joined.dtype = b.dtype;
  joined.contradicted = a.contradicted || b.contradicted;
  if (joined.contradicted) {
    joined.shape = kUnknownShape;
    return joined;
  }
  const auto merged = MergeStatements(*pool, a.shape, b.shape);
  joined.contradicted = !merged.has_value();
  joined.shape = merged.value_or(kUnknownShape);
  return joined;
}

}  // namespace spillway::core
