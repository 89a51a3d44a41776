// Diagonals of matrices.
#include <algorithm>

#include "absl/types/optional.h"
#include "rewrite_core/analysis/shapes/shape_table.h"

namespace spillway::core {
namespace {

void MatrixDiag(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 1);
  if (c.known(in)) c.set(0, c.Concat(in, c.Make({c.dim(in, -1)})));
}

void MatrixDiagPart(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 2);
  if (!c.known(in)) return;
  const int64_t rows = c.dim(in, -2), columns = c.dim(in, -1);
  c.set(0, c.Concat(c.Slice(in, 0, -2),
                    c.Make({rows < 0 || columns < 0 ? kUnknownDim : std::min(rows, columns)})));
}

// MatrixSetDiag(input, diagonal): the batch dimensions are those of both.
void MatrixSetDiag(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 2), diagonal = c.WithRankAtLeast(1, 1);
  const ShapeId batch = c.known(diagonal) ? c.Slice(diagonal, 0, -1) : kUnknownShape;
  c.set(0, c.Merge(in, c.Concat(batch, c.OfRank(2))));
}

// A band of diagonals: an input holds one number, or the lowest and the highest. Above the main
// diagonal (0) they are positive.
struct Band {
  int64_t low, high;
};

absl::optional<Band> ReadBand(ShapeContext& c, int input) {
  // More than any dimension, so that sums do not overflow.
  constexpr int64_t kMax = int64_t{1} << 40;
  const auto k = c.Value(input);
  if (!k || k->empty() || k->size() > 2) return absl::nullopt;
  for (int64_t item : *k) {
    if (item < -kMax || item > kMax) return absl::nullopt;
  }
  if (k->front() > k->back()) return absl::nullopt;
  return Band{k->front(), k->back()};
}

// MatrixDiagPartV2(input, k, padding): a row for each diagonal, if there is more than one.
void MatrixDiagPartV2(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 2);
  const auto band = ReadBand(c, 1);
  if (!c.known(in) || !band) return;
  const int64_t rows = c.dim(in, -2), columns = c.dim(in, -1);
  int64_t length = kUnknownDim;
  if (rows >= 0 && columns >= 0) {
    length = std::min(rows + std::min<int64_t>(band->high, 0),
                      columns - std::max<int64_t>(band->low, 0));
  }
  ShapeId out = c.Slice(in, 0, -2);
  if (band->low < band->high) out = c.Concat(out, c.Make({band->high - band->low + 1}));
  c.set(0, c.Concat(out, c.Make({std::max(length, kUnknownDim)})));
}

// MatrixDiagV2(diagonal, k, rows, columns, padding); -1: as few as hold the diagonals, and for a
// square.
void MatrixDiagV2(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 1);
  const auto band = ReadBand(c, 1);
  const int64_t rows = c.ScalarValue(2), columns = c.ScalarValue(3);
  if (!c.known(in) || !band) return;
  const ShapeId batch = c.Slice(in, 0, band->low < band->high ? -2 : -1);
  const int64_t length = c.dim(in, -1);
  if (rows == kUnknownElement || columns == kUnknownElement) {
    return c.set(0, c.Concat(batch, c.OfRank(2)));
  }
  const bool square = rows == -1 && columns == -1;
  int64_t least_rows = kUnknownDim, least_columns = kUnknownDim;
  if (length >= 0) {
    least_rows = c.Add(length, -std::min<int64_t>(band->high, 0));
    least_columns = c.Add(length, std::max<int64_t>(band->low, 0));
    if (square) least_rows = least_columns = std::max(least_rows, least_columns);
  }
  c.set(0, c.Concat(batch, c.Make({rows >= 0 ? rows : least_rows,
                                   columns >= 0 ? columns : least_columns})));
}

// MatrixSetDiagV2(input, diagonal, k).
void MatrixSetDiagV2(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 2), diagonal = c.WithRankAtLeast(1, 1);
  const auto band = ReadBand(c, 2);
  c.set(0, in);
  if (!band || !c.known(diagonal)) return;
  const ShapeId batch = c.Slice(diagonal, 0, band->low < band->high ? -2 : -1);
  c.set(0, c.Merge(in, c.Concat(batch, c.OfRank(2))));
}

void Diag(ShapeContext& c) { c.set(0, c.Concat(c.input(0), c.input(0))); }

void DiagPart(ShapeContext& c) {
  const ShapeId in = c.input(0);
  if (!c.known(in)) return;
  if (c.rank(in) % 2 != 0) return c.Fail("the rank must be even");
  const int half = c.rank(in) / 2;
  c.set(0, c.Merge(c.Slice(in, 0, half), c.Slice(in, half)));
}

constexpr ShapeRule kDiagonalRules[] = {
    {"Diag", Diag},
    {"DiagPart", DiagPart},
    {"MatrixDiag", MatrixDiag},
    {"MatrixDiagPart", MatrixDiagPart},
    {"MatrixDiagPartV2", MatrixDiagPartV2},
    {"MatrixDiagPartV3", MatrixDiagPartV2},
    {"MatrixDiagV2", MatrixDiagV2},
    {"MatrixDiagV3", MatrixDiagV2},
    {"MatrixSetDiag", MatrixSetDiag},
    {"MatrixSetDiagV2", MatrixSetDiagV2},
    {"MatrixSetDiagV3", MatrixSetDiagV2},
};

}  // namespace

absl::Span<const ShapeRule> DiagonalShapeRules() { return kDiagonalRules; }

}  // namespace spillway::core
