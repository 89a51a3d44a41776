// The table of shape functions, by op type. Families are in shape_functions/.
//
// To add an op: add a row to the table at the end of its family's file, with an existing function
// (Unchanged, BroadcastBinary, ...) or a small new one; and a test with TensorFlow's answer. A new
// family is a new file with its table, declared below and listed in shape_table.cc.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_SHAPE_TABLE_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_SHAPE_TABLE_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/shapes/shape_context.h"

namespace spillway::core {

using ShapeFunction = void (*)(ShapeContext&);

struct ShapeRule {
  absl::string_view op;
  ShapeFunction function;
};

// The shape function of an op type; null if the op is unknown.
ShapeFunction FindShapeFunction(absl::string_view op);

// The families. Each op is in one of them.
absl::Span<const ShapeRule> ArrayShapeRules();
absl::Span<const ShapeRule> ControlFlowShapeRules();
absl::Span<const ShapeRule> DataShapeRules();
absl::Span<const ShapeRule> DiagonalShapeRules();
absl::Span<const ShapeRule> DistributionShapeRules();
absl::Span<const ShapeRule> HorovodShapeRules();
absl::Span<const ShapeRule> ImageShapeRules();
absl::Span<const ShapeRule> ListShapeRules();
absl::Span<const ShapeRule> MathShapeRules();
absl::Span<const ShapeRule> MiscellaneousShapeRules();
absl::Span<const ShapeRule> NnShapeRules();
absl::Span<const ShapeRule> OptimizerShapeRules();
absl::Span<const ShapeRule> QuantizedShapeRules();
absl::Span<const ShapeRule> RandomShapeRules();
absl::Span<const ShapeRule> RecurrentShapeRules();
absl::Span<const ShapeRule> ScalarShapeRules();
absl::Span<const ShapeRule> SlicingShapeRules();
absl::Span<const ShapeRule> SpaceToBatchShapeRules();
absl::Span<const ShapeRule> SparseShapeRules();
absl::Span<const ShapeRule> StateShapeRules();
absl::Span<const ShapeRule> StringShapeRules();

// Functions that several families use.
void Scalars(ShapeContext& c);          // All outputs are scalars.
void Unchanged(ShapeContext& c);        // All outputs have the first input's shape.
void BroadcastBinary(ShapeContext& c);  // Output 0: inputs 0 and 1, broadcast.
void ShapeFromFirst(ShapeContext& c);   // Output 0: the value of input 0 is its shape.
// Whether an output has a type whose values are tracked in small tensors (IsValueType).
bool PutsOutIntegers(ShapeContext& c, int port = 0);

// The length up to which an Einsum's equation is read: far more than all letters for each of many
// operands, and that does not poll the stop token.
inline constexpr size_t kMaxEquation = 4096;

// A view of a row-major array: its element (i, j, ...) is the array's element number
// `first` + i * steps[0] + j * steps[1] + ....
struct ArrayView {
  int64_t first = 0;
  DimVector sizes, steps;
};

// All of an array of that shape.
ArrayView WholeArray(ShapeContext& c, ShapeId shape);
// The value of an output that is a view of an input's array, if that value is known.
void SetViewedValue(ShapeContext& c, int port, int input, const ArrayView& view);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_SHAPE_TABLE_H_
