// Files around graphs: the replaced graphs, and that nothing else changes.
#include "client_lib/format/graph_file.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/base/error.h"
#include "tests/testing/files.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/random.h"
#include "tests/testing/raw_bytes.h"

namespace spillway::format {
namespace {

using spillway::testing::GraphBytes;
using spillway::testing::Random;
using spillway::testing::RawField;
using spillway::testing::RawGroup;
using spillway::testing::RawNumber;
using spillway::testing::ReadTestGraph;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string SmallGraph() { return GraphBytes("a = Const()\nb = Relu(a)"); }
std::string OtherGraph() {
  return GraphBytes("a = Const()\nb = Relu(c)\nc = Identity(a, ^d)\nd = NoOp()");
}

using Graphs = std::vector<absl::optional<std::string>>;

// The file with `graphs` in it; without one the test fails.
std::string With(const std::string& bytes, absl::optional<GraphFormat> format, Graphs graphs) {
  auto file = GraphFile::Read(bytes, format);
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return "";
  graphs.resize(file->num_graphs());
  auto result = std::move(*file).WithGraphs(std::move(graphs));
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : "";
}

void ExpectError(const absl::Status& status, v1::ErrorReason reason, const std::string& text) {
  EXPECT_EQ(core::GetErrorReason(status), reason) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

void ExpectReadError(const std::string& bytes, absl::optional<GraphFormat> format,
                     v1::ErrorReason reason, const std::string& text) {
  ExpectError(GraphFile::Read(bytes, format).status(), reason, text);
}

// A MetaGraphDef around `graph`: tags, an unknown field, a group, and a length of five bytes.
std::string OddMetaGraph(const std::string& graph, const std::string& tag, int padding) {
  return RawField(7, "object graph") + RawField(2, graph, padding) +
         RawGroup(100, RawNumber(1, 5)) + RawField(1, RawField(4, tag) + RawField(4, "gpu"), 2) +
         RawField(4, "collection") + RawNumber(1000, 1) + RawField(4, "collection");
}

TEST(GraphFileTest, AGraphDefIsTheWholeFile) {
  EXPECT_EQ(With(SmallGraph(), absl::nullopt, {OtherGraph()}), OtherGraph());
  EXPECT_EQ(With(SmallGraph(), absl::nullopt, {absl::nullopt}), SmallGraph());
}

TEST(GraphFileTest, KeepsAllAroundTheGraphOfAMetaGraph) {
  // 4 superfluous bytes make the length 5 bytes long, for both graphs: these have less than 128.
  for (int padding : {0, 4}) {
    EXPECT_EQ(With(OddMetaGraph(SmallGraph(), "train", padding), absl::nullopt, {OtherGraph()}),
              OddMetaGraph(OtherGraph(), "train", padding));
  }
}

TEST(GraphFileTest, ReplacesAnyGraphOfASavedModel) {
  const auto model = [](const std::string& first, const std::string& second, int padding) {
    return RawField(2, OddMetaGraph(first, "train", 0), padding) + RawField(9, "unknown") +
           RawNumber(1, 1) + RawField(2, OddMetaGraph(second, "serve", 4));
  };
  // Longer than 128 bytes inside: the lengths grow by bytes, too.
  const std::string large = ReadTestGraph("mnist_deep/graph_shapes.pb");
  for (int padding : {0, 2}) {
    const std::string before = model(SmallGraph(), OtherGraph(), padding);
    auto file = GraphFile::Read(before, absl::nullopt);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->format(), GraphFormat::kSavedModel);
    ASSERT_EQ(file->num_graphs(), 2u);
    EXPECT_EQ(file->graph(0), SmallGraph());
    EXPECT_EQ(file->graph(1), OtherGraph());
    EXPECT_THAT(file->tags(1), ElementsAre("serve", "gpu"));
    EXPECT_EQ(file->NameOf(1), "MetaGraph 1 (tags: serve, gpu)");
    EXPECT_EQ(With(before, absl::nullopt, {absl::nullopt, SmallGraph()}),
              model(SmallGraph(), SmallGraph(), padding));
    const std::string both = With(before, absl::nullopt, {OtherGraph(), large});
    EXPECT_TRUE(With(both, absl::nullopt, {SmallGraph(), OtherGraph()}) == before);
  }
  EXPECT_TRUE(With(model(SmallGraph(), OtherGraph(), 0), absl::nullopt, {large, OtherGraph()}) ==
              model(large, OtherGraph(), 0));
}

// Lengths that cannot be restored byte for byte are refused, before they are lost.
TEST(GraphFileTest, RefusesALengthThatStripCouldNotRestore) {
  const std::string before = RawField(2, SmallGraph(), 1);  // Two bytes, where one would do.
  auto file = GraphFile::Read(before, GraphFormat::kMetaGraph);
  ASSERT_TRUE(file.ok()) << file.status();
  ExpectError(std::move(*file).WithGraphs({std::string(200, 'x')}).status(),
              v1::ERROR_REASON_MALFORMED_GRAPH, "strip could not restore at byte 1");
  EXPECT_EQ(With(before, GraphFormat::kMetaGraph, {OtherGraph()}), RawField(2, OtherGraph(), 1));
}

TEST(GraphFileTest, NamesWhatIsMissingOrTwice) {
  const auto reason = v1::ERROR_REASON_EMPTY_GRAPH;
  ExpectReadError(RawNumber(1, 1), absl::nullopt, reason, "the SavedModel has no MetaGraph");
  ExpectReadError(RawNumber(1, 1) + RawField(2, RawField(1, RawField(4, "serve"))), absl::nullopt,
                  reason, "no MetaGraph of the SavedModel has a graph");
  ExpectReadError(RawField(1, RawField(4, "serve")), GraphFormat::kMetaGraph, reason,
                  "the MetaGraphDef has no graph");
  ExpectReadError("saved_model_schema_version: 1", absl::nullopt, reason, "no MetaGraph");
  ExpectReadError("meta_info_def { tags: 'x' }", absl::nullopt, reason, "has no graph");
  const std::string twice = RawField(2, SmallGraph()) + RawField(2, SmallGraph());
  ExpectReadError(twice, absl::nullopt, v1::ERROR_REASON_MALFORMED_GRAPH,
                  absl::StrCat("a second field graph_def at byte ", twice.size() / 2));
  ExpectReadError("graph_def { }\ngraph_def { }", absl::nullopt, v1::ERROR_REASON_MALFORMED_GRAPH,
                  "line 2, column 11: a second graph_def");
  // A MetaGraph without a graph beside one with: it is there, and empty.
  auto file = GraphFile::Read(
      RawNumber(1, 1) + RawField(2, RawField(7, "x")) + RawField(2, RawField(2, SmallGraph())),
      absl::nullopt);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->graph(0), "");
  EXPECT_EQ(file->graph(1), SmallGraph());
}

TEST(GraphFileTest, NamesTheByteWhereAFileIsCutOff) {
  const std::string whole = RawNumber(1, 1) + RawField(2, OddMetaGraph(SmallGraph(), "train", 0));
  ExpectReadError(whole.substr(0, whole.size() - 3), absl::nullopt,
                  v1::ERROR_REASON_MALFORMED_GRAPH,
                  "the SavedModel is cut off or damaged at byte 2");
  const std::string inner = OddMetaGraph(SmallGraph(), "train", 0);
  ExpectReadError(RawNumber(1, 1) + RawField(2, inner.substr(0, inner.size() - 3)), absl::nullopt,
                  v1::ERROR_REASON_MALFORMED_GRAPH, "MetaGraph 0 is cut off or damaged at byte");
}

TEST(GraphFileTest, BoundsWhatAFileMayHave) {
  std::string many = RawNumber(1, 1) + RawField(2, RawField(2, SmallGraph()));
  for (int i = 0; i < 1000; ++i) many += RawField(2, "");
  ExpectReadError(many, absl::nullopt, v1::ERROR_REASON_LIMIT_EXCEEDED,
                  "more than 1000 MetaGraphs");
  std::string text = "saved_model_schema_version: 1\n";
  for (int i = 0; i < 1001; ++i) text += "meta_graphs {}\n";
  ExpectReadError(text, absl::nullopt, v1::ERROR_REASON_LIMIT_EXCEEDED,
                  "more than 1000 MetaGraphs");
  ExpectReadError("meta_info_def { " + std::string(2000, '{'), absl::nullopt,
                  v1::ERROR_REASON_MALFORMED_GRAPH, "more than 1000 brackets");
  std::string deep = "node { experimental_type { ";
  for (int i = 0; i < 5000; ++i) deep += "args { ";
  ExpectReadError(deep, absl::nullopt, v1::ERROR_REASON_MALFORMED_GRAPH, "line 1, column ");
}

// Random fields around random graphs, with lengths in more bytes than they need: replaced and put
// back, the file is unchanged.
TEST(GraphFileTest, AnyWrappingComesBack) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const auto noise = [&random] {
      std::string fields;
      for (int i = random.Between(0, 3); i > 0; --i) {
        const int number = random.Between(3, 2000);
        switch (random.Between(0, 3)) {
          case 0:
            fields += RawNumber(number, random.Between(0, 1 << 30));
            break;
          case 1:
            fields += RawGroup(number, RawField(1, "x"));
            break;
          default:
            fields +=
                RawField(number, std::string(random.Between(0, 200), 'n'), random.Between(0, 3));
        }
      }
      return fields;
    };
    const auto padding = [&random] { return random.Between(0, 1) == 0 ? 0 : 8; };
    std::string bytes = noise() + RawNumber(1, 1);
    const int count = random.Between(1, 3);
    Graphs originals;
    Graphs others;
    for (int i = 0; i < count; ++i) {
      originals.push_back(std::string(random.Between(0, 300), 'o'));
      others.push_back(std::string(random.Between(0, 70000), 'r'));
      bytes += noise() +
               RawField(2, noise() + RawField(2, *originals[i], padding()) + noise(), padding());
    }
    bytes += noise();
    const std::string replaced = With(bytes, GraphFormat::kSavedModel, others);
    auto file = GraphFile::Read(replaced, GraphFormat::kSavedModel);
    ASSERT_TRUE(file.ok()) << file.status() << " seed " << seed;
    for (int i = 0; i < count; ++i) EXPECT_TRUE(file->graph(i) == *others[i]) << "seed " << seed;
    EXPECT_TRUE(With(replaced, GraphFormat::kSavedModel, originals) == bytes) << "seed " << seed;
  }
}

constexpr char kTextModel[] = R"(# A model { with graph_def { in a comment.
saved_model_schema_version: 1
meta_graphs {
  meta_info_def { tags: "train" tags: ["gp" "u"] any_info { [x.y/z.graph_def] { a: 1 } } }
  collection_def { key: "graph_def {" value { node_list { value: '}' } } }	graph_def	{
    node { name: "a" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "b" op: "Relu" input: "a" } # A comment.
  }
  asset_file_def < filename: "graph_def" >
};
meta_graphs: [ { meta_info_def { tags: 'serve' } graph_def: { node { name: "s" op: "NoOp" } } } ]
)";

TEST(GraphFileTest, KeepsAllAroundTheGraphsOfATextModel) {
  const std::string text = kTextModel;
  auto file = GraphFile::Read(text, absl::nullopt);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->num_graphs(), 2u);
  EXPECT_THAT(file->tags(0), ElementsAre("train", "gp", "u"));
  EXPECT_THAT(file->tags(1), ElementsAre("serve"));
  EXPECT_EQ(With(text, absl::nullopt, {}), text);
  const std::string changed = With(text, absl::nullopt, {absl::nullopt, SmallGraph()});
  EXPECT_EQ(changed, absl::StrReplaceAll(text, {{R"( node { name: "s" op: "NoOp" } })", R"(
    node {
      name: "a"
      op: "Const"
    }
    node {
      name: "b"
      op: "Relu"
      input: "a"
    }
  })"}}));
  EXPECT_THAT(With(changed, absl::nullopt, {OtherGraph()}),
              HasSubstr("}	graph_def	{\n    node {\n"));
}

TEST(GraphFileTest, ATypoInATextHasALineAndAColumn) {
  const auto reason = v1::ERROR_REASON_MALFORMED_GRAPH;
  ExpectReadError("node {\n  name: \"a\"\n  opp: \"NoOp\"\n}", absl::nullopt, reason,
                  "line 3, column 6: Message type \"spillway.format.NodeDef\" has no field named");
  ExpectReadError("node { name: \"a\" attr { key: \"T\" value { type: DT_FLOOT } } }",
                  absl::nullopt, reason,
                  "line 1, column 57: Unknown enumeration value of \"DT_FLOOT\"");
  ExpectReadError("versions { producer: 27 }\nnode { name: \"a }", absl::nullopt, reason,
                  "line 2, column ");
  // In a block, counted from the start of the file.
  const std::string text = kTextModel;
  ExpectReadError(absl::StrReplaceAll(text, {{"input:", "inputs:"}}), absl::nullopt, reason,
                  "MetaGraph 0 (tags: train, gp, u): line 7, column 39: ");
  ExpectReadError(absl::StrReplaceAll(text, {{"node { name: \"s\"", "nod { name: \"s\""}}),
                  absl::nullopt, reason, "MetaGraph 1 (tags: serve): line 11, column 67: ");
  ExpectReadError(absl::StrReplaceAll(text, {{"asset_file_def <", "asset_file_def {"}}),
                  absl::nullopt, reason,
                  "line 9, column 42: expected } of 'asset_file_def', found >");
  ExpectReadError(text.substr(0, text.size() / 2), absl::nullopt, reason, "line ");
}

// Text and back is the same graph, in the eyes of a schema that the code under test does not use.
TEST(GraphFileTest, TextSaysWhatTheGraphSays) {
  for (const char* name :
       {"mnist_deep/graph_shapes.pb", "cond_v2/graph.pb", "bert_tiny/graph.pb"}) {
    const std::string graph = ReadTestGraph(name);
    // Of a text file, so that the graph is printed.
    const std::string text = With("node { name: \"a\" op: \"b\" }", absl::nullopt, {graph});
    EXPECT_THAT(text, HasSubstr("type: DT_FLOAT\n"));
    auto file = GraphFile::Read(text, absl::nullopt);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(spillway::testing::Difference(spillway::testing::ReadProto(graph),
                                            spillway::testing::ReadProto(file->graph(0))),
              "")
        << name;
    EXPECT_TRUE(With(text, absl::nullopt, {std::string(file->graph(0))}) == text);
  }
}

// For any cut or change: an answer, and from it the file that was read.
TEST(GraphFileTest, DamagedFilesAreErrorsOrComeBackAsTheyAre) {
  const std::string binary = RawNumber(1, 1) + RawField(2, OddMetaGraph(SmallGraph(), "train", 4)) +
                             RawField(2, OddMetaGraph(OtherGraph(), "serve", 0));
  int readable = 0;
  for (const std::string& original : {binary, std::string(kTextModel)}) {
    const auto check = [&readable](const std::string& bytes) {
      auto file = GraphFile::Read(bytes, absl::nullopt);
      if (!file.ok()) {
        EXPECT_NE(core::GetErrorReason(file.status()), v1::ERROR_REASON_UNSPECIFIED);
        return;
      }
      ++readable;
      const size_t count = file->num_graphs();
      Graphs graphs(count);
      Graphs old(count);
      for (size_t i = 0; i < count; ++i) {
        if (file->graph(i).empty()) continue;
        old[i] = std::string(file->graph(i));
        graphs[i] = OtherGraph();
      }
      const GraphFormat format = file->format();
      auto changed = std::move(*file).WithGraphs(graphs);
      if (!changed.ok() || IsText(format)) return;
      EXPECT_TRUE(With(*changed, format, old) == bytes);
      EXPECT_TRUE(With(bytes, format, {}) == bytes);
    };
    for (size_t size = 0; size < original.size(); ++size) check(original.substr(0, size));
    Random random(5);
    for (int i = 0; i < 20000; ++i) {
      std::string bytes = original;
      for (int change = random.Between(1, 3); change > 0; --change) {
        bytes[random.Between(0, static_cast<int>(bytes.size()) - 1)] =
            static_cast<char>(random.Between(0, 255));
      }
      check(bytes);
    }
  }
  EXPECT_GT(readable, 1000);
}

}  // namespace
}  // namespace spillway::format
