#include "rewrite_core/analysis/write_ops.h"

#include "absl/strings/match.h"

namespace spillway::core {

Write WriteOf(absl::string_view op) {
  for (absl::string_view prefix :
       {"Apply", "SparseApply", "ResourceApply", "ResourceSparseApply"}) {
    if (absl::StartsWith(op, prefix)) return Write::kOptimizer;
  }
  if (absl::EndsWith(op, "AccumulatorApplyGradient")) return Write::kAccumulator;
  if (op == "ScatterNd" || op == "ScatterNdNonAliasingAdd") return Write::kNone;  // Pure functions.
  for (absl::string_view prefix : {"Assign", "Scatter", "ResourceScatter"}) {
    if (absl::StartsWith(op, prefix)) return Write::kPlain;
  }
  return Write::kNone;
}

}  // namespace spillway::core
