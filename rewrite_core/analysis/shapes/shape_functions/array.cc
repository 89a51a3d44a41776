// Arrays: constants, shapes as tensors, and ops that forward, reshape or fill arrays. Joining and
// slicing are in slicing.cc.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/shapes/shape_functions/common.h"
#include "rewrite_core/analysis/shapes/shape_table.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::core {
namespace {

using Values = absl::Span<const int64_t>;

void Const(ShapeContext& c) { c.set(0, c.TensorAttrShape("value")); }

void Placeholder(ShapeContext& c) {
  const ShapeId shape = c.ShapeAttr("shape");
  // A scalar meant "unknown" before producer 22.
  if (shape != kScalar || c.producer() > 21) c.set(0, shape);
}

void ShapeAttribute(ShapeContext& c) { c.set(0, c.ShapeAttr("shape")); }

void EnsureShape(ShapeContext& c) {
  c.pass(0, 0);
  c.refine(0, c.ShapeAttr("shape"));
}

// Each output is the input at its position.
void PassAll(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.pass(i, i);
}

// ---- Shapes as tensors.
void SetShapeOf(ShapeContext& c, int port, ShapeId shape) {
  c.set(port, c.known(shape) ? c.Make({c.rank(shape)}) : c.OfRank(1));
  c.set_shape_value(port, shape);
}

void ShapeOp(ShapeContext& c) { SetShapeOf(c, 0, c.input(0)); }

void ShapeN(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) SetShapeOf(c, i, c.input(i));
}

void Size(ShapeContext& c) {
  c.set(0, kScalar);
  if (const int64_t count = c.Elements(c.input(0)); count >= 0) c.set_value(0, {count});
}

void Rank(ShapeContext& c) {
  c.set(0, kScalar);
  if (c.known(c.input(0))) c.set_value(0, {c.rank(c.input(0))});
}

// BroadcastArgs(s0, s1): the shape that both broadcast to.
void BroadcastArgs(ShapeContext& c) {
  const auto a = c.Value(0), b = c.Value(1);
  const int64_t x = c.dim(c.WithRank(0, 1), 0), y = c.dim(c.WithRank(1, 1), 0);
  c.set(0, c.Make({x < 0 || y < 0 ? kUnknownDim : std::max(x, y)}));
  if (a && b) {
    const ShapeId shape = c.Broadcast(c.ShapeFromValue(0), c.ShapeFromValue(1));
    if (c.known(shape)) c.set_shape_value(0, shape);
  }
}

// BroadcastGradientArgs(s0, s1) -> r0, r1: the axes over which to sum the gradients of two
// broadcast operands.
void BroadcastGradientArgs(ShapeContext& c) {
  c.set_all(c.OfRank(1));
  const auto a = c.Value(0), b = c.Value(1);
  if (!a || !b) return;
  const int size = static_cast<int>(std::max(a->size(), b->size()));
  const auto at = [size](Values v, int i) {
    const int skipped = size - static_cast<int>(v.size());
    return i < skipped ? int64_t{1} : v[i - skipped];
  };
  DimVector sums[2];
  for (int i = 0; i < size; ++i) {
    const int64_t x = at(*a, i), y = at(*b, i);
    if (x == kUnknownElement || y == kUnknownElement) return;
    // If both are 1, TensorFlow sums over both, which changes nothing.
    if (x == 1) sums[0].push_back(i);
    if (y == 1) sums[1].push_back(i);
  }
  if (std::equal(a->begin(), a->end(), b->begin(), b->end())) sums[0] = sums[1] = {};
  for (int i = 0; i < 2; ++i) {
    c.set(i, c.Make({static_cast<int64_t>(sums[i].size())}));
    c.set_value(i, sums[i]);
  }
}

// ---- Other views of the same elements.
void Reshape(ShapeContext& c) {
  const ShapeId in = c.input(0);
  ShapeId out = c.ShapeFromValue(1);
  if (c.known(in) && c.known(out)) {
    // One unknown dimension follows from the number of elements.
    int64_t known = 1, open = -1, opens = 0;
    const Values dims = c.dims(out);
    for (int i = 0; i < c.rank(out); ++i) {
      if (dims[i] == kUnknownDim) {
        open = i;
        ++opens;
      } else {
        known = c.Mul(known, dims[i]);
      }
    }
    // If the other dimensions are smaller, it may be larger.
    const int64_t elements = c.is_bound(1) ? kUnknownDim : c.Elements(in);
    if (elements >= 0 && opens == 0 && known != elements && known >= 0) {
      c.Fail(absl::StrCat(elements, " elements do not make a shape of ", known));
    } else if (elements >= 0 && opens == 1 && known > 0) {
      if (elements % known != 0) {
        c.Fail(absl::StrCat(elements, " elements are no multiple of ", known));
      } else {
        out = c.ReplaceDim(out, static_cast<int>(open), elements / known);
      }
    }
  }
  c.set(0, out);
  if (PutsOutIntegers(c)) c.pass_extra(0, 0);
}

void ExpandDims(ShapeContext& c) {
  const ShapeId in = c.input(0);
  if (!c.known(in)) return;
  const int64_t at = c.ScalarValue(1);
  if (at == kUnknownElement) return c.set(0, c.OfRank(c.rank(in) + 1));
  const int axis = c.Axis(at, c.rank(in) + 1);
  if (axis < 0) return;
  c.set(0, c.Concat(c.Concat(c.Slice(in, 0, axis), c.Make({1})), c.Slice(in, axis)));
  if (PutsOutIntegers(c)) c.pass_extra(0, 0);
}

void Squeeze(ShapeContext& c) {
  const ShapeId in = c.input(0);
  if (!c.known(in)) return;
  std::vector<bool> drop(c.rank(in), false);
  const DimVector axes = c.Ints("squeeze_dims");
  for (int64_t item : axes) {
    const int axis = c.Axis(item, c.rank(in));
    if (axis < 0) return;
    if (c.dim(in, axis) > 1 || c.dim(in, axis) == 0) {
      return c.Fail(absl::StrCat("dimension ", axis, " is ", c.dim(in, axis), ", not 1"));
    }
    drop[axis] = true;
  }
  DimVector out;
  for (int i = 0; i < c.rank(in); ++i) {
    const int64_t dim = c.dim(in, i);
    // Without axes, an unknown dimension may or may not be 1, so even the rank is unknown.
    if (axes.empty() && dim == kUnknownDim) return;
    if (!drop[i] && (!axes.empty() || dim != 1)) out.push_back(dim);
  }
  c.set(0, c.Make(out));
  if (PutsOutIntegers(c)) c.pass_extra(0, 0);
}

void Transpose(ShapeContext& c) {
  ShapeId in = c.input(0);
  const auto order = c.Value(1);
  if (!c.known(in)) {
    const int64_t size = c.dim(c.input(1), 0);
    in = size > kMaxRank ? kUnknownShape : c.OfRank(static_cast<int>(size));
  }
  if (!c.known(in)) return;
  if (c.rank(in) < 2) return c.set(0, in);
  ArrayView out = WholeArray(c, in);
  const DimVector steps = out.steps;
  std::fill(out.sizes.begin(), out.sizes.end(), kUnknownDim);
  if (order) {
    if (order->size() != out.sizes.size()) {
      return c.Fail(
          absl::StrCat("a permutation of ", order->size(), " for rank ", out.sizes.size()));
    }
    for (size_t i = 0; i < out.sizes.size(); ++i) {
      const int axis = c.Axis((*order)[i], c.rank(in));
      if (axis < 0) continue;
      out.sizes[i] = c.dim(in, axis);
      out.steps[i] = steps[axis];
    }
  }
  c.set(0, c.Make(out.sizes));
  SetViewedValue(c, 0, 0, out);
}

void Bitcast(ShapeContext& c) {
  const ShapeId in = c.input(0);
  const int from = ElementBytes(c.input_type(0)), to = ElementBytes(c.output_type(0));
  if (!c.known(in) || from == 0 || to == 0) return;
  if (from == to) return c.set(0, in);
  if (from > to) return c.set(0, c.Concat(in, c.Make({from / to})));
  c.set(0, c.Slice(in, 0, -1));
}

// ---- Filled.
void SetAllItems(ShapeContext& c, int64_t item) {
  const int64_t count = c.Elements(c.output(0));
  if (PutsOutIntegers(c) && count >= 0 && count <= ShapePool::kMaxListSize) {
    c.set_value(0, DimVector(count, item));
  }
}

void Fill(ShapeContext& c) {
  c.set(0, c.ShapeFromValue(0));
  if (PutsOutIntegers(c)) SetAllItems(c, c.ScalarValue(1));
}

void ZerosLike(ShapeContext& c) {
  c.set(0, c.input(0));
  // A list is the same list of empty elements.
  if (IsHandleType(c.output_type(0))) c.pass_extra(0, 0);
  SetAllItems(c, 0);
}

void OnesLike(ShapeContext& c) {
  c.set(0, c.input(0));
  SetAllItems(c, 1);
}

// (tensor, indices, updates). Of shapes, as a gather in batches makes them.
void TensorScatterUpdate(ShapeContext& c) {
  Unchanged(c);
  if (!PutsOutIntegers(c) || c.rank(c.input(0)) != 1 || c.dim(c.input(1), -1) != 1) return;
  const auto value = c.Value(0), indices = c.Value(1), updates = c.Value(2);
  if (!value || !indices || !updates || indices->size() != updates->size()) return;
  DimVector items(value->begin(), value->end());
  for (size_t i = 0; i < indices->size(); ++i) {
    const int64_t at = (*indices)[i];
    if (at < 0 || at >= static_cast<int64_t>(items.size())) return;
    items[at] = (*updates)[i];
  }
  c.set_value(0, items);
}

// As RangeSize of TensorFlow's math_ops.cc.
void RangeOfFloats(ShapeContext& c) {
  const auto start = c.FloatValue(0), limit = c.FloatValue(1), delta = c.FloatValue(2);
  if (!start || !limit || !delta) return;
  const float count = std::ceil(std::abs((*limit - *start) / *delta));
  if (count < static_cast<float>(std::numeric_limits<int32_t>::max())) {
    c.set(0, c.Make({static_cast<int64_t>(count)}));
  }
}

void Range(ShapeContext& c) {
  c.set(0, c.OfRank(1));
  if (c.output_type(0) == kDtFloat32) return RangeOfFloats(c);
  const int64_t start = c.ScalarValue(0), limit = c.ScalarValue(1), delta = c.ScalarValue(2);
  if (start == kUnknownElement || limit == kUnknownElement || delta == kUnknownElement) return;
  if (delta == 0) return c.Fail("delta is 0");
  int64_t span;
  if (__builtin_sub_overflow(delta > 0 ? limit : start, delta > 0 ? start : limit, &span)) return;
  if (span < 0) {
    return c.Fail(
        absl::StrCat("a range from ", start, " to ", limit, " cannot have the step ", delta));
  }
  int64_t count = 0;
  if (span > 0) count = delta > 0 ? (span - 1) / delta + 1 : -((span - 1) / delta) + 1;
  c.set(0, c.Make({count}));
  if (count > ShapePool::kMaxListSize) return;
  DimVector items;
  for (int64_t i = 0, item = start; i < count; ++i) {
    items.push_back(item);
    if (i + 1 < count) item += delta;
  }
  c.set_value(0, items);
}

void LinSpace(ShapeContext& c) { c.set(0, c.Make({std::max(c.ScalarValue(2), kUnknownDim)})); }

// ---- Sizes that depend on values.
void Where(ShapeContext& c) {
  const ShapeId in = c.input(0);
  c.set(0, c.Make({kUnknownDim, c.rank(in)}));
  c.set_bound(0, c.Make({c.Elements(in), c.rank(in)}));  // All of them.
}

// Unique(x) -> y, idx[, count].
void Unique(ShapeContext& c) {
  const ShapeId in = c.WithRank(0, 1);
  c.set_all(c.OfRank(1));
  c.set(1, in);
  c.set_bound(0, in);
  c.set_bound(2, in);
}

// UniqueV2(x, axis).
void UniqueV2(ShapeContext& c) {
  const ShapeId in = c.input(0);
  const auto axes = c.Value(1);
  c.set(1, c.OfRank(1));
  c.set(2, c.OfRank(1));
  if (!axes) return c.set(0, c.OfRank(c.rank(in)));
  const int64_t at = axes->empty() ? 0 : (*axes)[0];
  if (axes->size() > 1) return c.Fail("it takes one axis or none");
  const int axis = c.Axis(at, c.rank(in));
  if (axis < 0) return;
  const ShapeId items = c.Make({c.dim(in, axis)});
  c.set(0, c.ReplaceDim(in, axis, kUnknownDim));
  c.set(1, items);
  c.set_bound(0, in);
  c.set_bound(2, items);
}

void ListDiff(ShapeContext& c) {
  c.set_all(c.OfRank(1));
  c.set_bound(0, c.input(0));
  c.set_bound(1, c.input(0));
}

void InvertPermutation(ShapeContext& c) {
  c.set(0, c.WithRank(0, 1));
  const auto value = c.Value(0);
  if (!value) return;
  DimVector items(value->size(), kUnknownElement);
  for (size_t i = 0; i < value->size(); ++i) {
    const int64_t at = (*value)[i];
    if (at >= 0 && at < static_cast<int64_t>(items.size())) items[at] = static_cast<int64_t>(i);
  }
  c.set_value(0, items);
}

// DynamicStitch(indices..., data...): as long as the highest index says.
void DynamicStitch(ShapeContext& c) {
  const int parts = c.num_inputs() / 2;
  int64_t size = 0;
  ShapeId item = kUnknownShape;
  bool whole = PutsOutIntegers(c);
  for (int i = 0; i < parts; ++i) {
    const ShapeId indices = c.input(i), data = c.input(parts + i);
    if (c.known(indices) && c.known(data)) item = c.Merge(item, c.Slice(data, c.rank(indices)));
    const auto value = c.Value(i);
    if (!value) size = kUnknownDim;
    for (size_t k = 0; value && k < value->size(); ++k) {
      const int64_t index = (*value)[k];
      if (index < 0 || index >= std::numeric_limits<int32_t>::max()) {
        size = kUnknownDim;  // Unknown, or invalid.
      } else if (size != kUnknownDim) {
        size = std::max(size, index + 1);
      }
    }
  }
  if (!c.known(item)) return;
  c.set(0, c.Concat(c.Make({size}), item));
  if (!whole || item != kScalar || size < 0 || size > ShapePool::kMaxListSize) return;
  DimVector items(size, kUnknownElement);
  for (int i = 0; i < parts; ++i) {
    const auto indices = c.Value(i), data = c.Value(parts + i);
    for (size_t k = 0; k < indices->size(); ++k) {
      items[(*indices)[k]] = data && data->size() == indices->size() ? (*data)[k] : kUnknownElement;
    }
  }
  c.set_value(0, items);
}

// DynamicPartition(data, partitions).
void DynamicPartition(ShapeContext& c) {
  const ShapeId data = c.input(0), partitions = c.input(1);
  if (!c.known(data) || !c.known(partitions)) return;
  if (c.rank(partitions) > c.rank(data)) return c.Fail("partitions has a higher rank than data");
  const ShapeId item = c.Slice(data, c.rank(partitions));
  c.set_all(c.Concat(c.OfRank(1), item));
  // Each part may be the whole input.
  const ShapeId all = c.Concat(c.Make({c.Elements(partitions)}), item);
  for (int port = 0; port < c.num_outputs(); ++port) c.set_bound(port, all);
}

void Reverse(ShapeContext& c) {
  c.set(0, c.input(0));
  if (!PutsOutIntegers(c) || c.rank(c.input(0)) != 1) return;
  const auto value = c.Value(0), axes = c.Value(1);
  if (!value || !axes || axes->size() != 1) return;
  c.set_value(0, DimVector(value->rbegin(), value->rend()));
}

// Reverse(tensor, dims): a boolean for each dimension.
void ReverseMarked(ShapeContext& c) {
  const int64_t rank = c.dim(c.WithRank(1, 1), 0);
  c.set(0,
        c.Merge(c.input(0), rank <= kMaxRank ? c.OfRank(static_cast<int>(rank)) : kUnknownShape));
}

// LowerBound(sorted, values).
void Pass(ShapeContext& c) {
  if (c.output_type(0) == kDtBool) c.Value(0);  // May be a constant predicate.
  c.pass(0, 0);
}

constexpr ShapeRule kArrayRules[] = {
    {"Bitcast", Bitcast},
    {"BroadcastArgs", BroadcastArgs},
    {"BroadcastGradientArgs", BroadcastGradientArgs},
    {"CheckNumerics", Unchanged},
    {"CheckNumericsV2", Unchanged},
    {"Const", Const},
    {"Copy", Pass},
    {"CopyHost", Pass},
    {"DebugGradientIdentity", Pass},
    {"DebugGradientRefIdentity", Pass},
    {"DebugIdentity", Pass},
    {"DebugIdentityV2", Pass},
    {"DeepCopy", Pass},
    {"Dequantize", Unchanged},
    {"DynamicPartition", DynamicPartition},
    {"DynamicStitch", DynamicStitch},
    {"Empty", ShapeFromFirst},
    {"EnsureShape", EnsureShape},
    {"ExpandDims", ExpandDims},
    {"FakeQuantWithMinMaxArgs", Unchanged},
    {"FakeQuantWithMinMaxArgsGradient", Unchanged},
    {"FakeQuantWithMinMaxVars", Unchanged},
    {"FakeQuantWithMinMaxVarsPerChannel", Unchanged},
    {"Fill", Fill},
    {"GuaranteeConst", Pass},
    {"Identity", Pass},
    {"IdentityN", PassAll},
    {"ImmutableConst", ShapeAttribute},
    {"InplaceAdd", Unchanged},
    {"InplaceSub", Unchanged},
    {"InplaceUpdate", Unchanged},
    {"InvertPermutation", InvertPermutation},
    {"LinSpace", LinSpace},
    {"ListDiff", ListDiff},
    {"LowerBound", ShapeOfSecond},
    {"MatrixBandPart", Unchanged},
    {"OnesLike", OnesLike},
    {"ParallelConcat", ShapeAttribute},
    {"ParallelDynamicStitch", DynamicStitch},
    {"Placeholder", Placeholder},
    {"PlaceholderV2", ShapeAttribute},
    {"PlaceholderWithDefault", ShapeAttribute},
    {"PreventGradient", Pass},
    {"QuantizeAndDequantize", Unchanged},
    {"QuantizeAndDequantizeV2", Unchanged},
    {"QuantizeAndDequantizeV3", Unchanged},
    {"QuantizeAndDequantizeV4", Unchanged},
    {"Range", Range},
    {"Rank", Rank},
    {"RefIdentity", Pass},
    {"Reshape", Reshape},
    {"Reverse", ReverseMarked},
    {"ReverseSequence", Unchanged},
    {"ReverseV2", Reverse},
    {"Roll", Unchanged},
    {"ScatterNdNonAliasingAdd", Unchanged},
    {"Shape", ShapeOp},
    {"ShapeN", ShapeN},
    {"Size", Size},
    {"Snapshot", Pass},
    {"Squeeze", Squeeze},
    {"StopGradient", Pass},
    {"StridedSliceAssign", Unchanged},
    {"TensorScatterAdd", Unchanged},
    {"TensorScatterMax", Unchanged},
    {"TensorScatterMin", Unchanged},
    {"TensorScatterSub", Unchanged},
    {"TensorScatterUpdate", TensorScatterUpdate},
    {"TensorStridedSliceUpdate", Unchanged},
    {"Transpose", Transpose},
    {"ConjugateTranspose", Transpose},
    {"Unique", Unique},
    {"UniqueV2", UniqueV2},
    {"UniqueWithCounts", Unique},
    {"UniqueWithCountsV2", UniqueV2},
    {"UpperBound", ShapeOfSecond},
    {"Where", Where},
    {"ZerosLike", ZerosLike},
    {"_CopyFromGpuToHost", Pass},
    {"_CopyFromHostToGpu", Pass},
};

}  // namespace

absl::Span<const ShapeRule> ArrayShapeRules() { return kArrayRules; }

}  // namespace spillway::core
