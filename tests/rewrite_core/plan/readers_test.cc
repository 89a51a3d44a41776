#include "rewrite_core/plan/readers.h"

#include <string>
#include <vector>

#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TestFacts;

v1::Step Fed(const std::string& node) {
  v1::Step step;
  v1::Feed* feed = step.add_feeds();
  feed->set_name(node);
  feed->add_dims(4);
  return step;
}

struct Verdict {
  v1::Reason reason;
  std::vector<std::string> kept;
};

// Returns Keep's verdict on these readers of `tensor`, and the readers that it keeps.
Verdict Keep(const TestFacts& f, const std::string& tensor, const std::vector<std::string>& names) {
  const auto eligibility = testing::ValueOrDie(Eligibility::Create(f.facts, {}, {}), "eligibility");
  const SwapInReaders rules(f.facts, eligibility);
  std::vector<NodeId> readers;
  for (const std::string& name : names) readers.push_back(f.graph[name]);
  Verdict verdict;
  verdict.reason = rules.Keep(f.graph.Output(tensor), &readers, [](NodeId id) { return id; });
  for (NodeId id : readers) verdict.kept.emplace_back(f.graph->name(id));
  return verdict;
}

constexpr char kNet[] = R"(
    x = Placeholder() {dtype=float32, shape=(4)}
    a = Relu(x) {T=float32}
    while = While(a) {T=[float32]}
    stateless = StatelessWhile(a) {T=[float32]}
    if = If(a, a) {Tin=[float32], Tout=[float32]}
    call = PartitionedCall(a) {Tin=[float32], Tout=[float32]}
    relu = Relu(a) {T=float32}
    enter = Enter(a) {T=float32, frame_name="w"}
    inside = Relu(enter) {T=float32}
)";

TEST(SwapInReadersTest, FunctionalLoopsReadTheTensorItself) {
  const TestFacts f(kNet);
  const Verdict some = Keep(f, "a", {"while", "if", "stateless", "call", "relu"});
  EXPECT_EQ(some.reason, v1::REASON_SWAPPED);
  EXPECT_THAT(some.kept, ElementsAre("if", "call", "relu"));
  const Verdict none = Keep(f, "a", {"while", "stateless"});
  EXPECT_EQ(none.reason, v1::REASON_READ_BY_LOOP);
  EXPECT_THAT(none.kept, IsEmpty());
}

TEST(SwapInReadersTest, OnlyTheTensorsOwnFrame) {
  const TestFacts f(kNet);
  EXPECT_THAT(Keep(f, "a", {"inside", "relu"}).kept, ElementsAre("relu"));
  EXPECT_EQ(Keep(f, "a", {"inside"}).reason, v1::REASON_IN_LOOP);
  // An Enter reads in the outer frame.
  EXPECT_THAT(Keep(f, "a", {"enter"}).kept, ElementsAre("enter"));
}

TEST(SwapInReadersTest, TheFirstRuleThatHoldsIsTheReason) {
  const TestFacts f(std::string(kNet) + "ints = Relu(x) {T=int32}\nw = While(ints) {T=[int32]}\n");
  EXPECT_EQ(Keep(f, "ints", {"w"}).reason, v1::REASON_READ_BY_LOOP);
  EXPECT_EQ(Keep(f, "ints", {"relu"}).reason, v1::REASON_HOST_MEMORY);
  EXPECT_EQ(Keep(f, "ints", {"inside"}).reason, v1::REASON_HOST_MEMORY);
}

TEST(SwapInReadersTest, WhatIsFedDoesNotRun) {
  const TestFacts f(kNet, Fed("relu"));
  const auto eligibility = testing::ValueOrDie(Eligibility::Create(f.facts, {}, {}), "eligibility");
  const SwapInReaders rules(f.facts, eligibility);
  EXPECT_FALSE(rules.Runs(f.graph["relu"]));
  EXPECT_TRUE(rules.Runs(f.graph["call"]));
}

}  // namespace
}  // namespace spillway::core
