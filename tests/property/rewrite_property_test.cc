// The properties of properties.h over small graphs, all of them or an even sample, and over large
// random ones. On a failure the message names the case: the family and number, or the seed.
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iostream>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "rewrite_core/rewriter.h"
#include "tests/property/properties.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/random.h"
#include "tests/testing/random_graph.h"
#include "tests/testing/sanitizers.h"
#include "tests/testing/small_dags.h"

namespace spillway::testing {
namespace {

constexpr int kMaxFailuresShown = 3;

// How many cases have swaps: properties of rewrites say nothing if none is rewritten.
struct Tally {
  int cases = 0;
  int rewritten = 0;
  int failures = 0;

  void Add(const Verdict& verdict, const std::string& what, const std::string& input,
           const v1::RewriteOptions& options) {
    ++cases;
    rewritten += verdict.swaps > 0;
    if (verdict.failure.empty()) return;
    if (++failures <= kMaxFailuresShown) {
      ADD_FAILURE() << DescribeCase(what, verdict.failure, input, options);
    }
  }
};

// ---- Small graphs ----

struct Family {
  const char* name;
  SmallDags dags;
  uint64_t sample;          // About how many numbers to try by default; 0: all.
  uint64_t long_sample;     // With SPILLWAY_LONG_TESTS=1.
  double fair_share;        // Of the cases that run, how many must be rewritten.
  double level_fair_share;  // With the strategy `level`.
};

// How many numbers each has: Data5 2^15, Data6 2^21, Control4 11,664, Control6 9 * 10^8, Branches4
// 2.6 million, Branches5 2 * 10^8, Branches6 2 * 10^13. Two of three have a backward part and a
// start and so can be rewritten. About 15 s together on one core; ten minutes when long.
// A rewrite takes a producer, two ops behind it and a backward consumer that is consumed: so few
// graphs of 4 nodes have one, and none of fewer.
constexpr Family kFamilies[] = {
    {"Data2", {2, false, false}, 0, 0, 0, 0},
    {"Data3", {3, false, false}, 0, 0, 0, 0},
    {"Data4", {4, false, false}, 0, 0, 0.03, 0.03},
    {"Data5", {5, false, false}, 0, 0, 0.08, 0.05},
    {"Data6", {6, false, false}, 20'000, 1'000'000, 0.15, 0.1},
    {"Control3", {3, true, false}, 0, 0, 0, 0},
    {"Control4", {4, true, false}, 0, 0, 0.008, 0.01},
    {"Control6", {6, true, false}, 15'000, 500'000, 0.05, 0.1},
    {"Branches4", {4, true, true}, 10'000, 0, 0.005, 0.02},
    {"Branches5", {5, false, true}, 15'000, 1'000'000, 0.05, 0.05},
    {"Branches6", {6, true, true}, 20'000, 2'000'000, 0.03, 0.1},
};

// With the strategy `level`, of each family: tuning simulates many settings.
constexpr uint64_t kLevelSample = 4'000;
constexpr uint64_t kLongLevelSample = 200'000;
// With the strategy `budget`: in so few nodes hardly anything can be away.
constexpr uint64_t kBudgetSample = 1'000;
constexpr int kFairSample = 50;
// Of each family with each strategy, under the address sanitizer.
constexpr uint64_t kSanitizedSample = 1'000;

void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }

class SmallGraphs : public ::testing::TestWithParam<Family> {};

using MakeOptions = v1::RewriteOptions (*)(const GraphDef&, Random*);

// Fed tensors have two dimensions: `level` swaps no others.
void GiveShapes(GraphDef* graph) {
  for (NodeDef& node : *graph->mutable_node()) {
    if (node.op() != "Placeholder" || node.device().empty()) continue;  // A predicate has none.
    TensorShapeProto* shape = (*node.mutable_attr())["shape"].mutable_shape();
    for (int i = 0; i < 2; ++i) shape->add_dim()->set_size(4);
  }
}

void KeepTheProperties(const Family& family, bool shaped, uint64_t sample,
                       const MakeOptions& make_options, double fair_share) {
  const uint64_t count = family.dags.count();
  if (kAddressSanitizer && (sample == 0 ? count : sample) > kSanitizedSample) {
    sample = kSanitizedSample;
  }
  Tally tally;
  for (uint64_t i = 0; i < (sample == 0 ? count : std::min(sample, count)); ++i) {
    // A sample is drawn at random, but always the same.
    const uint64_t number = sample == 0 ? i : Random(i).Next() % count;
    GraphDef graph = family.dags.Make(number);
    if (shaped) GiveShapes(&graph);
    Random random(number);
    const v1::RewriteOptions options = make_options(graph, &random);
    const std::string input = WriteProto(graph);
    const Verdict verdict = CheckRewrite(input, options, &random);
    if (verdict.refused && verdict.failure.empty()) continue;  // E.g. no backward part.
    tally.Add(verdict, absl::StrCat("small graph ", family.name, " number ", number), input,
              options);
  }
  ::testing::Test::RecordProperty("cases", tally.cases);
  ::testing::Test::RecordProperty("rewritten", tally.rewritten);
  std::cout << family.name << ": " << tally.cases << " cases, " << tally.rewritten
            << " rewritten\n";
  EXPECT_EQ(tally.failures, 0);
  EXPECT_GE(tally.rewritten, fair_share * tally.cases) << "of " << tally.cases;
}

TEST_P(SmallGraphs, KeepTheProperties) {
  const Family& family = GetParam();
  KeepTheProperties(family, false, LongRunFactor(2) == 1 ? family.sample : family.long_sample,
                    RandomOptions, family.fair_share);
}

TEST_P(SmallGraphs, KeepThePropertiesByLevel) {
  const Family& family = GetParam();
  const uint64_t sample = LongRunFactor(2) == 1 ? kLevelSample : kLongLevelSample;
  KeepTheProperties(family, true, sample, RandomLevelOptions, family.level_fair_share);
}

TEST_P(SmallGraphs, KeepThePropertiesByPacedLevel) {
  const Family& family = GetParam();
  const uint64_t sample = LongRunFactor(2) == 1 ? kBudgetSample : kLongLevelSample;
  KeepTheProperties(family, true, sample, RandomPacedLevelOptions, family.level_fair_share / 4);
}

TEST_P(SmallGraphs, KeepThePropertiesByBudget) {
  const Family& family = GetParam();
  const uint64_t sample = LongRunFactor(2) == 1 ? kBudgetSample : kLongLevelSample;
  // Of four nodes, one of them on a side that does not run, hardly any plan is left.
  const bool is_tiny = absl::string_view(family.name) == "Branches4";
  KeepTheProperties(family, true, sample, RandomBudgetOptions,
                    is_tiny ? 0 : family.level_fair_share / 10);
}

INSTANTIATE_TEST_SUITE_P(All, SmallGraphs, ::testing::ValuesIn(kFamilies),
                         [](const auto& family) { return std::string(family.param.name); });

// ---- Random graphs ----

struct Kind {
  const char* name;
  RandomGraphOptions options;
  int seeds;
  double fair_share;
  double level_fair_share;   // With the strategy `level`.
  double budget_fair_share;  // With the strategy `budget`: most are refused, or fit unchanged.
};

// Half a minute together on one core, most of it in the naive executor; ten minutes when long.
constexpr Kind kKinds[] = {
    {"Plain", {20, false, false, true, true}, 350, 0.6, 0.3, 0.02},
    {"OneDevice", {40, false, false, false, false}, 150, 0.8, 0.5, 0.05},
    {"Conds", {20, true, false, true, true}, 450, 0.6, 0.4, 0.02},
    {"CondsOnOneDevice", {30, true, false, false, false}, 200, 0.8, 0.5, 0.05},
    {"Loops", {20, false, true, true, true}, 250, 0.3, 0.1, 0.02},
    {"CondsAndLoops", {30, true, true, true, false}, 150, 0.6, 0.4, 0.03},
    {"Large", {300, true, false, true, false}, 20, 0.8, 0.6, 0.05},
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class RandomGraphs : public ::testing::TestWithParam<Kind> {};

void KeepTheProperties(const Kind& kind, int seeds, const MakeOptions& make_options,
                       double fair_share) {
  Tally tally;
  if (kAddressSanitizer) seeds = std::max(std::min(seeds, 20), seeds / 8);
  for (int i = 0; i < seeds * LongRunFactor(20); ++i) {
    const uint64_t seed = static_cast<uint64_t>(i);
    const GraphDef graph = MakeRandomGraph(seed, kind.options);
    ASSERT_TRUE(IsAcyclic(graph)) << "the generator is wrong at seed " << seed;
    Random random(seed ^ 0x5eed);
    const v1::RewriteOptions options = make_options(graph, &random);
    const std::string input = random.OneIn(3) ? RoughenBytes(graph, &random) : WriteProto(graph);
    tally.Add(CheckRewrite(input, options, &random),
              absl::StrCat("random graph ", kind.name, " seed ", seed), input, options);
  }
  std::cout << kind.name << ": " << tally.cases << " cases, " << tally.rewritten << " rewritten\n";
  EXPECT_EQ(tally.failures, 0);
  // The few cases of a run under the sanitizer say nothing about shares of some per cent.
  if (tally.cases < kFairSample) return;
  EXPECT_GE(tally.rewritten, fair_share * tally.cases) << "of " << tally.cases;
}

TEST_P(RandomGraphs, KeepTheProperties) {
  KeepTheProperties(GetParam(), GetParam().seeds, RandomOptions, GetParam().fair_share);
}

TEST_P(RandomGraphs, KeepThePropertiesByLevel) {
  KeepTheProperties(GetParam(), GetParam().seeds / 2, RandomLevelOptions,
                    GetParam().level_fair_share);
}

TEST_P(RandomGraphs, KeepThePropertiesByPacedLevel) {
  KeepTheProperties(GetParam(), GetParam().seeds / 2, RandomPacedLevelOptions,
                    GetParam().level_fair_share / 2);
}

TEST_P(RandomGraphs, KeepThePropertiesByBudget) {
  KeepTheProperties(GetParam(), GetParam().seeds / 2, RandomBudgetOptions,
                    GetParam().budget_fair_share);
}

INSTANTIATE_TEST_SUITE_P(All, RandomGraphs, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(kind.param.name); });

// ---- Fed in the middle ----

// The ancestors of a fed node do not run, but are in the graph: an edge that follows the order in
// which the step runs may close a cycle through them, which the verifier would find (INTERNAL).
TEST(FedInTheMiddleTest, ClosesNoCycle) {
  int rewritten[2] = {0, 0};  // By strategy.
  const int graphs = kAddressSanitizer ? 500 : 1'000 * LongRunFactor(20);
  for (int i = 0; i < graphs && !::testing::Test::HasFailure(); ++i) {
    const uint64_t seed = static_cast<uint64_t>(i);
    RandomGraphOptions kind;
    kind.devices = false;
    kind.forward_ops = 40;
    const GraphDef graph = MakeRandomGraph(seed, kind);
    Random random(seed);
    const bool is_level = i % 2 == 0;
    v1::RewriteOptions options =
        is_level ? RandomPacedLevelOptions(graph, &random) : RandomBudgetOptions(graph, &random);
    options.mutable_step()->clear_feeds();
    for (const NodeDef& node : graph.node()) {
      const auto shapes = node.attr().find("_output_shapes");
      if (node.input_size() == 0 || shapes == node.attr().end() || !random.OneIn(20)) continue;
      if (shapes->second.list().shape_size() != 1) continue;
      v1::Feed* feed = options.mutable_step()->add_feeds();
      feed->set_name(node.name());
      for (const auto& dim : shapes->second.list().shape(0).dim()) {
        feed->add_dims(dim.size() < 0 ? 8 : dim.size());
      }
    }
    const std::string input = WriteProto(graph);
    const auto answer = core::Rewrite(input, options, core::DefaultLimits(), core::StopToken());
    EXPECT_FALSE(absl::IsInternal(answer.status()))
        << answer.status() << DescribeCase(absl::StrCat("fed, seed ", seed), "", input, options);
    rewritten[is_level] += answer.ok() && answer->report().outcome() == v1::OUTCOME_REWRITTEN;
  }
  std::cout << rewritten[1] << " rewritten by level, " << rewritten[0] << " by budget\n";
  EXPECT_GT(rewritten[1], 50);
  EXPECT_GT(rewritten[0], 20);
}

// ---- One device after another ----

// Swaps and their readers, independent of node names: `tensor -> consumer[index]`.
std::set<std::string> Swaps(const v1::RewriteReport& report) {
  std::set<std::string> swaps;
  for (const v1::TensorSwap& swap : report.swaps()) {
    for (const v1::SwapIn& swap_in : swap.swap_ins()) {
      for (const v1::InputRef& consumer : swap_in.consumers()) {
        swaps.insert(absl::StrCat(swap.tensor(), " after ", absl::StrJoin(swap_in.triggers(), " "),
                                  " -> ", consumer.node(), "[", consumer.input_index(), "]"));
      }
    }
    for (const std::string& node : swap.deadline_nodes()) {
      swaps.insert(absl::StrCat(node, " waits until ", swap.tensor(), " is out"));
    }
  }
  return swaps;
}

void GiveTheSwapsOfAllAtOnce(const MakeOptions& make_options, int fair_share) {
  int in_two_steps = 0;
  for (int i = 0; i < 300 * LongRunFactor(20); ++i) {
    const uint64_t seed = static_cast<uint64_t>(i);
    RandomGraphOptions kind;
    kind.conds = seed % 3 == 0;
    kind.loops = seed % 5 == 0;
    const GraphDef graph = MakeRandomGraph(seed, kind);
    Random random(seed);
    const std::string input = random.OneIn(2) ? RoughenBytes(graph, &random) : WriteProto(graph);
    const v1::RewriteOptions options = make_options(graph, &random);
    const auto rewrite = [](const std::string& bytes, const v1::RewriteOptions& how) {
      return core::Rewrite(bytes, how, core::DefaultLimits(), core::StopToken());
    };
    const auto on = [&options](std::initializer_list<const char*> devices) {
      v1::RewriteOptions some = options;
      some.clear_devices();
      for (const char* device : devices) some.add_devices(device);
      return some;
    };
    const auto all = rewrite(input, on({"/device:GPU:0", "/device:GPU:1"}));
    const auto first = rewrite(input, on({"/device:GPU:1"}));
    if (!all.ok() || !first.ok()) continue;  // No start found, or a device has no node.
    const auto second = rewrite(first->graph_def(), on({"/device:GPU:0"}));
    const std::string what =
        DescribeCase(absl::StrCat("device after device, seed ", seed), "", input, options);
    ASSERT_TRUE(second.ok()) << second.status() << what;
    std::set<std::string> both = Swaps(first->report());
    const std::set<std::string> more = Swaps(second->report());
    in_two_steps += !both.empty() && !more.empty();
    both.insert(more.begin(), more.end());
    EXPECT_EQ(both, Swaps(all->report())) << what;
    EXPECT_TRUE(IsAcyclic(ReadProto(second->graph_def()))) << what;
    v1::RewriteOptions strip;
    strip.mutable_strip();
    const auto stripped = rewrite(second->graph_def(), strip);
    ASSERT_TRUE(stripped.ok()) << stripped.status() << what;
    EXPECT_EQ(stripped->graph_def(), input) << what;
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GE(in_two_steps, fair_share);
}

TEST(DeviceAfterDevice, GivesTheSwapsOfAllAtOnce) {
  const auto make_options = [](const GraphDef& graph, Random* random) {
    v1::RewriteOptions options = RandomOptions(graph, random);
    options.mutable_scope()->clear_n_tensors();  // Counts per call.
    return options;
  };
  GiveTheSwapsOfAllAtOnce(make_options, 50);
}

TEST(DeviceAfterDevice, GivesTheSwapsOfAllAtOnceByLevel) {
  const auto make_options = [](const GraphDef& graph, Random* random) {
    v1::RewriteOptions options = RandomLevelOptions(graph, random);
    // Those change the levels for other devices.
    options.mutable_level()->clear_serialization();
    options.mutable_level()->clear_serialization_by_size();
    return options;
  };
  GiveTheSwapsOfAllAtOnce(make_options, 30);
}

}  // namespace
}  // namespace spillway::testing
