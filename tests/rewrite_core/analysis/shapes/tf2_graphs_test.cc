// Small graphs of TensorFlow 2 programs, compared with the programs' own facts about them
// (variables, updates, iterations, shapes, maximum sizes): tests/tensorflow/make_tf2_graphs.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"

namespace spillway::core {
namespace {

using nlohmann::json;
using testing::TestGraph;
using testing::TestStep;

class Tf2GraphsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(Tf2GraphsTest, IsWhatTheProgramSays) {
  // Relative to tests/graphs.
  const std::string folder = "../rewrite_core/analysis/shapes/tf2/";
  const json facts = json::parse(testing::ReadTestGraph(absl::StrCat(folder, GetParam(), ".json")));
  v1::Step options;
  options.set_batch_size(facts["batch"].get<int64_t>());
  const TestStep step(
      TestGraph::FromBytes(testing::ReadTestGraph(absl::StrCat(folder, GetParam(), ".pb"))),
      options);
  const Graph& graph = *step.graph;
  int checked = 0;
  if (facts.contains("variable_bytes")) {
    int64_t bytes = 0;
    for (const Buffers::Buffer& buffer : step.facts.buffers().buffers()) {
      if (buffer.storage == Storage::kVariable) bytes += buffer.bytes;
    }
    EXPECT_EQ(bytes, facts["variable_bytes"].get<int64_t>());
    ++checked;
  }
  if (facts.contains("updates")) {
    std::vector<std::string> updates;
    for (NodeId id : step.facts.backward_part().updates) updates.emplace_back(graph.name(id));
    EXPECT_EQ(updates, facts["updates"].get<std::vector<std::string>>());
    ++checked;
  }
  if (facts.contains("loops")) {
    json counts;
    for (const Loops::Loop& loop : step.facts.loops().loops()) counts[loop.name] = loop.count;
    EXPECT_EQ(counts, facts["loops"]);
    ++checked;
  }
  if (facts.contains("shapes")) {
    for (const auto& [name, dims] : facts["shapes"].items()) {
      const ShapeView shape = step.facts.shapes().shape({step.graph.Node(name), 0});
      ASSERT_TRUE(shape.known_rank) << name;
      EXPECT_EQ(std::vector<int64_t>(shape.dims.begin(), shape.dims.end()),
                dims.get<std::vector<int64_t>>())
          << name;
      ++checked;
    }
  }
  if (facts.contains("bounds")) {
    const Shapes& bounds = step.facts.shapes().bounds();
    const auto bytes_of = [&](const std::string& name) {
      const std::vector<std::string> parts = absl::StrSplit(name, ':');
      return bounds.buffer_bytes({step.graph.Node(parts[0]), std::stoi(parts[1])});
    };
    int bounded = 0;
    for (const auto& [name, seen] : facts["seen_bytes"].items()) {
      if (bytes_of(name) == kUnknownSize) continue;
      EXPECT_GE(bytes_of(name), seen.get<int64_t>()) << name;
      ++bounded;
    }
    EXPECT_GE(bounded, 40);
    for (const auto& [name, worst] : facts["bounds"].items()) {
      EXPECT_EQ(bytes_of(name), worst.get<int64_t>()) << name;
      EXPECT_TRUE(
          step.facts.buffers().is_bound({step.graph.Node(name.substr(0, name.find(':'))), 0}))
          << name;
    }
    for (const char* name : {"rest:0", "tail:0", "range_to_end:0", "quotient:0", "negative:0"}) {
      EXPECT_EQ(bytes_of(name), kUnknownSize) << name;
    }
    ++checked;
  }
  EXPECT_GE(checked, 1);
}

INSTANTIATE_TEST_SUITE_P(Graphs, Tf2GraphsTest,
                         ::testing::Values("captured_variables", "captured_embedding",
                                           "tables_by_the_same_ids", "optionals", "updates_in_if",
                                           "updates_in_function", "recurrent", "sizes_of_values"),
                         [](const auto& param_info) { return std::string(param_info.param); });

}  // namespace
}  // namespace spillway::core
