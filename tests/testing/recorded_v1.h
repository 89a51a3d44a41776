// Recorded results of TFLMS v1 itself for the graphs in tests/graphs: v1_orders.json and
// v1_swaps.json next to each graph (described in tests/graphs/README.md).
#ifndef SPILLWAY_TESTS_TESTING_RECORDED_V1_H_
#define SPILLWAY_TESTS_TESTING_RECORDED_V1_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "spillway/v1/options.pb.h"

namespace spillway::testing {

struct RecordedOrders {
  std::vector<std::string> seeds, backward;  // Ops, sorted.
  int backward_start = 0;
  std::vector<std::vector<std::string>> levels;  // The ops of each order; others have none.
};

struct RecordedSwapIn {
  std::vector<std::string> consumers;  // `node[index]`, sorted.
  std::string trigger;                 // Empty if none.
};

// One run, with one set of parameters.
struct RecordedSet {
  std::string name;
  v1::RewriteOptions options;
  bool usable = false;  // It gave a graph, without a cycle, that is not known to train wrongly.
  // The parts that other runs reproduced, as named in tests/graphs/README.md.
  std::set<std::string> stable;
  std::map<std::string, std::vector<RecordedSwapIn>> swaps;  // By tensor, `node:port`.
};

// The names of the graphs that have a v1_orders.json, and so at least one usable set or one that
// trains wrongly.
std::vector<std::string> GraphsWithV1Orders();

// Reads the records of the graph of that name.
RecordedOrders ReadV1Orders(const std::string& graph);
std::vector<RecordedSet> ReadV1Sets(const std::string& graph);

// The name scopes of its gradients and its optimizer.
std::vector<std::string> OptimizerScopes(const std::string& graph);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_RECORDED_V1_H_
