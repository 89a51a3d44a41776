#include "rewrite_core/graph/dtype.h"

namespace spillway::core {
namespace {

struct Row {
  int number;
  absl::string_view name;
  int bytes;
};

// Numbers: tensorflow/core/framework/types.proto. Widths: TensorFlow's DataTypeSize, in which a
// 4-bit integer takes a byte.
constexpr Row kTypes[] = {
    {1, "float32", 4},        {2, "float64", 8},      {3, "int32", 4},    {4, "uint8", 1},
    {5, "int16", 2},          {6, "int8", 1},         {7, "string", 0},   {8, "complex64", 8},
    {9, "int64", 8},          {10, "bool", 1},        {11, "qint8", 1},   {12, "quint8", 1},
    {13, "qint32", 4},        {14, "bfloat16", 2},    {15, "qint16", 2},  {16, "quint16", 2},
    {17, "uint16", 2},        {18, "complex128", 16}, {19, "float16", 2}, {20, "resource", 0},
    {21, "variant", 0},       {22, "uint32", 4},      {23, "uint64", 8},  {24, "float8_e5m2", 1},
    {25, "float8_e4m3fn", 1}, {29, "int4", 1},        {30, "uint4", 1},
};

}  // namespace

int ElementBytes(DataType dtype) {
  for (const Row& row : kTypes) {
    if (row.number == dtype) return row.bytes;
  }
  return 0;
}

absl::string_view DataTypeName(DataType dtype) {
  for (const Row& row : kTypes) {
    if (row.number == dtype) return row.name;
  }
  return {};
}

DataType DataTypeFromName(absl::string_view name) {
  for (const Row& row : kTypes) {
    if (row.name == name) return static_cast<DataType>(row.number);
  }
  return kDtInvalid;
}

}  // namespace spillway::core
