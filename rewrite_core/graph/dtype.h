// TensorFlow's tensor types, by number (types.proto) and by the names that Python prints.
#ifndef SPILLWAY_REWRITE_CORE_GRAPH_DTYPE_H_
#define SPILLWAY_REWRITE_CORE_GRAPH_DTYPE_H_

#include "absl/strings/string_view.h"

namespace spillway::core {

// The values of TensorFlow's enum DataType that the core itself refers to. A variable of this type
// may hold any other value of that enum.
enum DataType : int {
  kDtInvalid = 0,  // Unknown.
  kDtFloat32 = 1,
  kDtDouble = 2,
  kDtInt32 = 3,
  kDtString = 7,
  kDtInt64 = 9,
  kDtBool = 10,
  kDtBfloat16 = 14,
  kDtHalf = 19,
  kDtResource = 20,
  kDtVariant = 21,
};

// A reference to a variable of type t has the number t + kRefOffset.
inline constexpr int kRefOffset = 100;

// Bytes of one element; 0 for types with no fixed width (string, resource, variant), for
// references and for unknown numbers.
int ElementBytes(DataType dtype);

// `float32`, `int64`, ...; empty for an unknown number.
absl::string_view DataTypeName(DataType dtype);

// The type of that name; kDtInvalid if none.
DataType DataTypeFromName(absl::string_view name);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_GRAPH_DTYPE_H_
