// The properties of properties.h over small graphs, all of them or an even sample, and over large
// random ones. On a failure the message names the case: the family and number, or the seed.
#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/property/properties.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/random.h"
#include "tests/testing/random_graph.h"
#include "tests/testing/small_dags.h"

namespace spillway::testing {
namespace {

constexpr int kMaxFailuresShown = 3;

// How many cases were swapped in: properties of rewrites say nothing if none is rewritten.
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
  uint64_t sample;       // About how many numbers to try by default; 0: all.
  uint64_t long_sample;  // With SPILLWAY_LONG_TESTS=1.
  double fair_share;     // Of the cases that run, how many must be rewritten.
};

// Numbers of cases on the left are after skipping those that spell no graph of their own:
//   all of 1..5 nodes, data edges alone         33,400 cases, about 8 s
//   all of 1..4 nodes, with control edges       11,900 cases, about 2 s
//   6 nodes, data edges alone                   2 million, a sample of 20,000
//   5 and 6 nodes with Switch and Merge         10^13 numbers, a sample
constexpr Family kFamilies[] = {
    {"Data1", {1, false, false}, 0, 0, 0},
    {"Data2", {2, false, false}, 0, 0, 0},
    {"Data3", {3, false, false}, 0, 0, 0.01},
    {"Data4", {4, false, false}, 0, 0, 0.05},
    {"Data5", {5, false, false}, 0, 0, 0.05},
    {"Data6", {6, false, false}, 20'000, 1'000'000, 0.05},
    {"Control3", {3, true, false}, 0, 0, 0.01},
    {"Control4", {4, true, false}, 0, 0, 0.02},
    {"Control6", {6, true, false}, 20'000, 500'000, 0.05},
    {"Branches4", {4, true, true}, 100'000, 0, 0.01},
    {"Branches5", {5, false, true}, 300'000, 10'000'000, 0.02},
    {"Branches6", {6, true, true}, 600'000, 20'000'000, 0.02},
};

class SmallGraphs : public ::testing::TestWithParam<Family> {};

TEST_P(SmallGraphs, KeepTheProperties) {
  const Family& family = GetParam();
  const uint64_t count = family.dags.count();
  const uint64_t sample = LongRunFactor(2) == 1 ? family.sample : family.long_sample;
  Tally tally;
  for (uint64_t i = 0; i < (sample == 0 ? count : std::min(sample, count)); ++i) {
    // A sample is drawn at random, but always the same.
    const uint64_t number = sample == 0 ? i : Random(i).Next() % count;
    const auto graph = family.dags.Make(number);
    if (!graph) continue;
    Random random(number);
    const v1::RewriteOptions options = RandomOptions(*graph, &random);
    const std::string input = WriteProto(*graph);
    const Verdict verdict = CheckRewrite(input, options, &random);
    if (verdict.refused && verdict.failure.empty()) continue;  // E.g. no backward part.
    tally.Add(verdict, absl::StrCat("small graph ", family.name, " number ", number), input,
              options);
  }
  RecordProperty("cases", tally.cases);
  RecordProperty("rewritten", tally.rewritten);
  std::cout << family.name << ": " << tally.cases << " cases, " << tally.rewritten
            << " rewritten\n";
  EXPECT_EQ(tally.failures, 0);
  EXPECT_GE(tally.rewritten, family.fair_share * tally.cases) << "of " << tally.cases;
}

INSTANTIATE_TEST_SUITE_P(All, SmallGraphs, ::testing::ValuesIn(kFamilies),
                         [](const auto& family) { return std::string(family.param.name); });

// ---- Random graphs ----

struct Kind {
  const char* name;
  RandomGraphOptions options;
  int seeds;
  double fair_share;
};

// About 20 s together, most of it in the naive executor.
constexpr Kind kKinds[] = {
    {"Plain", {20, false, false, true, true}, 700, 0.5},
    {"OneDevice", {40, false, false, false, false}, 300, 0.7},
    {"Conds", {20, true, false, true, true}, 1500, 0.5},
    {"CondsOnOneDevice", {30, true, false, false, false}, 700, 0.7},
    {"Loops", {20, false, true, true, true}, 500, 0.5},
    {"CondsAndLoops", {30, true, true, true, false}, 500, 0.6},
    {"Large", {300, true, false, true, false}, 20, 0.8},
};

class RandomGraphs : public ::testing::TestWithParam<Kind> {};

TEST_P(RandomGraphs, KeepTheProperties) {
  const Kind& kind = GetParam();
  Tally tally;
  for (int i = 0; i < kind.seeds * LongRunFactor(20); ++i) {
    const uint64_t seed = static_cast<uint64_t>(i);
    const GraphDef graph = MakeRandomGraph(seed, kind.options);
    ASSERT_TRUE(IsAcyclic(graph)) << "the generator is wrong at seed " << seed;
    Random random(seed ^ 0x5eed);
    const v1::RewriteOptions options = RandomOptions(graph, &random);
    const std::string input =
        random.OneIn(3) ? RoughenBytes(graph, &random) : WriteProto(graph);
    tally.Add(CheckRewrite(input, options, &random),
              absl::StrCat("random graph ", kind.name, " seed ", seed), input, options);
  }
  std::cout << kind.name << ": " << tally.cases << " cases, " << tally.rewritten
            << " rewritten\n";
  EXPECT_EQ(tally.failures, 0);
  EXPECT_GE(tally.rewritten, kind.fair_share * tally.cases) << "of " << tally.cases;
}

INSTANTIATE_TEST_SUITE_P(All, RandomGraphs, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace spillway::testing
