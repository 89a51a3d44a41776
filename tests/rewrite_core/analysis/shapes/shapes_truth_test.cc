// Compares shapes with TensorFlow's own for the training graphs in tests/graphs: its static
// inference (shapes.tsv, shapes_bB.tsv), grappler's (which follows loops), and the shapes of a real
// step (runtime_shapes.tsv). All that TensorFlow infers must be inferred, and nothing may
// contradict it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "rewrite_core/analysis/shapes/shapes.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"
#include "tests/testing/graph_meta.h"
#include "tests/testing/graph_schema.pb.h"

namespace spillway::core {
namespace {

using testing::RecordedBatch;
using testing::TestGraph;

// One row of a table: `node:port`, type, shape.
struct Row {
  std::string tensor;
  std::string dtype;
  bool known_rank = false;
  std::vector<int64_t> dims;
  std::string text;
};

std::vector<Row> ReadTable(const std::string& name) {
  std::vector<Row> rows;
  for (absl::string_view line :
       absl::StrSplit(testing::ReadTestGraph(name), '\n', absl::SkipEmpty())) {
    const std::vector<std::string> cells = absl::StrSplit(line, '\t');
    Row row;
    row.tensor = cells.at(0);
    row.dtype = cells.at(1);
    absl::string_view shape = row.text = cells.at(2);
    row.known_rank = shape != "?";
    if (row.known_rank && absl::ConsumePrefix(&shape, "[") && absl::ConsumeSuffix(&shape, "]")) {
      for (absl::string_view dim : absl::StrSplit(shape, ',', absl::SkipEmpty())) {
        int64_t size = kUnknownDim;
        EXPECT_TRUE(dim == "?" || absl::SimpleAtoi(dim, &size)) << line;
        row.dims.push_back(size);
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

bool Exists(const std::string& name) {
  const std::string path = absl::StrCat(SPILLWAY_TEST_GRAPHS, "/", name);
  return std::filesystem::exists(path) || std::filesystem::exists(path + ".gz");
}

std::string Text(const ShapeView& shape) {
  if (!shape.known_rank) return "?";
  return absl::StrCat("[",
                      absl::StrJoin(shape.dims, ",",
                                    [](std::string* out, int64_t dim) {
                                      absl::StrAppend(out, dim < 0 ? "?" : absl::StrCat(dim));
                                    }),
                      "]");
}

bool Contradicts(const ShapeView& ours, const Row& row) {
  if (!ours.known_rank || !row.known_rank) return false;
  if (ours.dims.size() != row.dims.size()) return true;
  for (size_t i = 0; i < row.dims.size(); ++i) {
    if (ours.dims[i] >= 0 && row.dims[i] >= 0 && ours.dims[i] != row.dims[i]) return true;
  }
  return false;
}

// Whether the table knows more of the shape than the analysis.
bool KnowsLess(const ShapeView& ours, const Row& row) {
  if (!row.known_rank) return false;
  if (!ours.known_rank) return true;
  for (size_t i = 0; i < row.dims.size() && i < ours.dims.size(); ++i) {
    if (row.dims[i] >= 0 && ours.dims[i] < 0) return true;
  }
  return false;
}

bool IsComplete(const ShapeView& shape) {
  if (!shape.known_rank) return false;
  for (int64_t dim : shape.dims) {
    if (dim < 0) return false;
  }
  return true;
}

// Known differences between TensorFlow's inference and the results of its kernels; see the README
// of tests/graphs.
bool RunsOtherwise(const Graph& graph, Tensor tensor, const Row& row) {
  const absl::string_view op = graph.op(tensor.node);
  // Unused outputs: [0] by inference, [] from the kernel.
  if (absl::StartsWith(op, "FusedBatchNormGrad") && tensor.port >= 3) return row.dims.empty();
  // Handles: [2] by inference, a scalar when they run.
  return row.dtype == "resource" && row.dims.empty();
}

class TruthTest : public ::testing::Test {
 protected:
  static Shapes Infer(const TestGraph& graph, const v1::Step& options) {
    const StopToken stop;
    const auto topology = testing::ValueOrDie(Topology::Build(*graph, stop), "topology");
    return testing::ValueOrDie(Shapes::Infer(*graph, topology, options, stop), "shapes");
  }

  // Lists entries of the table that are unknown to the analysis or contradict it; prints the known
  // share.
  void Compare(const TestGraph& graph, const Shapes& shapes, const std::string& table,
               bool must_know, bool real_step = false) {
    constexpr int kMaxShown = 20;
    int contradictions = 0, less = 0, types = 0, complete = 0, theirs = 0;
    const std::vector<Row> rows = ReadTable(table);
    ASSERT_FALSE(rows.empty());
    for (const Row& row : rows) {
      const Tensor tensor = graph.Output(row.tensor);
      const ShapeView ours = shapes.shape(tensor);
      const OutputType type = shapes.type(tensor);
      complete += IsComplete(ours);
      theirs += row.known_rank && !absl::StrContains(row.text, '?');
      const std::string dtype = absl::StrCat(DataTypeName(type.dtype), type.is_ref ? "_ref" : "");
      // The types of ops that TensorFlow does not have cannot be determined.
      // In a real step, references are recorded as the tensors that they refer to.
      // This also applies to horovod_like, which was given ops that did not exist when it was made.
      const bool same = dtype == row.dtype || !graph->op_info(tensor.node).known ||
                        ((real_step || absl::StartsWith(row.tensor, "broadcast_assign/")) &&
                         dtype == row.dtype + "_ref");
      if (!same && ++types <= kMaxShown) {
        ADD_FAILURE() << row.tensor << " is of type " << row.dtype << ", not " << dtype;
      }
      const std::string what = absl::StrCat(row.tensor, " (", graph->op(tensor.node),
                                            "): ", Text(ours), ", but TensorFlow says ", row.text);
      if (real_step && RunsOtherwise(*graph, tensor, row)) continue;
      if (Contradicts(ours, row) && ++contradictions <= kMaxShown) ADD_FAILURE() << what;
      if (must_know && KnowsLess(ours, row) && ++less <= kMaxShown) ADD_FAILURE() << what;
    }
    EXPECT_EQ(contradictions, 0);
    EXPECT_EQ(less, 0);
    std::cout << table << ": " << complete << " of " << rows.size() << " shapes known, TensorFlow "
              << theirs << "\n";
  }
};

// The parameter: a folder of tests/graphs.
class ShapesTruthTest : public TruthTest, public ::testing::WithParamInterface<std::string> {
 protected:
  ShapesTruthTest()
      : meta_(nlohmann::json::parse(testing::ReadTestGraph(GetParam() + "/meta.json"))) {}

  std::string File(const std::string& name) const { return GetParam() + "/" + name; }

  const nlohmann::json meta_;
};

// Each op several times, with known, partly known and unknown shapes: see make_op_zoo.py.
TEST_F(TruthTest, OpZoo) {
  const std::string folder = "../rewrite_core/analysis/shapes/op_zoo/";
  const TestGraph graph = TestGraph::FromBytes(testing::ReadTestGraph(folder + "graph.pb"));
  Compare(graph, Infer(graph, {}), folder + "shapes.tsv", /*must_know=*/true);
}

// As `as_graph_def(add_shapes=True)` writes it: all shapes that TensorFlow knows are stated.
TEST_P(ShapesTruthTest, StatedShapes) {
  testing::GraphDef proto;
  ASSERT_TRUE(proto.ParseFromString(testing::ReadTestGraph(File("graph.pb"))));
  std::map<std::string, testing::AttrValue*> lists;
  for (testing::NodeDef& node : *proto.mutable_node()) {
    lists[node.name()] = &(*node.mutable_attr())["_output_shapes"];
    lists[node.name()]->mutable_list();
  }
  for (const Row& row : ReadTable(File("shapes.tsv"))) {
    auto* shape =
        lists.at(row.tensor.substr(0, row.tensor.rfind(':')))->mutable_list()->add_shape();
    shape->set_unknown_rank(!row.known_rank);
    for (int64_t dim : row.dims) shape->add_dim()->set_size(dim);
  }
  const TestGraph graph = TestGraph::FromBytes(proto.SerializeAsString());
  Compare(graph, Infer(graph, {}), File("shapes.tsv"), /*must_know=*/true);
}

TEST_P(ShapesTruthTest, PlannedFeeds) {
  const TestGraph graph = TestGraph::FromBytes(testing::ReadTestGraph(File("graph.pb")));
  const std::string planned = absl::StrCat("shapes_b", meta_.at("batch").get<int>(), ".tsv");
  const bool has_planned = Exists(File(planned));
  Compare(graph, Infer(graph, testing::RecordedStep(GetParam(), RecordedBatch::kPlanned)),
          File(has_planned ? planned : "shapes.tsv"),
          /*must_know=*/true);
}

TEST_P(ShapesTruthTest, Grappler) {
  const std::string table =
      File(absl::StrCat("shapes_b", meta_.at("batch").get<int>(), "_grappler.tsv"));
  if (!Exists(table)) GTEST_SKIP();
  const TestGraph graph = TestGraph::FromBytes(testing::ReadTestGraph(File("graph.pb")));
  Compare(graph, Infer(graph, testing::RecordedStep(GetParam(), RecordedBatch::kPlanned)), table,
          /*must_know=*/false);
}

TEST_P(ShapesTruthTest, ARealStep) {
  const std::string table = File("runtime_shapes.tsv");
  if (!Exists(table)) GTEST_SKIP();
  const TestGraph graph = TestGraph::FromBytes(testing::ReadTestGraph(File("graph.pb")));
  Compare(graph, Infer(graph, testing::RecordedStep(GetParam(), RecordedBatch::kRun)), table,
          /*must_know=*/false, /*real_step=*/true);
}

std::vector<std::string> Graphs() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(SPILLWAY_TEST_GRAPHS)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && Exists(name + "/shapes.tsv")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Graphs, ShapesTruthTest, ::testing::ValuesIn(Graphs()),
                         [](const auto& graph) { return graph.param; });

}  // namespace
}  // namespace spillway::core
