// Mathematics: elementwise ops, products of matrices, reductions, segments, linear algebra.
#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "rewrite_core/analysis/shapes/shape_table.h"

namespace spillway::core {
namespace {

using Values = absl::Span<const int64_t>;

// ---- Arithmetic on values: shapes are computed with these.

// Calls op(a, b, &result) per element and sets output 0; op returns whether there is a result.
template <typename Op>
void FoldBinary(ShapeContext& c, const Op& op) {
  if (!IsValueType(c.output_type(0))) return;
  const auto a = c.Value(0), b = c.Value(1);
  if (!a || !b) return;
  // Broadcasting, as far as it is used to compute shapes: equal sizes, or one element on a side.
  if (a->size() != b->size() && a->size() != 1 && b->size() != 1) return;
  if (a->size() > 1 && b->size() > 1 && c.input(0) != c.input(1)) return;
  if (a->empty() || b->empty()) return;
  DimVector items(std::max(a->size(), b->size()), kUnknownElement);
  const bool narrow = c.output_type(0) == kDtInt32;
  for (size_t i = 0; i < items.size(); ++i) {
    const int64_t x = (*a)[a->size() == 1 ? 0 : i], y = (*b)[b->size() == 1 ? 0 : i];
    int64_t result;
    if (x == kUnknownElement || y == kUnknownElement || !op(x, y, &result)) continue;
    // A value that wraps around in TensorFlow is not a size.
    if (narrow && result != static_cast<int32_t>(result)) continue;
    items[i] = result;
  }
  c.set_value(0, items);
}

// Whether x / y is defined: no division by 0, no overflow.
bool Divides(int64_t x, int64_t y) {
  return y != 0 && !(y == -1 && x == std::numeric_limits<int64_t>::min());
}

int64_t FloorQuotient(int64_t x, int64_t y) {
  return x / y - (x % y != 0 && (x < 0) != (y < 0) ? 1 : 0);
}

void Add(ShapeContext& c) {
  BroadcastBinary(c);
  FoldBinary(c, [](int64_t x, int64_t y, int64_t* r) { return !__builtin_add_overflow(x, y, r); });
}

void Sub(ShapeContext& c) {
  BroadcastBinary(c);
  FoldBinary(c, [](int64_t x, int64_t y, int64_t* r) { return !__builtin_sub_overflow(x, y, r); });
}

void Mul(ShapeContext& c) {
  BroadcastBinary(c);
  FoldBinary(c, [](int64_t x, int64_t y, int64_t* r) { return !__builtin_mul_overflow(x, y, r); });
}

void FloorDiv(ShapeContext& c) {
  BroadcastBinary(c);
  FoldBinary(c, [](int64_t x, int64_t y, int64_t* r) {
    return Divides(x, y) && (*r = FloorQuotient(x, y), true);
  });
}

// TruncateDiv, and Div of integers.
void TruncateDiv(ShapeContext& c) {
  BroadcastBinary(c);
  FoldBinary(c,
             [](int64_t x, int64_t y, int64_t* r) { return Divides(x, y) && (*r = x / y, true); });
}

void FloorMod(ShapeContext& c) {
  BroadcastBinary(c);
  FoldBinary(c, [](int64_t x, int64_t y, int64_t* r) {
    if (!Divides(x, y)) return false;
    *r = x % y;
    if (*r != 0 && (*r < 0) != (y < 0)) *r += y;
    return true;
  });
}

void Maximum(ShapeContext& c) {
  BroadcastBinary(c);
  FoldBinary(c, [](int64_t x, int64_t y, int64_t* r) { return *r = std::max(x, y), true; });
}

void Minimum(ShapeContext& c) {
  BroadcastBinary(c);
  FoldBinary(c, [](int64_t x, int64_t y, int64_t* r) { return *r = std::min(x, y), true; });
}

void Neg(ShapeContext& c) {
  Unchanged(c);
  const auto value = IsValueType(c.output_type(0)) ? c.Value(0) : absl::nullopt;
  if (!value) return;
  DimVector items(value->begin(), value->end());
  for (int64_t& item : items) {
    if (item != kUnknownElement) item = -item;
  }
  c.set_value(0, items);
}

void Cast(ShapeContext& c) {
  c.set(0, c.input(0));
  const auto value = IsValueType(c.output_type(0)) ? c.Value(0) : absl::nullopt;
  if (!value) return;
  DimVector items(value->begin(), value->end());
  for (int64_t& item : items) {
    if (c.output_type(0) == kDtInt32 && item != static_cast<int32_t>(item)) item = kUnknownElement;
    if (c.output_type(0) == kDtBool && item != kUnknownElement) item = item != 0;
  }
  c.set_value(0, items);
}

// Predicates of conditionals, as far as they are computed from feeds.
void LogicalNot(ShapeContext& c) {
  Unchanged(c);
  const auto value = c.Value(0);
  if (!value) return;
  DimVector items(value->begin(), value->end());
  for (int64_t& item : items) {
    if (item != kUnknownElement) item = item == 0;
  }
  c.set_value(0, items);
}

void LogicalAnd(ShapeContext& c) {
  BroadcastBinary(c);
  FoldBinary(c, [](int64_t x, int64_t y, int64_t* r) { return *r = x & y, true; });
}

void LogicalOr(ShapeContext& c) {
  BroadcastBinary(c);
  FoldBinary(c, [](int64_t x, int64_t y, int64_t* r) { return *r = x | y, true; });
}

// Equal and NotEqual: shapes that do not broadcast may be an answer ("not equal").
void Equal(ShapeContext& c) {
  const ShapeId a = c.input(0), b = c.input(1);
  if (c.Bool("incompatible_shape_error", true)) return BroadcastBinary(c);
  if (!c.known(a) || !c.known(b)) return;
  for (int i = 1; i <= std::min(c.rank(a), c.rank(b)); ++i) {
    const int64_t x = c.dim(a, -i), y = c.dim(b, -i);
    if (x == 1 || y == 1) continue;
    if (x < 0 || y < 0) return;
    if (x != y) return c.set(0, kScalar);
  }
  BroadcastBinary(c);
}

// All inputs are one shape (AddN, gradients of activations).
void MergeAll(ShapeContext& c) {
  ShapeId merged = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) merged = c.Merge(merged, c.input(i));
  c.set(0, merged);
  if (c.num_inputs() == 1) c.pass_extra(0, 0);
}

// For variants, AddN forwards the first input's handle.
void AddN(ShapeContext& c) {
  MergeAll(c);
  if (IsHandleType(c.output_type(0))) c.pass_extra(0, 0);
}

void BroadcastAll(ShapeContext& c) {
  ShapeId shape = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) shape = c.Broadcast(shape, c.input(i));
  c.set(0, shape);
}

// Select(condition, then, else): the condition is a scalar, a vector of rows, or the whole shape.
void Select(ShapeContext& c) {
  const ShapeId shape = c.Merge(c.input(1), c.input(2)), condition = c.input(0);
  c.set(0, shape);
  if (c.rank(condition) > 1) c.set(0, c.Merge(shape, condition));
  if (c.rank(condition) == 1 && c.known(shape) && c.rank(shape) > 0) {
    c.set(0, c.ReplaceDim(shape, 0, c.MergeDims(c.dim(shape, 0), c.dim(condition, 0))));
  }
  // For integers and handles: both sides' common part.
  c.Value(1);
  c.Value(2);
  if (c.rank(c.output(0)) == c.rank(c.input(1))) {
    TensorFact fact = c.JoinFacts(c.fact(1), c.fact(2));
    fact.shape = c.output(0);
    c.set_fact(0, fact);
  }
}

// Betainc(a, b, x): those that are not scalars have the same shape.
void Betainc(ShapeContext& c) {
  ShapeId shape = kScalar;
  bool all_known = true;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const ShapeId in = c.input(i);
    if (!c.known(in)) all_known = false;
    if (c.rank(in) > 0) shape = shape == kScalar ? in : c.Merge(shape, in);
  }
  if (all_known || shape != kScalar) c.set(0, shape);
}

// ClipByValue(t, low, high): the bounds are scalars, or of the same shape.
void Clip(ShapeContext& c) { c.set(0, c.input(0)); }

// ---- Matrices.
void MatMul(ShapeContext& c) {
  const ShapeId a = c.WithRank(0, 2), b = c.WithRank(1, 2);
  // Sparse* name theirs differently.
  const bool ta = c.Bool("transpose_a") || c.Bool("adjoint_a");
  const bool tb = c.Bool("transpose_b") || c.Bool("adjoint_b");
  c.MergeDims(c.dim(a, ta ? 0 : 1), c.dim(b, tb ? 1 : 0));
  c.set(0, c.Make({c.dim(a, ta ? 1 : 0), c.dim(b, tb ? 0 : 1)}));
}

// BatchMatMul (the batch dimensions are equal) and its later versions (they broadcast).
void BatchMatMulWith(ShapeContext& c, bool broadcast) {
  const ShapeId a = c.WithRankAtLeast(0, 2), b = c.WithRankAtLeast(1, 2);
  const bool ta = c.Bool("adj_x"), tb = c.Bool("adj_y");
  if (!c.known(a) || !c.known(b)) {
    if (broadcast || (!c.known(a) && !c.known(b))) return;
    const ShapeId batch = c.Slice(c.known(a) ? a : b, 0, -2);
    return c.set(0, c.Concat(batch, c.Make({c.dim(a, ta ? -1 : -2), c.dim(b, tb ? -2 : -1)})));
  }
  c.MergeDims(c.dim(a, ta ? -2 : -1), c.dim(b, tb ? -1 : -2));
  const ShapeId x = c.Slice(a, 0, -2), y = c.Slice(b, 0, -2);
  c.set(0, c.Concat(broadcast ? c.Broadcast(x, y) : c.Merge(x, y),
                    c.Make({c.dim(a, ta ? -1 : -2), c.dim(b, tb ? -2 : -1)})));
}

void BatchMatMul(ShapeContext& c) { BatchMatMulWith(c, false); }
void BatchMatMulV2(ShapeContext& c) { BatchMatMulWith(c, true); }

// Einsum: a letter names a dimension; `...` stands for dimensions that broadcast.
void Einsum(ShapeContext& c) {
  if (c.String("equation").size() > kMaxEquation) return;
  const std::pair<absl::string_view, absl::string_view> sides =
      absl::StrSplit(c.String("equation"), absl::MaxSplits("->", 1));
  const std::vector<absl::string_view> terms = absl::StrSplit(sides.first, ',');
  if (static_cast<int>(terms.size()) != c.num_inputs()) return;
  absl::flat_hash_map<char, int64_t> dims;
  ShapeId broadcast = kScalar;  // The dimensions of the ellipses.
  for (int i = 0; i < c.num_inputs(); ++i) {
    const ShapeId in = c.input(i);
    const size_t dots = terms[i].find("...");
    const bool has_dots = dots != absl::string_view::npos;
    const int letters = static_cast<int>(terms[i].size()) - (has_dots ? 3 : 0);
    if (!c.known(in)) {
      for (char letter : terms[i]) dims.try_emplace(letter, kUnknownDim);
      if (has_dots) broadcast = kUnknownShape;
      continue;
    }
    const int rank = c.rank(in);
    if (has_dots ? rank < letters : rank != letters) {
      return c.Fail(absl::StrCat("input ", i, " has rank ", rank, ", its term another"));
    }
    const int before = has_dots ? static_cast<int>(dots) : letters;
    const int after = letters - before;
    for (int k = 0; k < letters; ++k) {
      const char letter = terms[i][k < before ? k : k + 3];
      const int64_t dim = c.dim(in, k < before ? k : rank - letters + k);
      const auto added = dims.try_emplace(letter, dim);
      if (!added.second) added.first->second = c.MergeDims(added.first->second, dim);
    }
    if (has_dots) broadcast = c.Broadcast(broadcast, c.Slice(in, before, rank - after));
  }
  ShapeId out = kScalar;
  for (size_t k = 0; k < sides.second.size(); ++k) {
    if (sides.second.substr(k, 3) == "...") {
      out = c.Concat(out, broadcast);
      k += 2;
    } else {
      const auto dim = dims.find(sides.second[k]);
      out = c.Concat(out, c.Make({dim == dims.end() ? kUnknownDim : dim->second}));
    }
  }
  c.set(0, out);
}

// Cross(a, b): vectors of three.
void Cross(ShapeContext& c) { c.set(0, c.Merge(c.input(0), c.input(1))); }

// ---- Reductions. Input 1 names the axes.
ShapeId Reduced(ShapeContext& c) {
  const ShapeId in = c.input(0);
  const bool keep = c.Bool("keep_dims");
  const auto axes = c.Value(1);
  if (!c.known(in)) {
    // All axes of an unknown rank: it is unknown whether the axes give a scalar.
    return kUnknownShape;
  }
  const bool told = axes && std::find(axes->begin(), axes->end(), kUnknownElement) == axes->end();
  if (!told) {
    // As many dimensions are removed as there are axes, unless an axis is repeated.
    if (keep) return c.OfRank(c.rank(in));
    if (c.rank(c.input(1)) == 0 && c.rank(in) > 0) return c.OfRank(c.rank(in) - 1);
    return c.dim(c.input(1), 0) == 0 ? in : kUnknownShape;
  }
  std::vector<bool> gone(c.rank(in), false);
  for (int64_t item : *axes) {
    const int axis = c.Axis(item, c.rank(in));
    if (axis < 0) return kUnknownShape;
    gone[axis] = true;
  }
  DimVector out;
  for (int i = 0; i < c.rank(in); ++i) {
    if (!gone[i]) out.push_back(c.dim(in, i));
    if (gone[i] && keep) out.push_back(1);
  }
  return c.Make(out);
}

void Reduce(ShapeContext& c) { c.set(0, Reduced(c)); }

// Reduces a vector's value to one element: `op` as for FoldBinary.
template <typename Op>
void FoldReduction(ShapeContext& c, int64_t start, const Op& op) {
  if (!IsValueType(c.output_type(0)) || c.Elements(c.output(0)) != 1) return;
  const auto value = c.Value(0);
  if (!value) return;
  int64_t result = start;
  for (int64_t item : *value) {
    if (item == kUnknownElement || !op(result, item, &result)) return;
  }
  if (c.output_type(0) == kDtInt32 && result != static_cast<int32_t>(result)) return;
  c.set_value(0, {result});
}

void Prod(ShapeContext& c) {
  Reduce(c);
  FoldReduction(c, 1,
                [](int64_t x, int64_t y, int64_t* r) { return !__builtin_mul_overflow(x, y, r); });
}

void Sum(ShapeContext& c) {
  Reduce(c);
  FoldReduction(c, 0,
                [](int64_t x, int64_t y, int64_t* r) { return !__builtin_add_overflow(x, y, r); });
}

void Max(ShapeContext& c) {
  Reduce(c);
  FoldReduction(c, std::numeric_limits<int32_t>::min(),
                [](int64_t x, int64_t y, int64_t* r) { return *r = std::max(x, y), true; });
}

void Min(ShapeContext& c) {
  Reduce(c);
  FoldReduction(c, std::numeric_limits<int32_t>::max(),
                [](int64_t x, int64_t y, int64_t* r) { return *r = std::min(x, y), true; });
}

// ArgMax(input, axis).
void ArgMax(ShapeContext& c) {
  const ShapeId in = c.input(0);
  if (!c.known(in)) return;
  if (c.rank(in) <= 1) return c.set(0, kScalar);
  const int64_t at = c.ScalarValue(1);
  if (at == kUnknownElement) return c.set(0, c.OfRank(c.rank(in) - 1));
  const int axis = c.Axis(at, c.rank(in));
  if (axis >= 0) c.set(0, c.Concat(c.Slice(in, 0, axis), c.Slice(in, axis + 1)));
}

// ---- Segments.

// SegmentSum(data, ids): one row per segment.
void Segment(ShapeContext& c) {
  const ShapeId data = c.WithRankAtLeast(0, 1);
  c.WithRank(1, 1);
  if (c.known(data)) c.set(0, c.ReplaceDim(data, 0, kUnknownDim));
}

// UnsortedSegmentSum(data, ids, num_segments).
void UnsortedSegment(ShapeContext& c) {
  const ShapeId data = c.input(0), ids = c.input(1);
  if (!c.known(data) || !c.known(ids)) return;
  if (c.rank(ids) > c.rank(data)) return c.Fail("the ids have a higher rank than the data");
  c.Merge(c.Slice(data, 0, c.rank(ids)), ids);
  c.set(0, c.Concat(c.Make({std::max(c.ScalarValue(2), kUnknownDim)}), c.Slice(data, c.rank(ids))));
}

// SparseSegmentSum(data, indices, ids[, num_segments]).
void SparseSegment(ShapeContext& c) {
  const ShapeId data = c.WithRankAtLeast(0, 1);
  if (!c.known(data)) return;
  const int64_t rows = c.num_inputs() > 3 ? std::max(c.ScalarValue(3), kUnknownDim) : kUnknownDim;
  c.set(0, c.ReplaceDim(data, 0, rows));
}

// SparseSegmentSumGrad(grad, indices, ids, output_dim0).
void SparseSegmentGrad(ShapeContext& c) {
  const ShapeId data = c.WithRankAtLeast(0, 1);
  if (c.known(data)) c.set(0, c.ReplaceDim(data, 0, std::max(c.ScalarValue(3), kUnknownDim)));
}

// Bincount(values, size, weights).
void Bincount(ShapeContext& c) { c.set(0, c.Make({std::max(c.ScalarValue(1), kUnknownDim)})); }

// HistogramFixedWidth(values, range, nbins).
void Histogram(ShapeContext& c) { c.set(0, c.Make({std::max(c.ScalarValue(2), kUnknownDim)})); }

// ---- Linear algebra: the last two dimensions are matrices.
void SquareUnchanged(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 2);
  if (!c.known(in)) return;
  const int64_t size = c.MergeDims(c.dim(in, -2), c.dim(in, -1));
  c.set(0, c.Concat(c.Slice(in, 0, -2), c.Make({size, size})));
}

void MatrixDeterminant(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 2);
  if (c.known(in)) c.set_all(c.Slice(in, 0, -2));
}

// MatrixSolve(matrix [..., m, n], rhs [..., m, k]) -> [..., n, k].
void MatrixSolveWith(ShapeContext& c, bool square, bool broadcast) {
  const ShapeId matrix = c.WithRankAtLeast(0, 2), rhs = c.WithRankAtLeast(1, 2);
  if (broadcast ? !c.known(matrix) || !c.known(rhs) : !c.known(matrix) && !c.known(rhs)) return;
  const int64_t rows = c.MergeDims(c.dim(matrix, -2), c.dim(rhs, -2));
  int64_t columns = c.dim(matrix, -1);
  if (square) columns = c.MergeDims(rows, columns);
  const ShapeId x = c.Slice(matrix, 0, -2), y = c.Slice(rhs, 0, -2);
  c.set(0,
        c.Concat(broadcast ? c.Broadcast(x, y) : c.Merge(x, y), c.Make({columns, c.dim(rhs, -1)})));
}

void MatrixSolve(ShapeContext& c) { MatrixSolveWith(c, true, false); }
void MatrixSolveLs(ShapeContext& c) { MatrixSolveWith(c, false, false); }
void MatrixTriangularSolve(ShapeContext& c) { MatrixSolveWith(c, true, true); }

// SelfAdjointEigV2(input) -> values, vectors.
void EigV2(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 2);
  if (!c.known(in)) return;
  const int64_t size = c.MergeDims(c.dim(in, -2), c.dim(in, -1));
  const ShapeId batch = c.Slice(in, 0, -2);
  c.set(0, c.Concat(batch, c.Make({size})));
  c.set(1, c.Bool("compute_v", true) ? c.Concat(batch, c.Make({size, size})) : c.Make({0}));
}

int64_t Smaller(int64_t a, int64_t b) {
  return a == 0 || b == 0 ? 0 : a < 0 || b < 0 ? kUnknownDim : std::min(a, b);
}

// Qr(input) -> q, r.
void Qr(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 2);
  if (!c.known(in)) return;
  const int64_t m = c.dim(in, -2), n = c.dim(in, -1), p = Smaller(m, n);
  const bool full = c.Bool("full_matrices");
  const ShapeId batch = c.Slice(in, 0, -2);
  c.set(0, c.Concat(batch, c.Make({m, full ? m : p})));
  c.set(1, c.Concat(batch, c.Make({full ? m : p, n})));
}

// Svd(input) -> s, u, v.
void Svd(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 2);
  if (!c.known(in)) return;
  const int64_t m = c.dim(in, -2), n = c.dim(in, -1), p = Smaller(m, n);
  const bool full = c.Bool("full_matrices");
  const ShapeId batch = c.Slice(in, 0, -2);
  c.set(0, c.Concat(batch, c.Make({p})));
  if (!c.Bool("compute_uv", true)) {
    c.set(1, c.Make({0}));
    c.set(2, c.Make({0}));
    return;
  }
  c.set(1, c.Concat(batch, c.Make({m, full ? m : p})));
  c.set(2, c.Concat(batch, c.Make({n, full ? n : p})));
}

// ---- Fourier transforms. RFFT(input, fft_length): real to half the spectrum, and back.
void RealFft(ShapeContext& c, int rank, bool forward) {
  const ShapeId in = c.WithRankAtLeast(0, rank);
  if (!c.known(in)) return;
  const auto lengths = c.Value(1);
  DimVector out(c.dims(in).begin(), c.dims(in).end());
  for (int i = 0; i < rank; ++i) {
    const int64_t length = lengths && static_cast<int>(lengths->size()) == rank
                               ? std::max((*lengths)[i], kUnknownDim)
                               : kUnknownDim;
    const bool halved = forward && i == rank - 1;
    out[out.size() - rank + i] = halved && length > 0 ? length / 2 + 1 : length;
  }
  c.set(0, c.Make(out));
}

void Rfft(ShapeContext& c) { RealFft(c, 1, true); }
void Rfft2d(ShapeContext& c) { RealFft(c, 2, true); }
void Rfft3d(ShapeContext& c) { RealFft(c, 3, true); }
void Irfft(ShapeContext& c) { RealFft(c, 1, false); }
void Irfft2d(ShapeContext& c) { RealFft(c, 2, false); }
void Irfft3d(ShapeContext& c) { RealFft(c, 3, false); }

constexpr ShapeRule kMathRules[] = {
    // Elementwise, one input.
    {"Abs", Unchanged},
    {"Acos", Unchanged},
    {"Acosh", Unchanged},
    {"Angle", Unchanged},
    {"Asin", Unchanged},
    {"Asinh", Unchanged},
    {"Atan", Unchanged},
    {"Atanh", Unchanged},
    {"BesselI0", Unchanged},
    {"BesselI0e", Unchanged},
    {"BesselI1", Unchanged},
    {"BesselI1e", Unchanged},
    {"Cast", Cast},
    {"Ceil", Unchanged},
    {"ComplexAbs", Unchanged},
    {"Conj", Unchanged},
    {"Cos", Unchanged},
    {"Cosh", Unchanged},
    {"Cumprod", Unchanged},
    {"Cumsum", Unchanged},
    {"CumulativeLogsumexp", Unchanged},
    {"Dawsn", Unchanged},
    {"Digamma", Unchanged},
    {"Erf", Unchanged},
    {"Erfc", Unchanged},
    {"Erfinv", Unchanged},
    {"Exp", Unchanged},
    {"Expint", Unchanged},
    {"Expm1", Unchanged},
    {"FFT", Unchanged},
    {"FFT2D", Unchanged},
    {"FFT3D", Unchanged},
    {"Floor", Unchanged},
    {"FresnelCos", Unchanged},
    {"FresnelSin", Unchanged},
    {"IFFT", Unchanged},
    {"IFFT2D", Unchanged},
    {"IFFT3D", Unchanged},
    {"Imag", Unchanged},
    {"Inv", Unchanged},
    {"Invert", Unchanged},
    {"IsFinite", Unchanged},
    {"IsInf", Unchanged},
    {"IsNan", Unchanged},
    {"Lgamma", Unchanged},
    {"Log", Unchanged},
    {"Log1p", Unchanged},
    {"LogicalNot", LogicalNot},
    {"Ndtri", Unchanged},
    {"Neg", Neg},
    {"PopulationCount", Unchanged},
    {"Real", Unchanged},
    {"Reciprocal", Unchanged},
    {"Rint", Unchanged},
    {"Round", Unchanged},
    {"Rsqrt", Unchanged},
    {"Sigmoid", Unchanged},
    {"Sign", Unchanged},
    {"Sin", Unchanged},
    {"Sinh", Unchanged},
    {"Spence", Unchanged},
    {"Sqrt", Unchanged},
    {"Square", Unchanged},
    {"Tan", Unchanged},
    {"Tanh", Unchanged},
    // Elementwise, inputs of the same shape.
    {"AccumulateNV2", MergeAll},
    {"AddN", AddN},
    {"InvGrad", MergeAll},
    {"ReciprocalGrad", MergeAll},
    {"RsqrtGrad", MergeAll},
    {"SigmoidGrad", MergeAll},
    {"SqrtGrad", MergeAll},
    {"TanhGrad", MergeAll},
    // Elementwise, broadcasting.
    {"Add", Add},
    {"AddV2", Add},
    {"ApproximateEqual", MergeAll},
    {"Atan2", BroadcastBinary},
    {"Betainc", Betainc},
    {"BitwiseAnd", BroadcastBinary},
    {"BitwiseOr", BroadcastBinary},
    {"BitwiseXor", BroadcastBinary},
    {"ClipByValue", Clip},
    {"Complex", BroadcastBinary},
    {"Div", TruncateDiv},
    {"DivNoNan", BroadcastBinary},
    {"Equal", Equal},
    {"FloorDiv", FloorDiv},
    {"FloorMod", FloorMod},
    {"Greater", BroadcastBinary},
    {"GreaterEqual", BroadcastBinary},
    {"Igamma", BroadcastBinary},
    {"IgammaGradA", BroadcastBinary},
    {"Igammac", BroadcastBinary},
    {"LeftShift", BroadcastBinary},
    {"Less", BroadcastBinary},
    {"LessEqual", BroadcastBinary},
    {"LogicalAnd", LogicalAnd},
    {"LogicalOr", LogicalOr},
    {"Maximum", Maximum},
    {"Minimum", Minimum},
    {"Mod", BroadcastBinary},
    {"Mul", Mul},
    {"MulNoNan", BroadcastBinary},
    {"NextAfter", BroadcastBinary},
    {"NotEqual", Equal},
    {"Polygamma", BroadcastBinary},
    {"Pow", BroadcastBinary},
    {"RealDiv", BroadcastBinary},
    {"RightShift", BroadcastBinary},
    {"Select", Select},
    {"SelectV2", BroadcastAll},
    {"SquaredDifference", BroadcastBinary},
    {"Sub", Sub},
    {"TruncateDiv", TruncateDiv},
    {"TruncateMod", BroadcastBinary},
    {"Xdivy", BroadcastBinary},
    {"Xlog1py", BroadcastBinary},
    {"Xlogy", BroadcastBinary},
    {"Zeta", BroadcastBinary},
    // Products.
    {"BatchMatMul", BatchMatMul},
    {"BatchMatMulV2", BatchMatMulV2},
    {"BatchMatMulV3", BatchMatMulV2},
    {"Cross", Cross},
    {"Einsum", Einsum},
    {"MatMul", MatMul},
    {"_FusedMatMul", MatMul},
    {"SparseMatMul", MatMul},
    // Reductions.
    {"All", Reduce},
    {"Any", Reduce},
    {"ArgMax", ArgMax},
    {"ArgMin", ArgMax},
    {"EuclideanNorm", Reduce},
    {"Max", Max},
    {"Mean", Reduce},
    {"Min", Min},
    {"Prod", Prod},
    {"Sum", Sum},
    // Segments and counts.
    {"Bincount", Bincount},
    {"Bucketize", Unchanged},
    {"HistogramFixedWidth", Histogram},
    {"SegmentMax", Segment},
    {"SegmentMean", Segment},
    {"SegmentMin", Segment},
    {"SegmentProd", Segment},
    {"SegmentSum", Segment},
    {"SparseSegmentMean", SparseSegment},
    {"SparseSegmentMeanGrad", SparseSegmentGrad},
    {"SparseSegmentMeanWithNumSegments", SparseSegment},
    {"SparseSegmentSqrtN", SparseSegment},
    {"SparseSegmentSqrtNGrad", SparseSegmentGrad},
    {"SparseSegmentSqrtNWithNumSegments", SparseSegment},
    {"SparseSegmentSum", SparseSegment},
    {"SparseSegmentSumGrad", SparseSegmentGrad},
    {"SparseSegmentSumWithNumSegments", SparseSegment},
    {"UnsortedSegmentMax", UnsortedSegment},
    {"UnsortedSegmentMin", UnsortedSegment},
    {"UnsortedSegmentProd", UnsortedSegment},
    {"UnsortedSegmentSum", UnsortedSegment},
    // Linear algebra.
    {"Cholesky", SquareUnchanged},
    {"CholeskyGrad", SquareUnchanged},
    {"LogMatrixDeterminant", MatrixDeterminant},
    {"MatrixDeterminant", MatrixDeterminant},
    {"MatrixExponential", SquareUnchanged},
    {"MatrixInverse", SquareUnchanged},
    {"MatrixLogarithm", SquareUnchanged},
    {"MatrixSolve", MatrixSolve},
    {"MatrixSolveLs", MatrixSolveLs},
    {"MatrixSquareRoot", SquareUnchanged},
    {"MatrixTriangularSolve", MatrixTriangularSolve},
    {"Qr", Qr},
    {"SelfAdjointEigV2", EigV2},
    {"Svd", Svd},
    // Fourier transforms.
    {"IRFFT", Irfft},
    {"IRFFT2D", Irfft2d},
    {"IRFFT3D", Irfft3d},
    {"RFFT", Rfft},
    {"RFFT2D", Rfft2d},
    {"RFFT3D", Rfft3d},
};

}  // namespace

absl::Span<const ShapeRule> MathShapeRules() { return kMathRules; }

}  // namespace spillway::core
