// A graph built from a fuzzer's bytes: a list of operations, each of which adds an op, an edge, a
// conditional, a loop, a device, an attribute, or something odd.
#ifndef SPILLWAY_TESTS_FUZZ_GRAPH_PROGRAM_H_
#define SPILLWAY_TESTS_FUZZ_GRAPH_PROGRAM_H_

#include "tests/fuzz/choices.h"
#include "tests/testing/graph_schema.pb.h"

namespace spillway::testing {

struct GraphProgram {
  GraphDef graph;
  // Something in it may be refused: names, ports, attributes, cycles. Otherwise the graph is valid.
  bool odd = false;
};

// At most about a hundred nodes, and ports that an executor can afford.
GraphProgram BuildGraph(Choices* choices);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_FUZZ_GRAPH_PROGRAM_H_
