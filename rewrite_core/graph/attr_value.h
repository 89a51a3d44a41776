// Reading and writing serialized AttrValues, the values of a node's attributes.
//
// Readers take untrusted bytes: a malformed value, or one of another kind than requested, reads as
// empty.
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_ATTR_VALUE_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_ATTR_VALUE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "rewrite_core/graph/dtype.h"

namespace spillway::core {

// A tensor shape as stated by a graph. An unknown dimension is kUnknownDim.
inline constexpr int64_t kUnknownDim = -1;
struct Shape {
  bool unknown_rank = false;
  std::vector<int64_t> dims;
};

// Single values.
DataType AttrType(absl::string_view value);  // kDtInvalid if not a type.
absl::optional<int64_t> AttrInt(absl::string_view value);
absl::optional<bool> AttrBool(absl::string_view value);
absl::optional<absl::string_view> AttrString(absl::string_view value);
absl::optional<Shape> AttrShape(absl::string_view value);

// The name of a function.
absl::optional<absl::string_view> AttrFunction(absl::string_view value);

// Lists of types: calls visit(item) until it returns false. False if `value` is not one.
bool ForEachAttrType(absl::string_view value, const std::function<bool(DataType)>& visit);
// The items of a list of integers; empty if `value` is not one. At most `limit`.
std::vector<int64_t> AttrInts(absl::string_view value, size_t limit);
// The length of a list; -1 if `value` is not one.
int CountAttrTypes(absl::string_view value);
int CountAttrShapes(absl::string_view value);
// The items of a list; empty if `value` is not one. At most `limit` shapes.
std::vector<Shape> AttrShapes(absl::string_view value, int64_t limit);
std::vector<absl::string_view> AttrStrings(absl::string_view value);
std::vector<absl::string_view> AttrFunctions(absl::string_view value);  // Their names.

// Reads a serialized TensorShapeProto; nullopt if malformed.
absl::optional<Shape> ParseShape(absl::string_view shape_proto);

// Serialized AttrValues.
std::string TypeAttr(DataType dtype);
std::string BoolAttr(bool value);
std::string IntAttr(int64_t value);
std::string StringAttr(absl::string_view value);
std::string StringListAttr(absl::Span<const std::string> values);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_ATTR_VALUE_H_
