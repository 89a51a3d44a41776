// Rarer ops: random numbers of generators with a state or a counter, special functions, systems of
// linear equations, fused convolutions.
#include <algorithm>

#include "rewrite_core/analysis/shapes/shape_table.h"

namespace spillway::core {
namespace {

// ---- Random numbers. That input gives the shape.
void FromFirst(ShapeContext& c) { c.set(0, c.ShapeFromValue(0)); }
void FromSecond(ShapeContext& c) { c.set(0, c.ShapeFromValue(1)); }
void FromThird(ShapeContext& c) { c.set(0, c.ShapeFromValue(2)); }

// StatelessRandomGetKeyCounter(seed) -> key, counter[, algorithm].
void KeyCounter(ShapeContext& c) {
  c.set(0, c.Make({1}));
  c.set(1, c.Make({2}));
  c.set(2, kScalar);
}

// RngReadAndSkip: the old state.
void RngState(ShapeContext& c) { c.set(0, c.Make({3})); }

// SobolSample(dim, num_results, skip).
void Sobol(ShapeContext& c) {
  c.set(0,
        c.Make({std::max(c.ScalarValue(1), kUnknownDim), std::max(c.ScalarValue(0), kUnknownDim)}));
}

// ---- Linear algebra: the last two dimensions are matrices.

// Lu(input) -> lu, p.
void Lu(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 2);
  if (!c.known(in)) return;
  const int64_t size = c.MergeDims(c.dim(in, -2), c.dim(in, -1));
  const ShapeId batch = c.Slice(in, 0, -2);
  c.set(0, c.Concat(batch, c.Make({size, size})));
  c.set(1, c.Concat(batch, c.Make({size})));
}

// Eig(input) -> e, v.
void Eig(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 2);
  if (!c.Bool("compute_v", true)) c.set(1, c.Make({0}));
  if (!c.known(in)) return;
  const int64_t size = c.MergeDims(c.dim(in, -2), c.dim(in, -1));
  const ShapeId batch = c.Slice(in, 0, -2);
  c.set(0, c.Concat(batch, c.Make({size})));
  if (c.Bool("compute_v", true)) c.set(1, c.Concat(batch, c.Make({size, size})));
}

// SelfAdjointEig(input): the eigenvalues stand above the eigenvectors.
void SelfAdjointEig(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 2);
  if (!c.known(in)) return;
  const int64_t size = c.MergeDims(c.dim(in, -2), c.dim(in, -1));
  c.set(0, c.Concat(c.Slice(in, 0, -2), c.Make({c.Add(size, 1), size})));
}

// BandedTriangularSolve(matrix [..., bands, n], rhs [..., n, k]).
void BandedSolve(ShapeContext& c) {
  const ShapeId matrix = c.WithRankAtLeast(0, 2), rhs = c.WithRankAtLeast(1, 2);
  if (!c.known(matrix) || !c.known(rhs)) return;
  c.set(0, c.Concat(c.Broadcast(c.Slice(matrix, 0, -2), c.Slice(rhs, 0, -2)),
                    c.Make({c.MergeDims(c.dim(matrix, -1), c.dim(rhs, -2)), c.dim(rhs, -1)})));
}

// TridiagonalSolve(diagonals, rhs); TridiagonalMatMul(superdiag, maindiag, subdiag, rhs).
void LikeLast(ShapeContext& c) { c.set(0, c.input(c.num_inputs() - 1)); }

// ---- Order.

// KthOrderStatistic(input): one per row.
void KthOrder(ShapeContext& c) { c.set(0, c.Slice(c.WithRankAtLeast(0, 1), 0, -1)); }

// TopKUnique(input) -> values, indices.
void TopKUnique(ShapeContext& c) {
  const ShapeId in = c.WithRank(0, 2);
  c.set_all(c.Make({c.dim(in, 0), std::max(c.Int("k", kUnknownDim), kUnknownDim)}));
}

void Matrix(ShapeContext& c) { c.set(0, c.WithRank(0, 2)); }

// SdcaFprint(input): 128 bits each.
void Fprint(ShapeContext& c) { c.set(0, c.Concat(c.WithRank(0, 1), c.Make({2}))); }

// UnravelIndex(indices, dims): the coordinates of each.
void UnravelIndex(ShapeContext& c) {
  const ShapeId indices = c.input(0), dims = c.WithRank(1, 1);
  if (c.rank(indices) == 0) c.set(0, dims);
  if (c.rank(indices) > 0) c.set(0, c.Make({c.dim(dims, 0), c.Elements(indices)}));
}

// ---- Gradients of convolutions that take the tensor whose shape they have.
void LikeFirst(ShapeContext& c) { c.set(0, c.WithRank(0, 4)); }
void LikeSecond(ShapeContext& c) { c.set(0, c.WithRank(1, 4)); }

// MaxPoolGradGradWithArgmax(input, grad, argmax): the shape of the forward op's output.
void LikeArgmax(ShapeContext& c) { c.set(0, c.WithRank(2, 4)); }

// RefSelect(index, inputs...): one of them.
void RefSelect(ShapeContext& c) {
  const ShapeId shape = c.input(1);
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (c.input(i) != shape || !c.FullyKnown(shape)) return;
  }
  c.set(0, shape);
}

// SdcaOptimizer: four numbers for each example, then the weights.
void Sdca(ShapeContext& c) { c.set(0, c.Make({kUnknownDim, 4})); }

constexpr ShapeRule kMiscellaneousRules[] = {
    // Random numbers.
    {"NonDeterministicInts", FromFirst},
    {"RandomIndexShuffle", Unchanged},
    {"RngReadAndSkip", RngState},
    {"SobolSample", Sobol},
    {"StatefulRandomBinomial", FromThird},
    {"StatefulStandardNormal", FromSecond},
    {"StatefulStandardNormalV2", FromThird},
    {"StatefulTruncatedNormal", FromThird},
    {"StatefulUniform", FromThird},
    {"StatefulUniformFullInt", FromThird},
    {"StatefulUniformInt", FromThird},
    {"StatelessRandomGammaV3", FromFirst},
    {"StatelessRandomGetKeyCounter", KeyCounter},
    {"StatelessRandomGetKeyCounterAlg", KeyCounter},
    {"StatelessShuffle", Unchanged},
    {"StochasticCastToInt", Unchanged},
    // Special functions.
    {"BesselJ0", Unchanged},
    {"BesselJ1", Unchanged},
    {"BesselK0", Unchanged},
    {"BesselK0e", Unchanged},
    {"BesselK1", Unchanged},
    {"BesselK1e", Unchanged},
    {"BesselY0", Unchanged},
    {"BesselY1", Unchanged},
    {"_HostCast", Unchanged},
    {"_UnaryOpsComposition", Unchanged},
    // Linear algebra.
    {"BandedTriangularSolve", BandedSolve},
    {"Eig", Eig},
    {"Lu", Lu},
    {"SelfAdjointEig", SelfAdjointEig},
    {"TridiagonalMatMul", LikeLast},
    {"TridiagonalSolve", LikeLast},
    // Order.
    {"KthOrderStatistic", KthOrder},
    {"IsotonicRegression", Unchanged},
    {"MakeUnique", Matrix},
    {"RefSelect", RefSelect},
    {"SdcaFprint", Fprint},
    {"SdcaOptimizer", Sdca},
    {"SdcaOptimizerV2", Sdca},
    {"TopKUnique", TopKUnique},
    {"TopKWithUnique", TopKUnique},
    {"UnravelIndex", UnravelIndex},
    // Convolutions.
    {"Conv2DBackpropFilterV2", LikeSecond},
    {"Conv2DBackpropInputV2", LikeFirst},
    {"MaxPoolGradGradWithArgmax", LikeArgmax},
    // Ops that report something about a tensor and forward it.
    {"DebugIdentityV3", Unchanged},
    {"Print", Unchanged},
};

}  // namespace

absl::Span<const ShapeRule> MiscellaneousShapeRules() { return kMiscellaneousRules; }

}  // namespace spillway::core
