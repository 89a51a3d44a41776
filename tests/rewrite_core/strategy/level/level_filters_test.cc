#include "rewrite_core/strategy/level/level_filters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using testing::ErrorDetailOf;
using testing::IsInvalid;
using testing::IsOk;
using testing::TestFacts;

// Five ops on a GPU that may be producers and consumers, and nodes that never are.
constexpr char kFilteredNet[] = R"(
    x = Placeholder() {dtype=float32}
    A/relu = Relu(x) {T=float32}
    A/tanh = Tanh(A/relu) {T=float32}
    B/relu = Relu(A/tanh) {T=float32}
    B/tanh = Tanh(B/relu) {T=float32}
    C/sum = AddV2(A/relu, B/tanh) {T=float32}
    A/cpu = Relu(x) @/device:CPU:0 {T=float32}
    A/v = VariableV2() {dtype=float32}
    A/read = Identity(A/v) {T=float32}
    C/norm = FusedBatchNorm(x, x, x, x, x) {T=float32, is_training=false}
    while/body = Relu(x) {T=float32}
)";

absl::StatusOr<LevelFilters> Create(const TestFacts& f, const std::string& text) {
  v1::LevelStrategy options;
  if (!google::protobuf::TextFormat::ParseFromString(text, &options)) std::abort();
  if (absl::Status s = CheckLevelFilters(options); !s.ok()) return s;
  return LevelFilters::Create(f.facts, options, StopToken());
}

std::vector<std::string> Producers(const std::string& options) {
  const TestFacts f(kFilteredNet);
  const LevelFilters filters = testing::ValueOrDie(Create(f, options), options);
  std::vector<std::string> names;
  for (NodeId id(0); id < f.graph->num_nodes(); ++id) {
    if (filters.producer(id) == v1::REASON_SWAPPED) names.emplace_back(f.graph->name(id));
  }
  return names;
}

std::vector<std::string> Consumers(const std::string& options) {
  const TestFacts f(kFilteredNet);
  const LevelFilters filters = testing::ValueOrDie(Create(f, options), options);
  std::vector<std::string> names;
  for (NodeId id(0); id < f.graph->num_nodes(); ++id) {
    if (filters.MayConsume(id)) names.emplace_back(f.graph->name(id));
  }
  return names;
}

std::string ReasonOf(const std::string& node, const std::string& options) {
  const TestFacts f(kFilteredNet);
  const LevelFilters filters = testing::ValueOrDie(Create(f, options), options);
  return v1::Reason_Name(filters.producer(f.graph.Node(node)));
}

absl::Status ErrorOf(const std::string& options) {
  return Create(TestFacts(kFilteredNet), options).status();
}

TEST(LevelFiltersTest, WithoutFiltersAllButTheBuiltInTheCpuAndTheInactive) {
  const auto all = ElementsAre("A/relu", "A/tanh", "B/relu", "B/tanh", "C/sum");
  EXPECT_THAT(Producers(""), all);
  EXPECT_THAT(Consumers(""), all);
  EXPECT_EQ(ReasonOf("A/relu", ""), "REASON_SWAPPED");
  EXPECT_EQ(ReasonOf("A/cpu", ""), "REASON_CPU_PRODUCER");
  EXPECT_EQ(ReasonOf("x", ""), "REASON_EXCLUDED");
  EXPECT_EQ(ReasonOf("A/v", ""), "REASON_EXCLUDED");
  EXPECT_EQ(ReasonOf("A/read", ""), "REASON_EXCLUDED");
  EXPECT_EQ(ReasonOf("C/norm", ""), "REASON_INACTIVE");
  EXPECT_EQ(ReasonOf("while/body", ""), "REASON_INACTIVE");
}

TEST(LevelFiltersTest, TheModeDecidesWhatIsInactive) {
  EXPECT_THAT(Producers("is_training: false"),
              ElementsAre("A/relu", "A/tanh", "B/relu", "B/tanh", "C/sum", "C/norm"));
}

TEST(LevelFiltersTest, EachLeavesWhatItSaysOnItsSideAlone) {
  struct Case {
    std::string filter, values;
    std::vector<std::string> left;
  };
  for (const Case& c :
       std::vector<Case>{{"excl_output_by_scopes", "'A/'", {"B/relu", "B/tanh", "C/sum"}},
                         {"excl_output_by_scopes", "['A/', 'B/t']", {"B/relu", "C/sum"}},
                         {"incl_output_by_scopes", "['A/', 'C']", {"A/relu", "A/tanh", "C/sum"}},
                         {"excl_output_by_types", "['Relu', 'AddV2']", {"A/tanh", "B/tanh"}},
                         {"incl_output_by_types", "'Tanh'", {"A/tanh", "B/tanh"}},
                         {"excl_input_by_scopes", "['A/', 'B/t']", {"B/relu", "C/sum"}},
                         {"incl_input_by_scopes", "['A/', 'C']", {"A/relu", "A/tanh", "C/sum"}},
                         {"excl_input_by_types", "['Relu', 'AddV2']", {"A/tanh", "B/tanh"}},
                         {"incl_input_by_types", "'Tanh'", {"A/tanh", "B/tanh"}}}) {
    const std::string options = c.filter + ": " + c.values;
    const bool is_output = c.filter.find("output") != std::string::npos;
    EXPECT_EQ(is_output ? Producers(options) : Consumers(options), c.left) << options;
    EXPECT_EQ(is_output ? Consumers(options) : Producers(options), Consumers("")) << options;
  }
}

TEST(LevelFiltersTest, SayWhyAnOutputIsLeftOut) {
  EXPECT_EQ(ReasonOf("A/tanh", "excl_output_by_scopes: 'A/'"), "REASON_EXCLUDED");
  EXPECT_EQ(ReasonOf("B/relu", "incl_output_by_scopes: 'A/'"), "REASON_NOT_INCLUDED");
  EXPECT_EQ(ReasonOf("C/sum", "excl_output_by_types: 'AddV2'"), "REASON_EXCLUDED");
  EXPECT_EQ(ReasonOf("C/sum", "incl_output_by_types: 'Tanh'"), "REASON_NOT_INCLUDED");
}

TEST(LevelFiltersTest, ScopesAndTypesAreOneList) {
  EXPECT_THAT(Producers("incl_output_by_scopes: 'A/' incl_output_by_types: 'Relu'"),
              ElementsAre("A/relu", "A/tanh", "B/relu"));
  EXPECT_THAT(Producers("excl_output_by_scopes: 'A/' excl_output_by_types: 'Relu'"),
              ElementsAre("B/tanh", "C/sum"));
  EXPECT_THAT(Consumers("incl_input_by_scopes: 'A/' incl_input_by_types: 'Relu'"),
              ElementsAre("A/relu", "A/tanh", "B/relu"));
  EXPECT_THAT(Consumers("excl_input_by_scopes: 'A/' excl_input_by_types: 'Relu'"),
              ElementsAre("B/tanh", "C/sum"));
}

TEST(LevelFiltersTest, ExclusionWins) {
  EXPECT_THAT(Producers("incl_output_by_scopes: 'A/' excl_output_by_types: 'Tanh'"),
              ElementsAre("A/relu"));
  EXPECT_THAT(Consumers("incl_input_by_types: 'Relu' excl_input_by_scopes: 'B/'"),
              ElementsAre("A/relu"));
  // A scope inside an included one.
  EXPECT_THAT(Producers("incl_output_by_scopes: 'A/' excl_output_by_scopes: 'A/t'"),
              ElementsAre("A/relu"));
}

TEST(LevelFiltersTest, WhatIsBuiltInIsNeverIncluded) {
  EXPECT_THAT(Producers("incl_output_by_types: ['Identity', 'VariableV2', 'Tanh']"),
              ElementsAre("A/tanh", "B/tanh"));
  EXPECT_EQ(ReasonOf("A/read", "incl_output_by_types: ['Identity', 'Tanh']"), "REASON_EXCLUDED");
}

class EveryFilterTest : public ::testing::TestWithParam<std::string> {
 protected:
  bool is_excl() const { return GetParam().rfind("excl", 0) == 0; }
  bool by_scopes() const { return GetParam().find("scopes") != std::string::npos; }
  std::string Set(const std::string& values) const { return GetParam() + ": " + values; }
};

TEST_P(EveryFilterTest, RefusesWhatMatchesNothing) {
  const auto status = ErrorOf(Set("['nothing_like_it']"));
  EXPECT_THAT(status, IsInvalid(v1::ERROR_REASON_NAME_MATCHES_NOTHING,
                                GetParam() + " has 'nothing_like_it'"));
  EXPECT_EQ(ErrorDetailOf(status, "option"), GetParam());
  EXPECT_EQ(ErrorDetailOf(status, "value"), "nothing_like_it");
  // The one of several that matches.
  const std::string good = by_scopes() ? "'B/'" : "'Relu'";
  EXPECT_THAT(ErrorOf(Set("[" + good + "]")), IsOk());
  EXPECT_EQ(ErrorDetailOf(ErrorOf(Set("[" + good + ", 'nope']")), "value"), "nope");
}

// A scope is the start of a name and a type is a whole type; case matters in both.
TEST_P(EveryFilterTest, MatchesAsSpelled) {
  EXPECT_THAT(ErrorOf(Set(by_scopes() ? "'b/'" : "'relu'")),
              IsInvalid(v1::ERROR_REASON_NAME_MATCHES_NOTHING, GetParam()));
  EXPECT_THAT(ErrorOf(Set(by_scopes() ? "'/relu'" : "'Rel'")),
              IsInvalid(v1::ERROR_REASON_NAME_MATCHES_NOTHING, GetParam()));
}

TEST_P(EveryFilterTest, RefusesToLeaveNothing) {
  std::string values;
  if (by_scopes()) {
    values = is_excl() ? "['A/', 'B/', 'C/']" : "'while/'";
  } else {
    values = is_excl() ? "['Relu', 'Tanh', 'AddV2']" : "'Placeholder'";
  }
  const auto status = ErrorOf(Set(values));
  EXPECT_THAT(status, IsInvalid(v1::ERROR_REASON_BAD_OPTION, "leave no op"));
  EXPECT_THAT(status, IsInvalid(v1::ERROR_REASON_BAD_OPTION, GetParam()));
  EXPECT_EQ(ErrorDetailOf(status, "option"), GetParam());
  EXPECT_NE(ErrorDetailOf(status, "value"), "(absent)");
}

TEST_P(EveryFilterTest, RefusesAValueThatItsOppositeHas) {
  const std::string other = (is_excl() ? "incl" : "excl") + GetParam().substr(4);
  const std::string value = by_scopes() ? "A/" : "Tanh";
  const auto status = ErrorOf(Set("'" + value + "' ") + other + ": '" + value + "'");
  EXPECT_THAT(status, IsInvalid(v1::ERROR_REASON_CONFLICTING_OPTIONS, GetParam()));
  EXPECT_THAT(status, IsInvalid(v1::ERROR_REASON_CONFLICTING_OPTIONS, other));
  EXPECT_EQ(ErrorDetailOf(status, "value"), value);
}

INSTANTIATE_TEST_SUITE_P(LevelFilters, EveryFilterTest,
                         ::testing::Values("excl_output_by_scopes", "incl_output_by_scopes",
                                           "excl_output_by_types", "incl_output_by_types",
                                           "excl_input_by_scopes", "incl_input_by_scopes",
                                           "excl_input_by_types", "incl_input_by_types"),
                         [](const auto& filter) { return filter.param; });

// The ops that remain on the two sides need not be the same.
TEST(LevelFiltersTest, AnInputMayBeExcludedThatIsIncludedAsAnOutput) {
  EXPECT_THAT(ErrorOf("incl_output_by_scopes: 'A/' excl_input_by_scopes: 'A/'"), IsOk());
}

// Scopes that begin with each other, against a comparison of each name with each scope.
TEST(LevelFiltersTest, EachScopeThatANameBeginsWithCounts) {
  const char* const kScopes[] = {"a", "a/b", "a/bc", "ab", "a/b/c", "b", "A/", "A/relu", "A/re"};
  std::string text;
  for (const char* name : {"a", "a/b", "a/bb", "a/b/c/d", "a/bcd", "ab/c", "abc", "b/a", "A/relu",
                           "A/rem", "B", "c"}) {
    absl::StrAppend(&text, name, " = Neg(x) {T=float32}\n");
  }
  const TestFacts f(absl::StrCat("x = Placeholder() {dtype=float32}\n", text));
  constexpr int kSets = 1 << (sizeof(kScopes) / sizeof(kScopes[0]));
  for (int set = 1; set < kSets; ++set) {
    std::vector<std::string> scopes;
    std::string options;
    for (int i = 0; 1 << i < kSets; ++i) {
      if ((set >> i & 1) == 0) continue;
      scopes.push_back(kScopes[i]);
      absl::StrAppend(&options, "incl_output_by_scopes: '", kScopes[i], "' ");
    }
    const LevelFilters filters = testing::ValueOrDie(Create(f, options), options);
    for (NodeId id(0); id < f.graph->num_nodes(); ++id) {
      if (f.graph->op(id) == "Placeholder") continue;  // Never a producer.
      const bool begins = std::any_of(scopes.begin(), scopes.end(), [&](const std::string& scope) {
        return absl::StartsWith(f.graph->name(id), scope);
      });
      EXPECT_EQ(filters.producer(id) != v1::REASON_NOT_INCLUDED, begins)
          << f.graph->name(id) << " with " << options;
    }
  }
}

}  // namespace
}  // namespace spillway::core
