#include "rewrite_core/report/tensor_summary.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rewrite_core/base/shown_name.h"
#include "rewrite_core/graph/dtype.h"

namespace spillway::core {
namespace {

constexpr char kUnknown[] = "?";
// Tensors of real programs have few dimensions; hostile ones may have very many.
constexpr size_t kMaxShownDims = 16;

}  // namespace

std::string ShapeText(ShapeView shape) {
  if (!shape.known_rank) return kUnknown;
  return absl::StrCat("[",
                      absl::StrJoin(shape.dims, ",",
                                    [](std::string* out, int64_t dim) {
                                      dim == kUnknownDim ? absl::StrAppend(out, kUnknown)
                                                         : absl::StrAppend(out, dim);
                                    }),
                      "]");
}

std::string TypeText(OutputType type, absl::string_view unknown) {
  const absl::string_view name = DataTypeName(type.dtype);
  if (name.empty()) return std::string(unknown);
  return absl::StrCat(name, type.is_ref ? "_ref" : "");
}

v1::TensorSummary Summarize(const Graph& graph, const Shapes& shapes, Tensor tensor) {
  v1::TensorSummary summary;
  summary.set_tensor(absl::StrCat(ShownName(graph.name(tensor.node)), ":", tensor.port));
  summary.set_dtype(TypeText(shapes.type(tensor), ""));
  const ShapeView shape = shapes.shape(tensor);
  if (shape.known_rank) {
    ShapeView shown = shape;
    shown.dims = shown.dims.subspan(0, kMaxShownDims);
    summary.set_shape(ShapeText(shown));
    if (shape.dims.size() > kMaxShownDims) summary.mutable_shape()->append("...");
  }
  const int64_t bytes = shapes.size_bytes(tensor);
  if (bytes == kUnknownSize) {
    summary.set_size_unknown(shapes.why_unknown(tensor));
  } else {
    summary.set_size_bytes(bytes);
  }
  return summary;
}

}  // namespace spillway::core
