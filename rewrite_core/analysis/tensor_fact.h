// What shape inference keeps of one tensor.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_TENSOR_FACT_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_TENSOR_FACT_H_

#include <cstdint>
#include <limits>

#include "rewrite_core/analysis/shape_pool.h"
#include "rewrite_core/graph/dtype.h"

namespace spillway::core {

// An element, not known, of a tensor of which others are known. (-1 is a value like any other.)
inline constexpr int64_t kUnknownElement = std::numeric_limits<int64_t>::min();

// In TensorFact::extra: there is no value, and it has been looked for.
inline constexpr ShapeId kNoValue = -1;

struct TensorFact {
  ShapeId shape = kUnknownShape;
  // Of int32, int64 and bool (0 and 1): the value in row-major order, an unknown element being
  // kUnknownElement. Of a resource or variant: the shape of what it is a handle of.
  ShapeId extra = kUnknownShape;
  int16_t dtype = kDtInvalid;
  bool is_ref = false;
  bool stated = false;  // The graph says something of its shape, if only "unknown".
  // What contradicts it is no error: it may not run (a Switch stands before it), or it rests on
  // what some node states.
  bool unsure = false;
  // No step reads what it holds: it stands in for a result that this side of a conditional lacks.
  bool no_content = false;
  // Where bounds are inferred (graph_inference.h): its dimensions and its value are at most these.
  bool bounded = false;
};

inline bool IsHandleType(int dtype) { return dtype == kDtResource || dtype == kDtVariant; }
// The types whose small tensors have values here: those that shapes are computed in, and that of
// predicates.
inline bool IsValueType(int dtype) {
  return dtype == kDtInt32 || dtype == kDtInt64 || dtype == kDtBool;
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_TENSOR_FACT_H_
