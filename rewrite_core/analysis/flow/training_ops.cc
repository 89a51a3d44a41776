#include "rewrite_core/analysis/flow/training_ops.h"

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

bool IsGradientOpType(absl::string_view op) {
  if (absl::StrContains(op, "Gradient")) {
    return op == "BroadcastGradientArgs" || op == "SymbolicGradient" ||
           absl::StartsWith(op, "FakeQuant");
  }
  // ReluGrad is the gradient of Relu; GradReverse, a custom op, would be one of a forward pass.
  const size_t grad = op.find("Grad");
  return (grad != absl::string_view::npos && grad > 0) || absl::StrContains(op, "BackpropFilter") ||
         absl::StrContains(op, "RNNBackprop");
}

}  // namespace spillway::core
