// All graphs of a few nodes, numbered: case k of a family is always the same graph, so a number
// identifies a failure.
#ifndef SPILLWAY_TESTS_TESTING_SMALL_DAGS_H_
#define SPILLWAY_TESTS_TESTING_SMALL_DAGS_H_

#include <cstdint>

#include "tests/testing/graph_schema.pb.h"

namespace spillway::testing {

// Graphs of `nodes` nodes n0, n1, ...; node j only reads or waits for nodes before it. A node is
// forward or under `gradients/`; its op follows from the number of tensors it reads, unless it is a
// Switch or a Merge.
struct SmallDags {
  int nodes = 4;
  bool control_edges = false;
  bool control_flow = false;  // Switch (on one of two predicates) and Merge.

  // The number of graphs; numbers start at 0.
  uint64_t count() const;
  // The graph of that number. With control_flow, several numbers may give the same graph: a Switch
  // only reads the first of its tensors, and a node that reads nothing is a Placeholder.
  GraphDef Make(uint64_t number) const;

 private:
  int edge_kinds() const { return 2 + control_edges + control_flow; }
  int node_kinds() const { return control_flow ? 5 : 2; }
};

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_SMALL_DAGS_H_
