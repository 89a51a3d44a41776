// Variables, by reference and by resource, and the ops that read and update them.
#include "rewrite_core/analysis/shapes/shape_table.h"

namespace spillway::core {
namespace {

// Variable (v1): an attribute without dimensions meant "unknown".
void Variable(ShapeContext& c) {
  const ShapeId shape = c.ShapeAttr("shape");
  c.set(0, shape == kScalar ? kUnknownShape : shape);
}

void VariableV2(ShapeContext& c) { c.set(0, c.ShapeAttr("shape")); }

// VarHandleOp and the like: a scalar handle of a tensor of that shape.
void VarHandle(ShapeContext& c) {
  c.set(0, kScalar);
  c.set_handle(0, c.ShapeAttr("shape"));
}

// Assign(ref, value): the value's shape, which must equal the reference's if validated.
void Assign(ShapeContext& c) {
  if (c.Bool("validate_shape", true)) {
    c.set(0, c.Merge(c.input(0), c.input(1)));
  } else {
    c.set(0, c.input(1));
  }
}

// AssignAdd(ref, value) and the like.
void AssignUpdate(ShapeContext& c) { c.set(0, c.Merge(c.input(0), c.input(1))); }

void ReadVariable(ShapeContext& c) { c.set(0, c.handle(0)); }

// AssignVariableOp(resource, value) and the like.
void AssignVariable(ShapeContext& c) { c.Merge(c.handle(0), c.input(1)); }

// VariableShape(resource).
void VariableShape(ShapeContext& c) {
  const ShapeId shape = c.handle(0);
  c.set(0, c.known(shape) ? c.Make({c.rank(shape)}) : c.OfRank(1));
  if (c.known(shape)) c.set_shape_value(0, shape);
}

// ResourceGather(resource, indices).
void ResourceGather(ShapeContext& c) {
  const ShapeId params = c.handle(0), indices = c.input(1);
  const int64_t dims = c.Int("batch_dims");
  if (!c.known(params) || c.rank(params) < 1 || dims < 0 || dims > c.rank(params)) return;
  const int batch = static_cast<int>(dims);
  const ShapeId head = c.Concat(c.Slice(params, 0, batch), c.Slice(indices, batch));
  c.set(0, c.Concat(c.known(indices) ? head : kUnknownShape, c.Slice(params, batch + 1)));
}

// ResourceGatherNd(resource, indices).
void ResourceGatherNd(ShapeContext& c) {
  const ShapeId params = c.handle(0), indices = c.WithRankAtLeast(1, 1);
  const int64_t depth = c.dim(indices, -1);
  if (!c.known(params) || depth == kUnknownDim || depth > c.rank(params)) return;
  c.set(0, c.Concat(c.Slice(indices, 0, -1), c.Slice(params, static_cast<int>(depth))));
}

constexpr ShapeRule kStateRules[] = {
    {"Assign", Assign},
    {"AssignAdd", AssignUpdate},
    {"AssignAddVariableOp", AssignVariable},
    {"AssignSub", AssignUpdate},
    {"AssignSubVariableOp", AssignVariable},
    {"AssignVariableOp", AssignVariable},
    {"CountUpTo", Scalars},
    {"DestroyTemporaryVariable", Unchanged},
    {"IsVariableInitialized", Scalars},
    {"ReadVariableOp", ReadVariable},
    {"ResourceGather", ResourceGather},
    {"ResourceGatherNd", ResourceGatherNd},
    {"ScatterAdd", Unchanged},
    {"ScatterDiv", Unchanged},
    {"ScatterMax", Unchanged},
    {"ScatterMin", Unchanged},
    {"ScatterMul", Unchanged},
    {"ScatterNdAdd", Unchanged},
    {"ScatterNdMax", Unchanged},
    {"ScatterNdMin", Unchanged},
    {"ScatterNdSub", Unchanged},
    {"ScatterNdUpdate", Unchanged},
    {"ScatterSub", Unchanged},
    {"ScatterUpdate", Unchanged},
    {"TemporaryVariable", VariableV2},
    {"VarHandleOp", VarHandle},
    {"VarIsInitializedOp", Scalars},
    {"Variable", Variable},
    {"VariableShape", VariableShape},
    {"VariableV2", VariableV2},
};

}  // namespace

absl::Span<const ShapeRule> StateShapeRules() { return kStateRules; }

}  // namespace spillway::core
