#include "rewrite_core/strategy/level/level_triggers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rewrite_core/analysis/machine/device_name.h"
#include "tests/rewrite_core/strategy/level/naive_level_triggers.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/random_graph.h"

namespace spillway::core {
namespace {

using testing::TestFacts;
using testing::TestGraph;

// A graph with all the data that a search for triggers needs.
struct Searched {
  explicit Searched(TestGraph graph)
      : f(std::move(graph)),
        filters(testing::ValueOrDie(LevelFilters::Create(f.facts, {}, StopToken()), "filters")),
        levels(testing::ValueOrDie(LevelOrder::Build(*f.graph, f.facts.topology(),
                                                     f.facts.control_flow(), {}, StopToken()),
                                   "levels")) {}
  explicit Searched(const std::string& text) : Searched(TestGraph(text)) {}

  // For a swap-in of an output of `producer` for these consumers, the earliest first.
  std::string Find(const std::string& producer, const std::vector<std::string>& consumers,
                   int32_t ahead) const {
    const StopToken stop;
    SearchBudget budget(1'000'000, stop);
    LevelTriggers triggers(f.facts, filters, levels, &budget);
    std::vector<LateReader> group;
    for (const std::string& name : consumers) {
      group.push_back({{f.graph[name], 0}, levels.level(f.graph[name])});
    }
    const NodeId found = triggers.Find(levels.level(f.graph[producer]), group, ahead);
    return found == kNoNode ? "(none)" : std::string(f.graph->name(found));
  }

  // For NaiveLevelTriggers.
  testing::RecordedLevelsV2 Record() const {
    testing::RecordedLevelsV2 record;
    record.levels.resize(levels.num_levels());
    for (NodeId id(0); id < f.graph->num_nodes(); ++id) {
      const std::string name(f.graph->name(id));
      if (levels.level(id) != kNoLevel) record.levels[levels.level(id)].push_back(name);
      if (filters.is_inactive(id)) record.inactive.push_back(name);
    }
    return record;
  }

  TestFacts f;
  LevelFilters filters;
  LevelOrder levels;
};

TEST(LevelTriggersTest, TheLowestIdOfTheHighestLevel) {
  const Searched s(R"(
      x = Placeholder()
      c = Relu(x)
      b = Relu(x)
      b2 = AddN(b, c)
      a2 = AddN(c, b)
      d = AddN(b2, a2)
      e = Relu(d)
      aside = Relu(a2)
      f = AddN(e, x)
  )");
  // Levels: b, c 1; b2, a2 2; d, aside 3; e 4; f 5.
  EXPECT_EQ(s.Find("x", {"f"}, 1), "d");  // `aside` does not lead to f.
  EXPECT_EQ(s.Find("x", {"f"}, 2), "b2");
  EXPECT_EQ(s.Find("x", {"f"}, 3), "c");
  EXPECT_EQ(s.Find("x", {"f"}, 4), "(none)");  // It is above the producer.
  EXPECT_EQ(s.Find("b", {"f"}, 3), "(none)");
  EXPECT_EQ(s.Find("b", {"f"}, 2), "b2");
}

// Random graphs of all kinds, with conditionals and loops: the expected trigger is from the first
// round of v2's specification in which some op may trigger all consumers, the one with the lowest
// id.
TEST(LevelTriggersTest, AgreesWithTheSpecificationOnRandomGraphs) {
  int found = 0, asked = 0, grouped = 0;
  for (uint64_t seed = 1; seed <= 250; ++seed) {
    testing::RandomGraphOptions options;
    options.forward_ops = 5 + static_cast<int>(seed % 40);
    options.conds = seed % 2 == 0;
    options.loops = seed % 5 == 0;
    const Searched s(
        TestGraph::FromBytes(testing::WriteProto(testing::MakeRandomGraph(seed, options))));
    const Graph& graph = *s.f.graph;
    const NaiveLevelTriggers naive(s.f.graph, s.Record(), /*per_device=*/false);
    const NodeFlags& needed = s.f.facts.active_nodes().needed;
    const StopToken stop;
    SearchBudget budget(100'000'000, stop);
    LevelTriggers triggers(s.f.facts, s.filters, s.levels, &budget);
    testing::Random random(seed);
    for (int i = 0; i < 60; ++i) {
      const NodeId producer(random.Below(graph.num_nodes()));
      std::vector<LateReader> group;
      for (int k = random.OneIn(2) ? 1 : random.Between(2, 4); k > 0; --k) {
        const NodeId consumer(random.Below(graph.num_nodes()));
        if (s.levels.level(consumer) > s.levels.level(producer)) {
          group.push_back({{consumer, 0}, s.levels.level(consumer)});
        }
      }
      if (group.empty() || s.levels.level(producer) == kNoLevel) continue;
      std::stable_sort(group.begin(), group.end(),
                       [](const LateReader& a, const LateReader& b) { return a.level < b.level; });
      const int32_t ahead = random.Between(1, 12);
      NodeId expected = kNoNode;
      for (const auto& round : naive.Rounds(producer, group[0].position.node, ahead)) {
        for (NodeId id : round) {
          const bool serves_all =
              std::all_of(group.begin(), group.end(), [&](const LateReader& reader) {
                const NodeId to = reader.position.node;
                const absl::string_view here = graph.device(id), there = graph.device(to);
                return (here.empty() || there.empty() || NamesDevice(here, there)) &&
                       s.f.facts.topology().level(id) < s.f.facts.topology().level(to) &&
                       s.f.facts.control_flow().MayControl(id, to) && (needed[id] || !needed[to]);
              });
          if (serves_all && expected == kNoNode) expected = id;
        }
        if (expected != kNoNode) break;
      }
      ++asked;
      found += expected != kNoNode;
      grouped += expected != kNoNode && group.size() > 1;
      ASSERT_EQ(triggers.Find(s.levels.level(producer), group, ahead), expected)
          << "seed " << seed << ": " << graph.name(producer) << " -> "
          << graph.name(group[0].position.node) << " ahead " << ahead;
    }
  }
  EXPECT_GT(asked, 5'000);
  EXPECT_GT(found, 1'000);
  EXPECT_GT(grouped, 200);
}

TEST(LevelTriggersTest, SpentStepsEndTheSearch) {
  const Searched s("x = Placeholder()\na = Relu(x)\nb = Relu(a)\nc = Relu(b)\nd = Relu(c)");
  const StopToken stop;
  SearchBudget budget(6, stop);
  LevelTriggers triggers(s.f.facts, s.filters, s.levels, &budget);
  const std::vector<LateReader> group = {{{s.f.graph["d"], 0}, 4}};
  triggers.Find(0, group, 1);
  EXPECT_TRUE(budget.is_over());
}

}  // namespace
}  // namespace spillway::core
