#include "rewrite_core/strategy/scope/seed_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"
#include "tests/testing/recorded_v1.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TestGraph;

// The backward part: ops with one of these prefixes.
NodeFlags Backward(const Graph& graph, const std::vector<std::string>& scopes) {
  NodeFlags flags(graph.num_nodes(), false);
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    for (const std::string& scope : scopes) {
      flags[id] = flags[id] || absl::StartsWith(graph.name(id), scope);
    }
  }
  return flags;
}

absl::StatusOr<std::vector<NodeId>> Find(const Graph& graph, const NodeFlags& backward,
                                         int64_t max_steps = int64_t{1} << 40) {
  const Topology topology = testing::ValueOrDie(Topology::Build(graph, StopToken()), "topology");
  const StopToken stop;
  SearchBudget budget(max_steps, stop);
  return FindSeeds(graph, topology, backward, &budget);
}

std::vector<std::string> Names(const Graph& graph, const std::vector<NodeId>& ids) {
  std::vector<std::string> names;
  for (NodeId id : ids) names.emplace_back(graph.name(id));
  return names;
}

std::vector<std::string> SeedsOf(const std::string& text) {
  const TestGraph graph(text);
  return Names(*graph, testing::ValueOrDie(Find(*graph, Backward(*graph, {"G/"})), "seeds"));
}

// The specification, word for word: candidates, a walk from each, the maximum.
std::vector<NodeId> NaiveSeeds(const Graph& graph, const NodeFlags& backward) {
  std::vector<NodeId> candidates;
  NodeFlags is_candidate(graph.num_nodes(), false);
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    for (Tensor input : graph.inputs(id)) {
      if (backward[id] && !input.is_control() && !backward[input.node]) {
        is_candidate[input.node] = true;
      }
    }
  }
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (is_candidate[id]) candidates.push_back(id);
  }
  std::vector<int> counts;
  for (NodeId c : candidates) {
    NodeFlags seen(graph.num_nodes(), false);
    std::vector<NodeId> stack = {c};
    seen[c] = true;
    int count = 0;
    while (!stack.empty()) {
      const NodeId at = stack.back();
      stack.pop_back();
      count += at != c && is_candidate[at];
      const Graph::Readers readers = graph.readers(at);
      for (uint32_t i = 0; i < readers.size(); ++i) {
        const NodeId next = readers[i].node;
        if (readers[i].port == kControl || backward[next] || seen[next]) continue;
        seen[next] = true;
        stack.push_back(next);
      }
    }
    counts.push_back(count);
  }
  const int best = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  std::vector<NodeId> seeds;
  for (size_t i = 0; i < candidates.size() && best > 0; ++i) {
    if (counts[i] == best) seeds.push_back(candidates[i]);
  }
  return seeds;
}

TEST(SeedSearchTest, TheSeedReachesTheMostOthersThatFeedTheBackwardPart) {
  // Candidates a, b, c: a reaches two others. `x` reaches all three but feeds no backward op.
  EXPECT_THAT(SeedsOf(R"(
      x = Const()
      a = Relu(x)
      b = Relu(a)
      c = Relu(b)
      G/a = Relu(a)
      G/b = Relu(b)
      G/c = Relu(c)
  )"),
              ElementsAre("a"));
}

TEST(SeedSearchTest, ControlEdgesDoNotCount) {
  // If control edges counted, a would be a candidate, or reach b.
  EXPECT_THAT(SeedsOf(R"(
      a = Const()
      b = Relu(a)
      c = Relu(b)
      G/g = AddV2(b, c, ^a)
  )"),
              ElementsAre("b"));
}

TEST(SeedSearchTest, FindsNoneWhereNothingReachesAnother) {
  EXPECT_THAT(SeedsOf("a = Const()\nb = Const()\nG/g = Relu(G/h)\nG/h = Const()"), IsEmpty());
  EXPECT_THAT(SeedsOf("a = Const()\nb = Const()\nG/g = AddV2(a, b)"), IsEmpty());
  EXPECT_THAT(SeedsOf("G/a = Const()\nG/b = Relu(G/a)"), IsEmpty());
}

TEST(SeedSearchTest, ASearchTooLongSaysWhatToDo) {
  const TestGraph graph("a = Const()\nb = Relu(a)\nG/g = AddV2(a, b)");
  const auto seeds = Find(*graph, Backward(*graph, {"G/"}), 3);
  EXPECT_THAT(seeds, testing::FailsWith(absl::StatusCode::kResourceExhausted,
                                        v1::ERROR_REASON_SEARCH_TOO_LONG, "starting_op_names"));
  EXPECT_EQ(testing::ErrorDetailOf(seeds, "limit"), "max_search_steps");
  EXPECT_EQ(testing::ErrorDetailOf(seeds, "value"), "3");
  EXPECT_THAT(Find(*graph, Backward(*graph, {"G/"}), 100), testing::IsOk());
}

// Random graphs; file order is not topological order. `loops` adds NextIteration -> Merge cycles.
std::string RandomText(uint32_t seed, bool loops) {
  std::mt19937 random(seed);
  const int n = 5 + random() % 40;
  std::vector<std::string> lines;
  const auto name = [&](int i) { return absl::StrCat(i % 3 == 0 ? "G/n" : "n", i); };
  for (int i = 0; i < n; ++i) {
    std::string inputs;
    const int count = i == 0 ? 0 : random() % 4;
    for (int k = 0; k < count; ++k) {
      absl::StrAppend(&inputs, k > 0 ? ", " : "", name(i - 1 - random() % std::min(i, 10)));
    }
    std::string op = "MyOp";
    if (loops && count > 0 && random() % 4 == 0) {
      // A Merge fed by a NextIteration of a later node.
      absl::StrAppend(&inputs, ", next", i);
      op = "Merge";
      const int later = i + random() % (n - i);
      lines.push_back(absl::StrCat("next", i, " = NextIteration(", name(later), ")"));
    }
    lines.push_back(absl::StrCat(name(i), " = ", op, "(", inputs, ")"));
  }
  std::shuffle(lines.begin(), lines.end(), random);
  std::string text;
  for (const std::string& line : lines) absl::StrAppend(&text, line, "\n");
  return text;
}

TEST(SeedSearchTest, AgreesWithTheSpecificationOnRandomGraphs) {
  int found = 0;
  for (uint32_t seed = 1; seed <= 1'000; ++seed) {
    const std::string text = RandomText(seed, seed % 2 == 0);
    const TestGraph graph(text);
    const NodeFlags backward = Backward(*graph, {"G/"});
    const std::vector<NodeId> expected = NaiveSeeds(*graph, backward);
    const auto seeds = Find(*graph, backward);
    found += !expected.empty();
    ASSERT_THAT(seeds, testing::IsOk()) << text;
    ASSERT_EQ(Names(*graph, *seeds), Names(*graph, expected)) << text;
  }
  EXPECT_GT(found, 700);
}

class RealSeedsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RealSeedsTest, AgreeWithTheSpecificationAndWithTheRecord) {
  const TestGraph graph =
      TestGraph::FromBytes(testing::ReadTestGraph(absl::StrCat(GetParam(), "/graph.pb")));
  const NodeFlags backward = Backward(*graph, testing::OptimizerScopes(GetParam()));
  const auto seeds = Find(*graph, backward);
  ASSERT_THAT(seeds, testing::IsOk());
  EXPECT_EQ(Names(*graph, *seeds), Names(*graph, NaiveSeeds(*graph, backward)));
  EXPECT_THAT(Names(*graph, *seeds),
              ::testing::UnorderedElementsAreArray(testing::ReadV1Orders(GetParam()).seeds));
}

INSTANTIATE_TEST_SUITE_P(SeedSearch, RealSeedsTest,
                         ::testing::ValuesIn(testing::GraphsWithV1Orders()),
                         [](const auto& graph) { return graph.param; });

}  // namespace
}  // namespace spillway::core
