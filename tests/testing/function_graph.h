// Graphs with a function library, written in the text form.
#ifndef SPILLWAY_TESTS_TESTING_FUNCTION_GRAPH_H_
#define SPILLWAY_TESTS_TESTING_FUNCTION_GRAPH_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/testing/graph_schema.pb.h"

namespace spillway::testing {

// A function. Ends the program if the texts do not parse.
//
//   Function("f", "x:float32 r:resource", "y:float32",
//            "relu = Relu(x) {T=float32}", {"y=relu:activations:0"}, {"relu"})
//
// Arguments and results are NAME:TYPE, or NAME:$ATTR for the type in an attribute of the call. The
// body's inputs are spelled as in functions (`node:output:index`).
FunctionDef Function(const std::string& name, absl::string_view arguments,
                     absl::string_view results, absl::string_view body,
                     const std::vector<std::string>& returns,
                     const std::vector<std::string>& control_returns = {});

// The same with the attribute `key` = true on the function.
FunctionDef WithFlag(FunctionDef function, const std::string& key);

// The bytes of the graph in `text` with these functions. An attribute f="NAME" of a call
// (PartitionedCall, StatefulPartitionedCall) becomes the function NAME, in the graph and in bodies;
// likewise then_branch, else_branch, cond and body, and a list `branches`.
std::string GraphWithFunctions(absl::string_view text, const std::vector<FunctionDef>& functions);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_FUNCTION_GRAPH_H_
