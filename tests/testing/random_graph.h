// Random graphs with the structure of training graphs: a forward part, a backward part under the
// scope `gradients`, weight updates under `train`; with conditionals, loops, variables and devices.
#ifndef SPILLWAY_TESTS_TESTING_RANDOM_GRAPH_H_
#define SPILLWAY_TESTS_TESTING_RANDOM_GRAPH_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "tests/testing/graph_schema.pb.h"
#include "tests/testing/random.h"

namespace spillway::testing {

struct RandomGraphOptions {
  int forward_ops = 20;  // Approximate; the backward part has about twice as many.
  bool conds = false;    // Switch and Merge, on shared and nested predicates, as tf.cond (v1) has.
  bool loops = false;    // While loops (v1), with invariants. Such graphs have cycles.
  bool variables = true;
  bool devices = true;  // Several devices; otherwise all on /gpu:0.
};

// The graph for that seed. Nodes are in no particular order, some inputs are spelled `x:0`, some
// control inputs are doubled. Every op is one of TensorFlow's, with its type attributes.
GraphDef MakeRandomGraph(uint64_t seed, const RandomGraphOptions& options);

// The same message in bytes that no serializer would write: over-long varints, fields in odd order,
// unknown fields, fields given twice. Protobuf reads the same message from it, except for the
// unknown fields.
std::string RoughenBytes(const GraphDef& graph, Random* random);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_RANDOM_GRAPH_H_
