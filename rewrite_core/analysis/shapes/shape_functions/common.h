// Shape functions that families of ops share.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_SHAPE_FUNCTIONS_COMMON_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_SHAPE_FUNCTIONS_COMMON_H_

#include "rewrite_core/analysis/shapes/shape_table.h"

namespace spillway::core {

// The attribute `shape`.
inline void StatedShape(ShapeContext& c) { c.set(0, c.ShapeAttr("shape")); }

// The first output has the shape of the second input.
inline void ShapeOfSecond(ShapeContext& c) { c.set(0, c.input(1)); }

// One output, or all, are vectors of unknown lengths.
inline void OneVector(ShapeContext& c) { c.set(0, c.OfRank(1)); }
inline void AllVectors(ShapeContext& c) { c.set_all(c.OfRank(1)); }

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_SHAPE_FUNCTIONS_COMMON_H_
