#include "rewrite_core/analysis/flow/conditionals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/naive_executor.h"
#include "tests/testing/random.h"
#include "tests/testing/random_graph.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TestFacts;
using testing::TestGraph;
using ::testing::UnorderedElementsAre;

void FeedBool(const std::string& name, bool value, v1::Step* step) {
  v1::Feed* feed = step->add_feeds();
  feed->set_name(name);
  feed->add_values(value);
}

v1::Step Fed(const std::map<std::string, bool>& values, const std::string& target = "out") {
  v1::Step step;
  for (const auto& [name, value] : values) FeedBool(name, value, &step);
  step.add_targets(target);
  return step;
}

class Sides {
 public:
  template <typename Source>
  explicit Sides(Source&& source, v1::Step step)
      : facts_(std::forward<Source>(source), std::move(step)) {
    facts_.Compute({Fact::kActiveNodes});
  }

  std::vector<std::string> Dead() const {
    std::vector<std::string> names;
    for (NodeId id(0); id < facts_.graph->num_nodes(); ++id) {
      if (conditionals().IsDead(id)) names.emplace_back(facts_.graph->name(id));
    }
    return names;
  }
  bool IsDead(const char* tensor) const {
    return conditionals().IsDead(facts_.graph.Output(tensor));
  }
  bool Runs(const char* node) const {
    return facts_.facts.active_nodes().flags[facts_.graph.Node(node)];
  }
  // `node=value/bytes of false/bytes of true/switches`.
  std::vector<std::string> Choices() const {
    std::vector<std::string> texts;
    for (const Conditionals::Choice& choice : conditionals().choices()) {
      texts.push_back(absl::StrCat(TensorName(*facts_.graph, choice.predicate), "=",
                                   choice.value ? "true" : "false", "/", choice.bytes[0], "/",
                                   choice.bytes[1], "/", choice.num_switches));
    }
    return texts;
  }
  const Conditionals& conditionals() const { return facts_.facts.conditionals(); }
  const TestFacts& facts() const { return facts_; }

 private:
  TestFacts facts_;
};

// The true side makes 16 and 64 bytes, the false side 32; `unread` is not needed.
constexpr char kCond[] =
    "p = Placeholder() @/gpu:0 {dtype=bool, shape=()}\n"
    "x = Placeholder() @/gpu:0 {dtype=float32, shape=(4)}\n"
    "id = Identity(p) @/gpu:0 {T=bool}\n"
    "sw = Switch(x, id) @/gpu:0 {T=float32}\n"
    "a = Relu(sw:1) @/gpu:0 {T=float32}\n"
    "k = Const(^ctrl) @/gpu:0 {dtype=float64, _output_shapes=[(4)]}\n"
    "ctrl = Identity(sw:1) @/gpu:0 {T=float32}\n"
    "wide = Cast(a) @/gpu:0 {SrcT=float32, DstT=float64}\n"
    "back = Cast(wide, ^k) @/gpu:0 {SrcT=float64, DstT=float32}\n"
    "b = Relu(sw) @/gpu:0 {T=float32}\n"
    "b2 = Relu(b) @/gpu:0 {T=float32}\n"
    "unread = Exp(b) @/gpu:0 {T=float32}\n"
    "merge = Merge(b2, back) @/gpu:0 {N=2, T=float32}\n"
    "out = Relu(merge) @/gpu:0 {T=float32}";

TEST(ConditionalsTest, AKnownPredicateKillsTheOtherSide) {
  const Sides taken(kCond, Fed({{"p", true}}));
  EXPECT_THAT(taken.Dead(), UnorderedElementsAre("b", "b2", "unread"));
  EXPECT_TRUE(taken.IsDead("sw:0"));
  EXPECT_FALSE(taken.IsDead("sw:1"));
  EXPECT_FALSE(taken.IsDead("merge:0"));
  EXPECT_THAT(taken.Choices(), IsEmpty());
  EXPECT_TRUE(taken.Runs("back"));
  EXPECT_TRUE(taken.Runs("sw"));
  EXPECT_FALSE(taken.Runs("b2"));
  EXPECT_TRUE(taken.facts().facts.active_nodes().needed[taken.facts().graph.Node("b2")]);
  // Over control edges, too.
  const Sides other(kCond, Fed({{"p", false}}));
  EXPECT_THAT(other.Dead(), UnorderedElementsAre("a", "k", "ctrl", "wide", "back"));
}

TEST(ConditionalsTest, OfAnUnknownOneTheSideCountsThatMakesMore) {
  // a and back: 16 bytes each, wide and k: 32 each; b and b2: 16 each.
  const Sides sides(kCond, Fed({}));
  EXPECT_THAT(sides.Choices(), ElementsAre("p:0=true/32/96/1"));
  EXPECT_THAT(sides.Dead(), UnorderedElementsAre("b", "b2", "unread"));
  // Fed without a value, it is just as unknown.
  v1::Step step = Fed({});
  step.add_feeds()->set_name("p");
  EXPECT_THAT(Sides(kCond, step).Choices(), ElementsAre("p:0=true/32/96/1"));
}

TEST(ConditionalsTest, WhatTheStepDoesNotNeedDoesNotCount) {
  EXPECT_THAT(Sides(kCond, Fed({}, "unread")).Choices(), ElementsAre("p:0=false/32/0/1"));
}

TEST(ConditionalsTest, AreTakenForTrueWhereBothSidesMakeAsMuch) {
  const Sides sides(
      "p = Placeholder() @/gpu:0 {dtype=bool, shape=()}\n"
      "x = Placeholder() @/gpu:0 {dtype=float32, shape=(4)}\n"
      "sw = Switch(x, p) @/gpu:0 {T=float32}\n"
      "a = Relu(sw:1) @/gpu:0 {T=float32}\n"
      "b = Exp(sw) @/gpu:0 {T=float32}\n"
      "out = Merge(a, b) @/gpu:0 {N=2, T=float32}",
      Fed({}));
  EXPECT_THAT(sides.Choices(), ElementsAre("p:0=true/16/16/1"));
  EXPECT_THAT(sides.Dead(), ElementsAre("b"));
}

// All Switches on one predicate go the same way; those behind a LogicalNot go the other way.
TEST(ConditionalsTest, OnePredicateTakesOneSide) {
  constexpr char kTwice[] =
      "p = Placeholder() @/gpu:0 {dtype=bool, shape=()}\n"
      "not = LogicalNot(p) @/gpu:0\n"
      "x = Placeholder() @/gpu:0 {dtype=float32, shape=(4)}\n"
      "sw = Switch(x, p) @/gpu:0 {T=float32}\n"
      "a = Relu(sw:1) @/gpu:0 {T=float32}\n"
      "first = Merge(sw, a) @/gpu:0 {N=2, T=float32}\n"
      "sw2 = Switch(first, not) @/gpu:0 {T=float32}\n"
      "c = Relu(sw2:1) @/gpu:0 {T=float32}\n"
      "c2 = Relu(c) @/gpu:0 {T=float32}\n"
      "out = Merge(sw2, c2) @/gpu:0 {N=2, T=float32}";
  const Sides sides(kTwice, Fed({}));
  EXPECT_THAT(sides.Choices(), ElementsAre("p:0=false/32/16/2"));
  EXPECT_THAT(sides.Dead(), ElementsAre("a"));
  EXPECT_TRUE(sides.IsDead("sw2:0"));
  const Sides fed(kTwice, Fed({{"p", true}}));
  EXPECT_THAT(fed.Dead(), UnorderedElementsAre("c", "c2"));
}

// Training feeds Keras's learning phase, whose default is evaluation.
TEST(ConditionalsTest, ADefaultIsNoValue) {
  constexpr char kPhase[] =
      "default = Const() @/gpu:0 {dtype=bool, value=0x4207080a12005a0100}\n"
      "phase = PlaceholderWithDefault(default) @/gpu:0 {dtype=bool, shape=()}\n"
      "x = Placeholder() @/gpu:0 {dtype=float32, shape=(4)}\n"
      "sw = Switch(x, phase) @/gpu:0 {T=float32}\n"
      "a = Relu(sw:1) @/gpu:0 {T=float32}\n"
      "out = Merge(sw, a) @/gpu:0 {N=2, T=float32}";
  EXPECT_THAT(Sides(kPhase, Fed({})).Choices(), ElementsAre("phase:0=true/0/16/1"));
  EXPECT_THAT(Sides(kPhase, Fed({{"phase", false}})).Dead(), ElementsAre("a"));
}

TEST(ConditionalsTest, AConstantIsAValue) {
  for (const char* predicate : {"p", "id", "not"}) {
    const Sides sides(absl::StrCat("p = Const() @/gpu:0 {dtype=bool, value=0x4207080a12005a0100}\n"
                                   "id = Identity(p) @/gpu:0 {T=bool}\n"
                                   "not = LogicalNot(id) @/gpu:0\n"
                                   "x = Placeholder() @/gpu:0 {dtype=float32, shape=(4)}\n"
                                   "sw = Switch(x, ",
                                   predicate,
                                   ") @/gpu:0 {T=float32}\n"
                                   "a = Relu(sw:1) @/gpu:0 {T=float32}\n"
                                   "b = Exp(sw) @/gpu:0 {T=float32}\n"
                                   "out = Merge(b, a) @/gpu:0 {N=2, T=float32}"),
                      Fed({}));
    EXPECT_THAT(sides.Dead(), ElementsAre(predicate == std::string("not") ? "b" : "a"));
    EXPECT_THAT(sides.Choices(), IsEmpty());
  }
}

// The inner predicate, which comes through a Switch of the outer one, is weighed if its side is
// taken.
TEST(ConditionalsTest, InOneAnother) {
  constexpr char kNested[] =
      "p = Placeholder() @/gpu:0 {dtype=bool, shape=()}\n"
      "q = Placeholder() @/gpu:0 {dtype=bool, shape=()}\n"
      "x = Placeholder() @/gpu:0 {dtype=float32, shape=(4)}\n"
      "sw = Switch(x, p) @/gpu:0 {T=float32}\n"
      "qin = Switch(q, p) @/gpu:0 {T=bool}\n"
      "inner = Switch(sw:1, qin:1) @/gpu:0 {T=float32}\n"
      "a = Relu(inner:1) @/gpu:0 {T=float32}\n"
      "b = Relu(inner) @/gpu:0 {T=float32}\n"
      "b2 = Relu(b) @/gpu:0 {T=float32}\n"
      "m = Merge(a, b2) @/gpu:0 {N=2, T=float32}\n"
      "out = Merge(sw, m) @/gpu:0 {N=2, T=float32}";
  const Sides sides(kNested, Fed({}));
  EXPECT_THAT(sides.Choices(), ElementsAre("p:0=true/0/48/2", "q:0=false/32/16/1"));
  EXPECT_THAT(sides.Dead(), ElementsAre("a"));
  const Sides outside(kNested, Fed({{"p", false}}));
  EXPECT_THAT(outside.Choices(), IsEmpty());
  EXPECT_THAT(outside.Dead(), UnorderedElementsAre("inner", "a", "b", "b2", "m"));
}

TEST(ConditionalsTest, LoopsAreNotDecided) {
  const Sides sides(
      "x = Placeholder() @/gpu:0 {dtype=float32, shape=(4)}\n"
      "enter = Enter(x) @/gpu:0 {T=float32, frame_name=\"f\"}\n"
      "m = Merge(enter, next) @/gpu:0 {N=2, T=float32}\n"
      "limit = Const(^m) @/gpu:0 {dtype=bool, _output_shapes=[()]}\n"
      "cond = LoopCond(limit) @/gpu:0\n"
      "sw = Switch(m, cond) @/gpu:0 {T=float32}\n"
      "body = Relu(sw:1) @/gpu:0 {T=float32}\n"
      "next = NextIteration(body) @/gpu:0 {T=float32}\n"
      "out = Exit(sw) @/gpu:0 {T=float32}",
      Fed({}));
  EXPECT_THAT(sides.Dead(), IsEmpty());
  EXPECT_THAT(sides.Choices(), IsEmpty());
}

// Each level's sides contain all inner ones, which are walked again. Beyond a bound nothing is
// weighed.
TEST(ConditionalsTest, ManyInOneAnotherTakeNoSquareOfTime) {
  constexpr int kLevels = 20000;
  std::string text = "sw0 = Placeholder() @/gpu:0 {dtype=float32, shape=(4)}\n";
  for (int i = 1; i <= kLevels; ++i) {
    absl::StrAppend(&text, "p", i, " = Placeholder() @/gpu:0 {dtype=bool, shape=()}\nsw", i,
                    " = Switch(sw", i - 1, i == 1 ? "" : ":1", ", p", i, ") @/gpu:0 {T=float32}\nm",
                    i, " = Merge(sw", i, ", ", i == kLevels ? "last" : absl::StrCat("m", i + 1),
                    ") @/gpu:0 {N=2, T=float32}\n");
  }
  absl::StrAppend(&text, "last = Relu(sw", kLevels, ":1) @/gpu:0 {T=float32}\n",
                  "out = Relu(m1) @/gpu:0 {T=float32}");
  const Sides sides(text, Fed({}));
  ASSERT_EQ(sides.conditionals().choices().size(), kLevels);
  EXPECT_EQ(sides.Choices().front(), "p1:0=true/0/16/1");
  EXPECT_EQ(sides.Choices().back(), absl::StrCat("p", kLevels, ":0=true/0/0/1"));
  EXPECT_TRUE(sides.Runs("last"));
}

// A fed node is alive, regardless of its inputs.
TEST(ConditionalsTest, WhatIsFedIsAlive) {
  v1::Step step = Fed({{"p", true}});
  v1::Feed* feed = step.add_feeds();
  feed->set_name("b");
  feed->add_dims(4);
  const Sides sides(kCond, step);
  EXPECT_FALSE(sides.IsDead("b"));
  EXPECT_FALSE(sides.IsDead("b2"));
}

// On random graphs, with each predicate fed or not, the dead nodes are those that a naive executor
// finds dead when predicates have the values that were fed or assumed.
TEST(ConditionalsTest, AgreesWithANaiveExecutor) {
  int dead = 0, taken = 0;
  for (uint64_t seed = 0; seed < 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    testing::Random random(seed);
    testing::RandomGraphOptions options;
    options.forward_ops = random.Between(3, 40);
    options.conds = true;
    testing::GraphDef graph = testing::MakeRandomGraph(seed, options);
    // They are random and may contradict the feeds.
    for (auto& node : *graph.mutable_node()) node.mutable_attr()->erase("_output_shapes");
    v1::Step step;
    testing::Truths truths;
    for (const std::string& name : testing::FindPredicates(graph)) {
      if (name.rfind("pred", 0) != 0 || random.OneIn(2)) continue;
      truths[name] = random.OneIn(2);
      FeedBool(name, truths[name], &step);
    }
    const Sides sides(TestGraph::FromBytes(graph.SerializeAsString()), step);
    for (const Conditionals::Choice& choice : sides.conditionals().choices()) {
      truths[std::string(sides.facts().graph->name(choice.predicate.node))] = choice.value;
      ++taken;
    }
    // A predicate whose Switches are all dead is neither.
    for (const std::string& name : testing::FindPredicates(graph)) truths.try_emplace(name, true);
    for (const auto& [name, outcome] : testing::Execute(graph, truths)) {
      EXPECT_EQ(sides.conditionals().IsDead(sides.facts().graph.Node(name)), outcome.dead) << name;
      dead += outcome.dead;
    }
  }
  EXPECT_GT(dead, 1000);
  EXPECT_GT(taken, 100);
}

}  // namespace
}  // namespace spillway::core
