// Sparse and ragged tensors, sets, counts; segments with a number of segments.
//
// A sparse tensor is three tensors: indices [elements, rank], values [elements], shape [rank].
#include <algorithm>
#include <vector>

#include "rewrite_core/analysis/shapes/shape_functions/common.h"
#include "rewrite_core/analysis/shapes/shape_table.h"

namespace spillway::core {
namespace {

int64_t DimFromScalar(ShapeContext& c, int input) {
  return std::max(c.ScalarValue(input), kUnknownDim);
}

// Sets the outputs from `port` on to a sparse tensor.
void SetSparse(ShapeContext& c, int port, int64_t elements, int64_t rank) {
  c.set(port, c.Make({elements, rank}));
  c.set(port + 1, c.Make({elements}));
  c.set(port + 2, c.Make({rank}));
}

// The rank of the sparse tensor whose indices and shape are these inputs.
int64_t SparseRank(ShapeContext& c, int indices, int shape) {
  return c.MergeDims(c.dim(c.WithRank(indices, 2), 1), c.dim(c.WithRank(shape, 1), 0));
}

// Of the sparse tensor with these inputs.
int64_t SparseElements(ShapeContext& c, int indices, int values) {
  return c.MergeDims(c.dim(c.WithRank(indices, 2), 0), c.dim(c.WithRank(values, 1), 0));
}

// ---- From and to dense tensors.

// SparseToDense(sparse_indices, output_shape, sparse_values, default_value).
void SparseToDense(ShapeContext& c) { c.set(0, c.ShapeFromValue(1)); }

// SparseTensorDenseMatMul(a_indices, a_values, a_shape, b).
void SparseDenseMatMul(ShapeContext& c) {
  const ShapeId a = c.ShapeFromValue(2), b = c.WithRank(3, 2);
  const bool ta = c.Bool("adjoint_a"), tb = c.Bool("adjoint_b");
  c.MergeDims(c.dim(a, ta ? 0 : 1), c.dim(b, tb ? 1 : 0));
  c.set(0, c.Make({c.dim(a, ta ? 1 : 0), c.dim(b, tb ? 0 : 1)}));
}

// SparseTensorDenseAdd(a_indices, a_values, a_shape, b).
void LikeFourth(ShapeContext& c) { c.set(0, c.input(3)); }

// SparseDenseCwiseMul(sp_indices, sp_values, sp_shape, dense), SparseSoftmax: the new values.
void NewValues(ShapeContext& c) { c.set(0, c.Make({SparseElements(c, 0, 1)})); }

// ---- Sparse to sparse.

// SparseAdd(a_indices, a_values, a_shape, b_indices, b_values, b_shape, thresh) -> the sum.
void SparseAdd(ShapeContext& c) { SetSparse(c, 0, kUnknownDim, c.dim(c.WithRank(2, 1), 0)); }

// SparseAddGrad(backprop_val_grad, a_indices, b_indices, sum_indices) -> those of a's and b's
// values.
void SparseAddGrad(ShapeContext& c) {
  c.set(0, c.Make({c.dim(c.WithRank(1, 2), 0)}));
  c.set(1, c.Make({c.dim(c.WithRank(2, 2), 0)}));
}

// SparseReorder(input_indices, input_values, input_shape).
void SparseReorder(ShapeContext& c) {
  c.set(0, c.WithRank(0, 2));
  c.set(1, c.WithRank(1, 1));
}

// SparseReshape(input_indices, input_shape, new_shape) -> output_indices, output_shape.
void SparseReshape(ShapeContext& c) {
  const ShapeId indices = c.WithRank(0, 2), shape = c.WithRank(2, 1);
  c.WithRank(1, 1);
  c.set(0, c.Make({c.dim(indices, 0), c.dim(shape, 0)}));
  c.set(1, shape);
}

// SparseConcat(N * indices, N * values, N * shapes).
void SparseConcat(ShapeContext& c) {
  const int n = c.num_inputs() / 3;
  int64_t elements = n > 0 ? 0 : kUnknownDim, rank = kUnknownDim;
  for (int i = 0; i < n; ++i) {
    elements = c.Add(elements, SparseElements(c, i, n + i));
    rank = c.MergeDims(rank, SparseRank(c, i, 2 * n + i));
  }
  SetSparse(c, 0, elements, rank);
}

// SparseSplit(split_dim, indices, values, shape) -> num_split of each.
void SparseSplit(ShapeContext& c) {
  const int n = c.num_outputs() / 3;
  const int64_t rank = SparseRank(c, 1, 3);
  for (int i = 0; i < n; ++i) {
    c.set(i, c.Make({kUnknownDim, rank}));
    c.set(n + i, c.OfRank(1));
    c.set(2 * n + i, c.Make({rank}));
  }
}

// SparseSlice(indices, values, shape, start, size).
void SparseSlice(ShapeContext& c) { SetSparse(c, 0, kUnknownDim, SparseRank(c, 0, 2)); }

// SparseSliceGrad(backprop_val_grad, input_indices, input_start, output_indices).
void SparseSliceGrad(ShapeContext& c) { c.set(0, c.Make({c.dim(c.WithRank(1, 2), 0)})); }

// SparseSparseMaximum(a_indices, a_values, a_shape, b_...) -> indices, values.
void SparseSparse(ShapeContext& c) {
  c.set(0, c.Make({kUnknownDim, SparseRank(c, 0, 2)}));
  c.set(1, c.OfRank(1));
}

// SparseFillEmptyRows(indices, values, dense_shape, default_value) -> indices, values,
// empty_row_indicator, reverse_index_map.
void FillEmptyRows(ShapeContext& c) {
  c.set(0, c.Make({kUnknownDim, SparseRank(c, 0, 2)}));
  c.set(1, c.OfRank(1));
  c.set(2, c.Make({c.dim(c.ShapeFromValue(2), 0)}));
  c.set(3, c.Make({SparseElements(c, 0, 1)}));
  // One more per row, if all are empty.
  const int64_t most = c.Add(SparseElements(c, 0, 1), c.dim(c.ShapeFromValue(2), 0));
  c.set_bound(0, c.Make({most, SparseRank(c, 0, 2)}));
  c.set_bound(1, c.Make({most}));
}

// SparseFillEmptyRowsGrad(reverse_index_map, grad_values) -> values' gradient, the default's.
void FillEmptyRowsGrad(ShapeContext& c) {
  c.set(0, c.WithRank(0, 1));
  c.set(1, kScalar);
}

// SparseReduceSum(input_indices, input_values, input_shape, reduction_axes): dense.
void SparseReduce(ShapeContext& c) {
  const ShapeId in = c.ShapeFromValue(2);
  const auto axes = c.Value(3);
  if (!c.known(in) || !axes) return;
  DimVector dims(c.dims(in).begin(), c.dims(in).end());
  const bool keep = c.Bool("keep_dims");
  std::vector<bool> gone(dims.size(), axes->empty());  // No axes means all.
  for (int64_t item : *axes) {
    const int axis = c.Axis(item, c.rank(in));
    if (axis < 0) return;
    gone[axis] = true;
  }
  DimVector out;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!gone[i]) out.push_back(dims[i]);
    if (gone[i] && keep) out.push_back(1);
  }
  c.set(0, c.Make(out));
}

// SparseReduceSumSparse(input_indices, ...): the axes determine the rank.
void UnknownSparse(ShapeContext& c) { SetSparse(c, 0, kUnknownDim, kUnknownDim); }

// SparseCross: a matrix.
void SparseMatrix(ShapeContext& c) { SetSparse(c, 0, kUnknownDim, 2); }

// SerializeSparse: three strings, or three for each of many.
void SerializeSparse(ShapeContext& c) { c.set(0, c.Make({3})); }
void SerializeManySparse(ShapeContext& c) { c.set(0, c.Make({kUnknownDim, 3})); }
// ---- Sets: the last dimension of a tensor, sparse or not.

// DenseToDenseSetOperation(set1, set2).
void DenseSets(ShapeContext& c) {
  const int known = std::max(c.rank(c.WithRankAtLeast(0, 2)), c.rank(c.WithRankAtLeast(1, 2)));
  SetSparse(c, 0, kUnknownDim, known < 0 ? kUnknownDim : known);
}

// DenseToSparseSetOperation(set1, set2_indices, set2_values, set2_shape).
void DenseAndSparseSets(ShapeContext& c) {
  const ShapeId set = c.WithRankAtLeast(0, 2);
  SetSparse(c, 0, kUnknownDim,
            c.MergeDims(c.known(set) ? c.rank(set) : kUnknownDim, SparseRank(c, 1, 3)));
}

// SparseToSparseSetOperation(set1_indices, set1_values, set1_shape, set2_...).
void SparseSets(ShapeContext& c) {
  SetSparse(c, 0, kUnknownDim, c.MergeDims(SparseRank(c, 0, 2), SparseRank(c, 3, 5)));
}

// ---- Counts.

// DenseCountSparseOutput(values, weights).
void DenseCount(ShapeContext& c) {
  // Without weights, they are an empty vector.
  const ShapeId weights = c.Elements(c.input(1)) != 0 ? c.input(1) : kUnknownShape;
  const ShapeId values = c.Merge(c.input(0), weights);
  SetSparse(c, 0, kUnknownDim, c.known(values) ? c.rank(values) : kUnknownDim);
}

// SparseCountSparseOutput(indices, values, dense_shape, weights).
void SparseCount(ShapeContext& c) { SetSparse(c, 0, kUnknownDim, SparseRank(c, 0, 2)); }

// RaggedCountSparseOutput(splits, values, weights).
void RaggedCount(ShapeContext& c) {
  const ShapeId values = c.input(1);
  SetSparse(c, 0, kUnknownDim, c.known(values) ? c.rank(values) + 1 : kUnknownDim);
}

// DenseBincount(input, size, weights): per row of a matrix.
void DenseBincount(ShapeContext& c) {
  const ShapeId in = c.WithRankAtMost(0, 2);
  const int64_t size = DimFromScalar(c, 1);
  if (c.rank(in) == 1) c.set(0, c.Make({size}));
  if (c.rank(in) == 2) c.set(0, c.Make({c.dim(in, 0), size}));
}

// SparseBincount(indices, values, dense_shape, size, weights).
void SparseBincount(ShapeContext& c) {
  const ShapeId shape = c.ShapeFromValue(2);
  const int64_t size = DimFromScalar(c, 3);
  if (c.rank(shape) == 1) c.set(0, c.Make({size}));
  if (c.rank(shape) == 2) c.set(0, c.Make({c.dim(shape, 0), size}));
}

// RaggedBincount(splits, values, size, weights).
void RaggedBincount(ShapeContext& c) {
  c.set(0, c.Make({c.Sub(c.dim(c.WithRank(0, 1), 0), 1), DimFromScalar(c, 2)}));
}

// ---- Ragged tensors: row splits (one more than rows) for each ragged dimension, and the values.

// RaggedRange(starts, limits, deltas) -> rt_nested_splits, rt_dense_values.
void RaggedRange(ShapeContext& c) {
  int64_t rows = kUnknownDim;
  int scalars = 0;
  for (int i = 0; i < 3; ++i) {
    const ShapeId in = c.WithRankAtMost(i, 1);
    if (c.rank(in) == 1) rows = c.MergeDims(rows, c.dim(in, 0));
    if (c.rank(in) == 0) ++scalars;
  }
  if (scalars == 3) rows = 1;
  c.set(0, c.Make({c.Add(rows, 1)}));
  c.set(1, c.OfRank(1));
}

// RaggedGather(splits..., params_dense_values, indices) -> splits..., values.
void RaggedGather(ShapeContext& c) {
  const ShapeId values = c.WithRankAtLeast(c.num_inputs() - 2, 1);
  c.set_all(c.OfRank(1));
  c.set(c.num_outputs() - 1,
        c.known(values) ? c.ReplaceDim(values, 0, kUnknownDim) : kUnknownShape);
}

// RaggedTensorToSparse(splits..., rt_dense_values).
void RaggedToSparse(ShapeContext& c) {
  const ShapeId values = c.input(c.num_inputs() - 1);
  const int64_t rank = c.known(values) ? c.rank(values) + c.num_inputs() - 1 : kUnknownDim;
  SetSparse(c, 0, c.Elements(values), rank);
}

// RaggedFillEmptyRows(value_rowids, values, nrows, default_value) -> value_rowids, values,
// empty_row_indicator, reverse_index_map.
void RaggedFillEmptyRows(ShapeContext& c) {
  c.set_all(c.OfRank(1));
  c.set(2, c.Make({DimFromScalar(c, 2)}));
  c.set(3, c.Make({c.MergeDims(c.dim(c.WithRank(0, 1), 0), c.dim(c.WithRank(1, 1), 0))}));
}

// RaggedTensorFromVariant -> splits..., values.
void RaggedFromVariant(ShapeContext& c) {
  c.set_all(c.OfRank(1));
  c.set(c.num_outputs() - 1, kUnknownShape);
}

// RaggedTensorToTensor(shape, values, default_value, row partitions...): a dimension per partition;
// the first may be the number of rows, a scalar, which adds none.
void RaggedToTensor(ShapeContext& c) {
  const ShapeId values = c.WithRankAtLeast(1, 1);
  if (!c.known(values) || !c.known(c.input(3))) return;
  const int ragged = c.num_inputs() - 3 - (c.rank(c.input(3)) == 0 ? 1 : 0);
  const ShapeId shape = c.Concat(c.OfRank(ragged + 1), c.Slice(values, 1));
  c.set(0, c.Merge(shape, c.ShapeFromValue(0)));
}

// RaggedTensorToVariant(splits..., values): one variant, or one for each row.
void RaggedToVariant(ShapeContext& c) {
  const bool rows = c.Bool("batched_input");
  c.set(0, rows ? c.Make({c.Sub(c.dim(c.WithRank(0, 1), 0), 1)}) : kScalar);
}

// RaggedTensorToVariantGradient(encoded_ragged_grad, row_splits, dense_values_shape).
void RaggedToVariantGrad(ShapeContext& c) { c.set(0, c.ShapeFromValue(2)); }

// ---- Segments.

// SegmentSumV2(data, segment_ids, num_segments), UnsortedSegmentJoin: as UnsortedSegmentSum.
void AsUnsortedSegmentSum(ShapeContext& c) { FindShapeFunction("UnsortedSegmentSum")(c); }

// SparseSegmentSumGradV2(grad, indices, segment_ids, dense_output_dim0) -> output,
// sorted_unique_indices: the nonzero rows.
void SparseSegmentGradV2(ShapeContext& c) {
  const ShapeId data = c.WithRankAtLeast(0, 1);
  if (c.known(data)) c.set(0, c.ReplaceDim(data, 0, kUnknownDim));
  c.set(1, c.OfRank(1));
}

// EditDistance(hypothesis_indices, hypothesis_values, hypothesis_shape, truth_...): one for each
// pair of sequences, which are the last dimension.
void EditDistance(ShapeContext& c) {
  const auto hypothesis = c.Value(2), truth = c.Value(5);
  if (!hypothesis || !truth || hypothesis->size() != truth->size() || truth->empty()) return;
  DimVector dims;
  for (size_t i = 0; i + 1 < truth->size(); ++i) {
    const int64_t a = (*hypothesis)[i], b = (*truth)[i];
    dims.push_back(a < 0 || b < 0 ? kUnknownDim : std::max(a, b));
  }
  c.set(0, c.Make(dims));
}

// ---- Candidate sampling: of num_sampled classes.

// UniformCandidateSampler(true_classes) -> sampled_candidates, true_expected_count,
// sampled_expected_count.
void CandidateSampler(ShapeContext& c) {
  const ShapeId classes = c.WithRank(0, 2);
  const int64_t sampled = std::max(c.Int("num_sampled", kUnknownDim), kUnknownDim);
  c.set_all(c.Make({sampled}));
  c.set(1, c.Make({c.dim(classes, 0), std::max(c.Int("num_true", kUnknownDim), kUnknownDim)}));
}

constexpr ShapeRule kSparseRules[] = {
    // Sparse and dense.
    {"SparseDenseCwiseAdd", NewValues},
    {"SparseDenseCwiseDiv", NewValues},
    {"SparseDenseCwiseMul", NewValues},
    {"SparseSoftmax", NewValues},
    {"SparseTensorDenseAdd", LikeFourth},
    {"SparseTensorDenseMatMul", SparseDenseMatMul},
    {"SparseToDense", SparseToDense},
    // Sparse.
    {"AddManySparseToTensorsMap", OneVector},
    {"DeserializeManySparse", UnknownSparse},
    {"DeserializeSparse", UnknownSparse},
    {"SerializeManySparse", SerializeManySparse},
    {"SerializeSparse", SerializeSparse},
    {"SparseAdd", SparseAdd},
    {"SparseAddGrad", SparseAddGrad},
    {"SparseConcat", SparseConcat},
    {"SparseCross", SparseMatrix},
    {"SparseCrossHashed", SparseMatrix},
    {"SparseCrossV2", SparseMatrix},
    {"SparseFillEmptyRows", FillEmptyRows},
    {"SparseFillEmptyRowsGrad", FillEmptyRowsGrad},
    {"SparseReduceMax", SparseReduce},
    {"SparseReduceMaxSparse", UnknownSparse},
    {"SparseReduceSum", SparseReduce},
    {"SparseReduceSumSparse", UnknownSparse},
    {"SparseReorder", SparseReorder},
    {"SparseReshape", SparseReshape},
    {"SparseSlice", SparseSlice},
    {"SparseSliceGrad", SparseSliceGrad},
    {"SparseSparseMaximum", SparseSparse},
    {"SparseSparseMinimum", SparseSparse},
    {"SparseSplit", SparseSplit},
    {"StringSplit", SparseMatrix},
    {"StringSplitV2", SparseMatrix},
    {"TakeManySparseFromTensorsMap", UnknownSparse},
    // Sets.
    {"DenseToDenseSetOperation", DenseSets},
    {"DenseToSparseSetOperation", DenseAndSparseSets},
    {"SparseToSparseSetOperation", SparseSets},
    // Counts.
    {"DenseBincount", DenseBincount},
    {"DenseCountSparseOutput", DenseCount},
    {"RaggedBincount", RaggedBincount},
    {"RaggedCountSparseOutput", RaggedCount},
    {"SparseBincount", SparseBincount},
    {"SparseCountSparseOutput", SparseCount},
    // Ragged.
    {"RaggedCross", AllVectors},
    {"RaggedFillEmptyRows", RaggedFillEmptyRows},
    {"RaggedFillEmptyRowsGrad", FillEmptyRowsGrad},
    {"RaggedGather", RaggedGather},
    {"RaggedRange", RaggedRange},
    {"RaggedTensorFromVariant", RaggedFromVariant},
    {"RaggedTensorToSparse", RaggedToSparse},
    {"RaggedTensorToTensor", RaggedToTensor},
    {"RaggedTensorToVariant", RaggedToVariant},
    {"RaggedTensorToVariantGradient", RaggedToVariantGrad},
    // Segments.
    {"EditDistance", EditDistance},
    {"SegmentMaxV2", AsUnsortedSegmentSum},
    {"SegmentMinV2", AsUnsortedSegmentSum},
    {"SegmentProdV2", AsUnsortedSegmentSum},
    {"SegmentSumV2", AsUnsortedSegmentSum},
    {"SparseSegmentMeanGradV2", SparseSegmentGradV2},
    {"SparseSegmentSqrtNGradV2", SparseSegmentGradV2},
    {"SparseSegmentSumGradV2", SparseSegmentGradV2},
    {"UnsortedSegmentJoin", AsUnsortedSegmentSum},
    // Candidate sampling.
    {"AllCandidateSampler", CandidateSampler},
    {"ComputeAccidentalHits", AllVectors},
    {"FixedUnigramCandidateSampler", CandidateSampler},
    {"LearnedUnigramCandidateSampler", CandidateSampler},
    {"LogUniformCandidateSampler", CandidateSampler},
    {"ThreadUnsafeUnigramCandidateSampler", CandidateSampler},
    {"UniformCandidateSampler", CandidateSampler},
};

}  // namespace

absl::Span<const ShapeRule> SparseShapeRules() { return kSparseRules; }

}  // namespace spillway::core
