// One tensor as text: its type, shape and size as far as they are known.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_REPORT_TENSOR_SUMMARY_H_
#define SPILLWAY_REWRITE_CORE_REPORT_TENSOR_SUMMARY_H_

#include <string>

#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/shapes/shapes.h"
#include "rewrite_core/graph/graph.h"
#include "spillway/v1/inspect.pb.h"

namespace spillway::core {

// `[2,?,3]`, `[]` for a scalar, `?` if the rank is unknown.
std::string ShapeText(ShapeView shape);

// `float32`; `float32_ref` for a reference; `unknown` if the type is unknown.
std::string TypeText(OutputType type, absl::string_view unknown);

// The name is cut like all shown names (shown_name.h), and the shape after 16 dimensions.
v1::TensorSummary Summarize(const Graph& graph, const Shapes& shapes, Tensor tensor);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_REPORT_TENSOR_SUMMARY_H_
