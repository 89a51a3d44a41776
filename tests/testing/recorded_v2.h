// What TFLMS v2 itself did to the graphs in tests/graphs: v2_levels.json and v2_swaps.json beside
// each graph (tests/graphs/README.md says what they hold).
#ifndef SPILLWAY_TESTS_TESTING_RECORDED_V2_H_
#define SPILLWAY_TESTS_TESTING_RECORDED_V2_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "spillway/v1/options.pb.h"

namespace spillway::testing {

struct RecordedLevelsV2 {
  std::vector<std::vector<std::string>> levels;  // The ops of each level; others have none.
  std::vector<std::string> inactive;             // Ops, sorted.
};

struct RecordedSwapInV2 {
  std::string name;
  std::vector<std::string> consumers;  // `node[index]`, sorted.
  std::set<std::string> triggers;      // Its control inputs.
};

struct RecordedSwapV2 {
  std::string swap_out;                    // Its name.
  std::vector<RecordedSwapInV2> swap_ins;  // Sorted by consumers.
};

// One run, with one set of parameters.
struct RecordedSetV2 {
  std::string name;
  // `level`, with the parameters recorded; devices: all GPUs where there are several, since the
  // program ran for one after another.
  v1::RewriteOptions options;
  bool tuned = false;  // Some of them were for the program to find.
  bool with_collections = false;
  double edit_ms = 0;  // Wall time of the edit: an order of magnitude.
  std::string error;   // The program gave up; then there is nothing more.
  std::string trains;  // What 4 steps of training gave.
  bool cyclic = false;
  bool usable = false;  // It gave a graph, without a cycle, that is not known to train wrongly.
  // How many runs were compared, and the parts that were the same in all, as tests/graphs/README.md
  // names them.
  int run_count = 1;
  std::set<std::string> stable;
  // As the program counts them. Nothing: not recorded, or not of the plain graph.
  std::optional<int32_t> level_count;
  std::optional<int64_t> vertex_count, edge_count;
  std::map<std::string, RecordedSwapV2> swaps;             // By tensor, `node:port`.
  std::set<std::pair<std::string, std::string>> controls;  // Control edges to original nodes.
};

// The names of the graphs that have records.
std::vector<std::string> GraphsWithV2Records();

// Of the graph of that name; sets sorted by name.
RecordedLevelsV2 ReadV2Levels(const std::string& graph);
std::vector<RecordedSetV2> ReadV2Sets(const std::string& graph);

// The GraphDef `graph_def` of the graph `name`, with what the set of parameters `set` added to it:
// swap nodes on /cpu:0, rewired inputs, control edges. Written with protobuf alone.
std::string ApplyRecordedV2(const std::string& graph_def, const std::string& name,
                            const std::string& set);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_RECORDED_V2_H_
