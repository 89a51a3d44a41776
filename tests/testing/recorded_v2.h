// What TFLMS v2 itself did to graphs in tests/graphs: v2_swaps.json beside them
// (tests/graphs/README.md says what it holds).
#ifndef SPILLWAY_TESTS_TESTING_RECORDED_V2_H_
#define SPILLWAY_TESTS_TESTING_RECORDED_V2_H_

#include <string>

namespace spillway::testing {

// The GraphDef `graph_def` of the graph `name`, with what the set of parameters `set` added to it:
// swap nodes on /cpu:0, rewired inputs, control edges. Written with protobuf alone.
std::string ApplyRecordedV2(const std::string& graph_def, const std::string& name,
                            const std::string& set);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_RECORDED_V2_H_
