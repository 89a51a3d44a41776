// Recorded results of TFLMS v2 itself for the graphs in tests/graphs: v2_levels.json and
// v2_swaps.json next to each graph (described in tests/graphs/README.md).
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
  // `level`, with the recorded parameters; devices: all GPUs if there are several, since the
  // program ran once for each.
  v1::RewriteOptions options;
  bool tuned = false;  // The program had to find some of them.
  bool with_collections = false;
  double edit_ms = 0;  // Wall time of the edit: an order of magnitude.
  std::string error;   // The program gave up; the rest is then empty.
  std::string trains;  // The result of 4 steps of training.
  bool cyclic = false;
  bool usable = false;  // It gave a graph, without a cycle, that is not known to train wrongly.
  // The number of runs compared, and the parts that were the same in all, as named in
  // tests/graphs/README.md.
  int run_count = 1;
  std::set<std::string> stable;
  // As counted by the program. Absent if not recorded, or not for the plain graph.
  std::optional<int32_t> level_count;
  std::optional<int64_t> vertex_count, edge_count;
  std::map<std::string, RecordedSwapV2> swaps;             // By tensor, `node:port`.
  std::set<std::pair<std::string, std::string>> controls;  // Control edges to original nodes.
};

// The names of the graphs that have records.
std::vector<std::string> GraphsWithV2Records();

// Reads the records of the graph of that name; sets are sorted by name.
RecordedLevelsV2 ReadV2Levels(const std::string& graph);
std::vector<RecordedSetV2> ReadV2Sets(const std::string& graph);

// The GraphDef `graph_def` of the graph `name`, with the additions of the parameter set `set`: swap
// nodes on /cpu:0, rewired inputs, control edges. Uses only protobuf.
std::string ApplyRecordedV2(const std::string& graph_def, const std::string& name,
                            const std::string& set);

// The machine of a published run (TFLMS v2's demo of 2020: tf_cnn_benchmarks, ResNet-50, batch 200,
// 21 of 255 images/s, 20.33 GiB out and 31.36 GiB in, each step): the preset p100_pcie with the
// link that the run reached.
v1::Hardware P100AsObserved();

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_RECORDED_V2_H_
