// Graphs with a library of functions, in the text form: for tests.
//
//   const TestGraph graph = WithFunctions(
//       "x = Placeholder() {dtype=float32}\n"
//       "y = PartitionedCall(x) {f=" + FunctionAttr("twice") + ", Tout=[float32]}",
//       {{"twice", {{"a", kDtFloat32}}, "sum = AddV2(a, a) {T=float32}", {{"r", "sum:z:0"}}}});
#ifndef SPILLWAY_TESTS_TESTING_FUNCTION_TEXT_H_
#define SPILLWAY_TESTS_TESTING_FUNCTION_TEXT_H_

#include <string>
#include <utility>
#include <vector>

#include "rewrite_core/graph/dtype.h"
#include "tests/testing/graph_text.h"

namespace spillway::testing {

struct FunctionText {
  std::string name;
  std::vector<std::pair<std::string, core::DataType>> arguments;
  std::string body;  // Nodes in the text form, with inputs spelled as functions do.
  std::vector<std::pair<std::string, std::string>> results;  // Name, and which output it is.
};

// The text of an attribute that names a function.
std::string FunctionAttr(const std::string& name);
// The text of one that lists functions.
std::string FunctionListAttr(const std::vector<std::string>& names);

TestGraph WithFunctions(const std::string& text, const std::vector<FunctionText>& functions);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_FUNCTION_TEXT_H_
