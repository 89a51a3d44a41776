// What TFLMS v1 itself did to the graphs in tests/graphs: v1_orders.json and v1_swaps.json beside
// each graph (tests/graphs/README.md says what they hold).
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
  std::string trigger;                 // Empty: none.
};

// One run, with one set of parameters.
struct RecordedSet {
  std::string name;
  v1::RewriteOptions options;
  bool usable = false;  // It gave a graph, without a cycle, that is not known to train wrongly.
  // The parts that other runs gave again, as tests/graphs/README.md names them.
  std::set<std::string> stable;
  std::map<std::string, std::vector<RecordedSwapIn>> swaps;  // By tensor, `node:port`.
};

// The names of the graphs that have a v1_orders.json, and so at least one usable set or one that
// trains wrongly.
std::vector<std::string> GraphsWithV1Orders();

// Of the graph of that name.
RecordedOrders ReadV1Orders(const std::string& graph);
std::vector<RecordedSet> ReadV1Sets(const std::string& graph);

// The name scopes of its gradients and its optimizer.
std::vector<std::string> OptimizerScopes(const std::string& graph);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_RECORDED_V1_H_
