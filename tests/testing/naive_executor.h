// A naive executor: what TensorFlow's executor would make of a graph, as far as deadness and the
// identity of values go. It reads a GraphDef with protobuf alone and shares nothing with
// rewrite_core, so that the two can be held against each other.
//
// Values are hashes: of a node's name, op and input values, so two runs agree on a value only if
// all that led to it agrees. Identity and its like hand their input's value on, so that a swap
// changes nothing. The rules are those of TensorFlow's dataflow (Yu et al., "Dynamic control flow
// in large-scale machine learning", 2018):
//   - a node is dead if a data or control input is; all its outputs are dead then
//   - Switch hands its data on at the output that its predicate picks; the other one is dead
//   - Merge is alive if a data input is, whatever its control inputs are, and hands that input on
//   - control edges carry the deadness of the node, not of one of its outputs
#ifndef SPILLWAY_TESTS_TESTING_NAIVE_EXECUTOR_H_
#define SPILLWAY_TESTS_TESTING_NAIVE_EXECUTOR_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/testing/graph_schema.pb.h"

namespace spillway::testing {

// What became of one node in one step.
struct Outcome {
  bool dead = false;
  // The values that its data inputs brought, 0 for a dead one: what a kernel would have seen.
  std::vector<uint64_t> inputs;
  // By output port, as far as somebody reads it; port 0 always.
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

// The outcome of every node, by name. Dies if the graph has a cycle (so: no while loops).
std::map<std::string, Outcome> Execute(const GraphDef& graph, const Truths& truths);

// The names of nodes whose output 0 some Switch takes as its predicate, Identities followed back.
std::vector<std::string> FindPredicates(const GraphDef& graph);

// Every assignment of truth values to these predicates: 2 to the power of their number.
std::vector<Truths> AllTruths(const GraphDef& graph);

// The first node of `before` that fares differently in `after`, and how; empty if none does.
// Compares whether a node is dead and, if it is alive, what it read and gave.
std::string CompareOutcomes(const std::map<std::string, Outcome>& before,
                            const std::map<std::string, Outcome>& after);

// The same for every assignment of truth values to the predicates of `before`: the first difference
// that any of them shows; empty if none does.
std::string CompareAllOutcomes(const GraphDef& before, const GraphDef& after);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_NAIVE_EXECUTOR_H_
