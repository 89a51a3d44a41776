// Graph::ParseEdited must give the same result as Graph::Parse or refuse: it only saves work.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/rewriter.h"
#include "tests/testing/files.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random.h"

namespace spillway::core {
namespace {

using ::spillway::testing::FailsWith;
using ::spillway::testing::GraphBytes;
using ::spillway::testing::IsOk;
using ::spillway::testing::ParseGraph;
using ::spillway::testing::Random;

absl::StatusOr<Graph> ParseEdited(const std::string& bytes, const Graph& original,
                                  Graph::Edited* how) {
  return Graph::ParseEdited(bytes, original, DefaultLimits(), StopToken(), how);
}

// Everything that a graph exposes except Find.
void ExpectSame(const Graph& a, const Graph& b) {
  ASSERT_EQ(a.num_nodes(), b.num_nodes());
  EXPECT_EQ(a.num_inputs(), b.num_inputs());
  EXPECT_EQ(a.nodes_end(), b.nodes_end());
  EXPECT_EQ(a.has_functions(), b.has_functions());
  for (NodeId id(0); id < a.num_nodes(); ++id) {
    ASSERT_EQ(a.name(id), b.name(id));
    ASSERT_EQ(a.op(id), b.op(id));
    ASSERT_EQ(a.op_info(id).name, b.op_info(id).name);
    ASSERT_EQ(a.device(id), b.device(id));
    ASSERT_EQ(a.has_undo(id), b.has_undo(id));
    ASSERT_EQ(a.node_field(id), b.node_field(id));
    ASSERT_EQ(a.node_bytes(id), b.node_bytes(id));
    ASSERT_EQ(a.inputs(id), b.inputs(id)) << a.name(id);
    ASSERT_EQ(a.readers(id).size(), b.readers(id).size());
    for (uint32_t i = 0; i < a.readers(id).size(); ++i) {
      ASSERT_EQ(a.readers(id)[i].node, b.readers(id)[i].node);
      ASSERT_EQ(a.readers(id)[i].index, b.readers(id)[i].index);
      ASSERT_EQ(a.readers(id)[i].port, b.readers(id)[i].port);
    }
  }
}

TEST(ParseEditedTest, RefusesWhatIsNoEditOfTheOriginal) {
  const std::string before = GraphBytes("a = MyOp()\nb = MyOp()");
  const auto original = ParseGraph(before);
  Graph::Edited how;
  for (const char* gone : {"a = MyOp()", "b = MyOp()\na = MyOp()", "a = MyOp()\nc = MyOp()"}) {
    EXPECT_THAT(ParseEdited(GraphBytes(gone), *original, &how),
                FailsWith(absl::StatusCode::kInvalidArgument, v1::ERROR_REASON_DANGLING_INPUT,
                          "is gone or has moved"))
        << gone;
  }
  const auto duplicate = [&](const std::string& more) {
    return ParseEdited(before + GraphBytes(more), *original, &how);
  };
  EXPECT_THAT(duplicate("a = MyOp()"), FailsWith(absl::StatusCode::kInvalidArgument,
                                                 v1::ERROR_REASON_DUPLICATE_NODE, "'a'"));
  EXPECT_THAT(duplicate("d = MyOp()"), IsOk());
  EXPECT_THAT(
      ParseEdited(before + GraphBytes("d = MyOp()") + GraphBytes("d = MyOp()"), *original, &how),
      FailsWith(absl::StatusCode::kInvalidArgument, v1::ERROR_REASON_DUPLICATE_NODE, "'d'"));
  EXPECT_THAT(duplicate("a = NoOp(^x)"), ::testing::Not(IsOk()));
}

// Lines of text form: nodes n0, n1, ... that read earlier and later ones.
std::string RandomLine(Random* random, const std::string& name, int count) {
  std::vector<std::string> inputs;
  for (uint64_t i = random->Next() % 3; i > 0; --i) {
    inputs.push_back(absl::StrCat("n", random->Next() % count));
  }
  if (random->Next() % 4 == 0) inputs.push_back(absl::StrCat("^n", random->Next() % count));
  const char* ops[] = {"MyOp", "Other"};
  return absl::StrCat(name, " = ", ops[random->Next() % 2], "(", absl::StrJoin(inputs, ", "), ")");
}

TEST(ParseEditedTest, AgreesWithParseOnRandomEdits) {
  int accepted = 0, refused = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed);
    const int count = 1 + static_cast<int>(random.Next() % 12);
    std::vector<std::string> lines;
    for (int i = 0; i < count; ++i) {
      lines.push_back(RandomLine(&random, absl::StrCat("n", i), count));
    }
    const std::string before = GraphBytes(absl::StrJoin(lines, "\n"));
    const auto original = ParseGraph(before);
    ASSERT_THAT(original, IsOk());
    // Some nodes are edited, removed, duplicated or moved; some are new.
    std::string after;
    for (int i = 0; i < count; ++i) {
      const std::string name = absl::StrCat("n", i);
      switch (random.Next() % 16) {
        case 0:
          after += GraphBytes(RandomLine(&random, name, count));
          break;
        case 1:
          after += GraphBytes(lines[i]) + GraphBytes(RandomLine(&random, "new", count));
          break;
        case 2:
          if (random.Next() % 4 == 0) break;
          [[fallthrough]];
        case 3:
          if (random.Next() % 4 == 0) after += GraphBytes(lines[i]);
          [[fallthrough]];
        default:
          after += GraphBytes(lines[i]);
      }
    }
    Graph::Edited how;
    const auto edited = ParseEdited(after, *original, &how);
    const auto parsed = ParseGraph(after);
    if (!edited.ok()) {
      ++refused;
      continue;
    }
    ++accepted;
    ASSERT_THAT(parsed, IsOk()) << seed;
    ExpectSame(*edited, *parsed);
    ASSERT_EQ(how.origins.size(), static_cast<size_t>(edited->num_nodes()));
    NodeId next(0);
    std::vector<NodeId> changed;
    for (NodeId id(0); id < edited->num_nodes(); ++id) {
      const NodeId origin = how.origins[id];
      if (origin == kNoNode || edited->node_bytes(id) != original->node_bytes(origin)) {
        changed.push_back(id);
      }
      if (origin == kNoNode) continue;
      EXPECT_EQ(origin, next);
      ++next;
      EXPECT_EQ(edited->name(id), original->name(origin));
    }
    EXPECT_EQ(how.changed, changed) << seed;
    EXPECT_EQ(next, original->num_nodes());
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 100);
}

TEST(ParseEditedTest, AgreesWithParseOnARewrite) {
  const std::string before = testing::ReadTestGraph("resnet50_tf1_b4/graph_shapes.pb");
  const auto response = Rewrite(before, v1::RewriteOptions(), DefaultLimits(), StopToken());
  ASSERT_THAT(response, IsOk());
  const auto original = ParseGraph(before);
  Graph::Edited how;
  const auto edited = ParseEdited(response->graph_def(), *original, &how);
  ASSERT_THAT(edited, IsOk());
  ExpectSame(*edited, *ParseGraph(response->graph_def()));
}

}  // namespace
}  // namespace spillway::core
