// The facts that shape inference stores about one tensor.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_TENSOR_FACT_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_TENSOR_FACT_H_

#include <cstdint>
#include <limits>

#include "rewrite_core/analysis/shapes/shape_pool.h"
#include "rewrite_core/graph/dtype.h"

namespace spillway::core {

// An unknown element of a tensor with other known elements. (-1 is an ordinary value.)
inline constexpr int64_t kUnknownElement = std::numeric_limits<int64_t>::min();

// In TensorFact::extra: the value was looked for, and not found.
inline constexpr ShapeId kNoValue(-1);

struct TensorFact {
  ShapeId shape = kUnknownShape;
  // For int32, int64 and bool (0 and 1): the value in row-major order, with kUnknownElement for
  // unknown elements. For a resource or variant: the shape behind the handle.
  ShapeId extra = kUnknownShape;
  int16_t dtype = kDtInvalid;
  bool is_ref = false;
  bool stated = false;  // The graph states its shape, if only as "unknown".
  // Contradictions are not errors: it may not run (it is behind a Switch), or it depends on a
  // stated shape.
  bool unsure = false;
  // No step reads its content: it is a placeholder for a result that this side of a conditional
  // lacks.
  bool no_content = false;
  // While bounds are inferred (graph_inference.h): its dimensions and value are upper bounds.
  bool bounded = false;
};

inline bool IsHandleType(int dtype) { return dtype == kDtResource || dtype == kDtVariant; }
// The types whose small tensors have values here: those used to compute shapes, and that of
// predicates.
inline bool IsValueType(int dtype) {
  return dtype == kDtInt32 || dtype == kDtInt64 || dtype == kDtBool;
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_TENSOR_FACT_H_
