// One tensor in words: its type, its shape and its size as far as they are known.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_REWRITE_CORE_REPORT_TENSOR_SUMMARY_H_
#define SPILLWAY_REWRITE_CORE_REPORT_TENSOR_SUMMARY_H_

#include <string>

#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/shapes.h"
#include "rewrite_core/graph/graph.h"
#include "spillway/v1/inspect.pb.h"

namespace spillway::core {

// `[2,?,3]`, `[]` for a scalar, `?` where the rank is not known.
std::string ShapeText(ShapeView shape);

// `float32`; of a reference `float32_ref`; `unknown` where the type is not known.
std::string TypeText(OutputType type, absl::string_view unknown);

// Its name is cut as others are (shown_name.h), and its shape after 16 dimensions.
v1::TensorSummary Summarize(const Graph& graph, const Shapes& shapes, Tensor tensor);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_REPORT_TENSOR_SUMMARY_H_
