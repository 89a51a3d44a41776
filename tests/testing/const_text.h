// Integer constants in the text form of graphs.
#ifndef SPILLWAY_TESTS_TESTING_CONST_TEXT_H_
#define SPILLWAY_TESTS_TESTING_CONST_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/graph/dtype.h"
#include "tests/testing/graph_schema.pb.h"

namespace spillway::testing {

// One line: an int32 Const with that shape and value.
inline std::string ConstText(const std::string& name, const std::vector<int64_t>& dims,
                             const std::vector<int>& values) {
  AttrValue value;
  value.mutable_tensor()->set_dtype(core::kDtInt32);
  value.mutable_tensor()->mutable_tensor_shape();
  for (int64_t dim : dims) {
    value.mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(dim);
  }
  for (int item : values) value.mutable_tensor()->add_int_val(item);
  return absl::StrCat(name, " = Const() {dtype=int32, value=0x",
                      absl::BytesToHexString(value.SerializeAsString()), "}\n");
}

// One line: a float32 Const, a scalar. TensorFlow writes scalars as a list, tensors as bytes.
inline std::string ScalarText(const std::string& name, float item, bool as_bytes = false) {
  AttrValue value;
  value.mutable_tensor()->set_dtype(core::kDtFloat32);
  value.mutable_tensor()->mutable_tensor_shape();
  if (as_bytes) {
    value.mutable_tensor()->set_tensor_content(&item, sizeof(item));
  } else {
    value.mutable_tensor()->add_float_val(item);
  }
  return absl::StrCat(name, " = Const() {dtype=float32, value=0x",
                      absl::BytesToHexString(value.SerializeAsString()), "}\n");
}

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_CONST_TEXT_H_
