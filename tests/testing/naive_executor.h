// A naive executor: runs a graph as TensorFlow's executor would, as far as deadness and the
// identity of values are concerned. It reads a GraphDef only with protobuf and shares nothing with
// rewrite_core, so that the two can be compared.
//
// Values are hashes: of a node's name, op and input values, so two runs agree on a value only if
// all that led to it agrees. Identity and the like forward their input's value, so a swap changes
// nothing. The rules are those of TensorFlow's dataflow (Yu et al., "Dynamic control flow in
// large-scale machine learning", 2018):
//   - a node is dead if a data or control input is; all its outputs are dead then
//   - Switch forwards its data to the output that its predicate selects; the other one is dead
//   - Merge is alive if a data input is, regardless of its control inputs, and forwards that input
//   - control edges carry the deadness of the node, not of one of its outputs
#ifndef SPILLWAY_TESTS_TESTING_NAIVE_EXECUTOR_H_
#define SPILLWAY_TESTS_TESTING_NAIVE_EXECUTOR_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/testing/graph_schema.pb.h"

namespace spillway::testing {

// The outcome of one node in one step.
struct Outcome {
  bool dead = false;
  // The values of its data inputs, 0 for a dead one, as a kernel would have seen them.
  std::vector<uint64_t> inputs;
  // By output port, if it has a reader; always for port 0.
  struct Output {
    bool dead = false;
    uint64_t value = 0;
  };
  std::vector<Output> outputs;
};
bool operator==(const Outcome& a, const Outcome& b);

// For predicates: the truth value of output 0 of the node of that name. A predicate that is not in
// the map takes the lowest bit of its value.
using Truths = std::map<std::string, bool>;

// By the name of a clone: the name of its original, whose kernel it runs.
using Originals = std::map<std::string, std::string>;

// The outcome of every node, by name. Dies if the graph has a cycle (so: no while loops).
std::map<std::string, Outcome> Execute(const GraphDef& graph, const Truths& truths,
                                       const Originals& originals = {});

// The names of nodes whose output 0 is some Switch's predicate, following Identities back.
std::vector<std::string> FindPredicates(const GraphDef& graph);

// Every assignment of truth values to these predicates: 2 to the power of their number.
std::vector<Truths> AllTruths(const GraphDef& graph);

// The first node of `before` with a different outcome in `after`, and the difference; empty without
// a difference. Compares whether a node is dead and, if it is alive, its inputs and outputs.
std::string CompareOutcomes(const std::map<std::string, Outcome>& before,
                            const std::map<std::string, Outcome>& after);

// The same for every assignment of truth values to the predicates of `before`: the first
// difference, if any.
std::string CompareAllOutcomes(const GraphDef& before, const GraphDef& after,
                               const Originals& originals = {});

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_NAIVE_EXECUTOR_H_
