#include "rewrite_core/strategy/scope/trigger_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/rewrite_core/strategy/scope/naive_triggers.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using testing::TestFacts;

// A graph with v1's order; the backward part consists of the nodes named `G/...`.
class Triggers {
 public:
  Triggers(const std::string& text, const std::vector<std::string>& seeds,
           const v1::Step& step = {})
      : f_(text, step) {
    for (NodeId id(0); id < f_.graph->num_nodes(); ++id) {
      backward_.push_back(absl::StartsWith(f_.graph->name(id), "G/"));
    }
    std::vector<NodeId> ids;
    for (const std::string& seed : seeds) ids.push_back(f_.graph.Node(seed));
    order_ = testing::ValueOrDie(
        BuildScopeOrder(*f_.graph, f_.facts.topology(), backward_, ids, StopToken()), "order");
  }

  absl::StatusOr<NodeId> FindId(NodeId producer, const std::vector<NodeId>& consumers, int lb,
                                int ub, bool direct, int64_t max_steps = 1'000'000) const {
    const StopToken stop;
    SearchBudget budget(max_steps, stop);
    TriggerSearch search(f_.facts, order_, backward_, Parameters(lb, ub, direct), &budget);
    return search.Find(producer, consumers[0], consumers);
  }

  // The name of the trigger for a swap-in for one consumer; "-" without one.
  std::string Find(const std::string& producer, const std::string& consumer, int lb, int ub,
                   bool direct) const {
    const auto id = FindId(f_.graph.Node(producer), {f_.graph.Node(consumer)}, lb, ub, direct);
    if (!id.ok()) return id.status().ToString();
    return *id == kNoNode ? "-" : std::string(f_.graph->name(*id));
  }
  std::string Chain(const std::string& producer, const std::string& consumer, int lb = 1,
                    int ub = 10'000) const {
    return Find(producer, consumer, lb, ub, false);
  }
  std::string Direct(const std::string& producer, const std::string& consumer, int lb = 1,
                     int ub = 10'000) const {
    return Find(producer, consumer, lb, ub, true);
  }

  static ScopeDefaults Parameters(int lb, int ub, bool direct) {
    v1::ScopeStrategy options;
    options.set_lb(lb);
    options.set_ub(ub);
    if (direct) options.set_ctrld_strategy(v1::ScopeStrategy::CTRLD_STRATEGY_DIRECT_ORDER);
    return ScopeDefaults(options);
  }

  const TestFacts& f() const { return f_; }
  const ScopeOrder& order() const { return order_; }
  const NodeFlags& backward() const { return backward_; }

 private:
  TestFacts f_;
  NodeFlags backward_;
  ScopeOrder order_;
};

// Five forward ops, and a backward op for each. Orders: f1 0, f2 1, f3 2, f4 3, loss 4, g5 5, g4 6,
// g3 7, g2 8, g1 9, end 10; so the backward part starts at 5.
constexpr char kTriggerNet[] = R"(
    f1 = Placeholder() {dtype=float32}
    f2 = Relu(f1) {T=float32}
    f3 = Relu(f2) {T=float32}
    f4 = Relu(f3) {T=float32}
    loss = Relu(f4) {T=float32}
    G/g5 = Relu(loss) {T=float32}
    G/g4 = AddV2(G/g5, f4) {T=float32}
    G/g3 = AddV2(G/g4, f3) {T=float32}
    G/g2 = AddV2(G/g3, f2) {T=float32}
    G/g1 = AddV2(G/g2, f1) {T=float32}
    G/end = Relu(G/g1) {T=float32}
)";

TEST(TriggerSearchTest, ChainRule) {
  const Triggers t(kTriggerNet, {"f1"});
  // One step forward from f1 is f2; of its backward consumers g2 (8) lies between 0 and 9.
  EXPECT_EQ(t.Chain("f1", "G/g1", 1), "G/g2");
  // lb reaches 0 after two steps, and three.
  EXPECT_EQ(t.Chain("f1", "G/g1", 2), "G/g3");
  EXPECT_EQ(t.Chain("f1", "G/g1", 3), "G/g4");
  // order(b) - lb = 9 - 4 is still bw_start = 5; four steps forward is loss, which g5 consumes.
  EXPECT_EQ(t.Chain("f1", "G/g1", 4), "G/g5");
  // 9 - 5 < 5: the direct rule, from level 9 - 5 - 1 = 3 down: f4 reaches g1.
  EXPECT_EQ(t.Chain("f1", "G/g1", 5), "f4");
  EXPECT_EQ(t.Chain("f2", "G/g2", 1), "G/g3");
  EXPECT_EQ(t.Chain("f4", "G/g4", 1), "G/g5");
}

TEST(TriggerSearchTest, DirectOrder) {
  const Triggers t(kTriggerNet, {"f1"});
  // From level order(b) - lb - 1 down: 9 - 1 - 1 = 7 is g3.
  EXPECT_EQ(t.Direct("f1", "G/g1", 1), "G/g3");
  EXPECT_EQ(t.Direct("f1", "G/g1", 2), "G/g4");
  EXPECT_EQ(t.Direct("f1", "G/g1", 3), "G/g5");
  EXPECT_EQ(t.Direct("f1", "G/g1", 4), "loss");
  EXPECT_EQ(t.Direct("f1", "G/g1", 7), "f2");
  // 9 - 8 - 1 = 0 is not above order(f1) = 0.
  EXPECT_EQ(t.Direct("f1", "G/g1", 8), "-");
  // 9 - 9 <= 0: lb is 1 then.
  EXPECT_EQ(t.Direct("f1", "G/g1", 9), "G/g3");
  EXPECT_EQ(t.Direct("f1", "G/g1", 2147483647, 2147483647), "G/g3");
  // Between loss (4) and g5 (5) there is no level.
  EXPECT_EQ(t.Direct("loss", "G/g5", 1), "-");
}

TEST(TriggerSearchTest, WhatTheStepDoesNotRunIsNoTrigger) {
  // Of f2's backward consumers `idle` (6) is the lowest. Only a step that fetches it, or names no
  // target, runs it.
  const std::string graph = std::string(kTriggerNet) + "G/idle = AddV2(G/g5, f2) {T=float32}\n";
  EXPECT_EQ(Triggers(graph, {"f1"}).Chain("f1", "G/g1", 1), "G/idle");
  v1::Step step;
  step.add_targets("G/end");
  EXPECT_EQ(Triggers(graph, {"f1"}, step).Chain("f1", "G/g1", 1), "G/g2");
}

// A conditional in the backward part: a node in one branch cannot trigger for the other.
constexpr char kCond[] = R"(
    p = Placeholder() {dtype=bool}
    f1 = Placeholder() {dtype=float32}
    f2 = Relu(f1) {T=float32}
    f3 = Relu(f2) {T=float32}
    loss = Relu(f3) {T=float32}
    G/s = Switch(loss, p) {T=float32}
    G/t = Relu(G/s:1) {T=float32}
    G/t3 = AddV2(G/t, f3) {T=float32}
    G/f = Relu(G/s) {T=float32}
    G/f2 = AddV2(G/f, f2) {T=float32}
    G/f1 = AddV2(G/f2, f1) {T=float32}
    G/t2 = AddV2(G/t3, f2) {T=float32}
    G/t1 = AddV2(G/t2, f1) {T=float32}
    G/m = Merge(G/f1, G/t1) {T=float32, N=2}
    G/m1 = AddV2(G/m, f1) {T=float32}
    G/end = Relu(G/m1) {T=float32}
)";

TEST(TriggerSearchTest, NoTriggerFromTheBranchThatIsNotTaken) {
  const Triggers t(kCond, {"f1"});
  // Orders: f1 0, f2 1, f3 2, loss 3, s 4, t and f 5, t3 and f2 6, f1' and t2 7, t1 8, m 9, m1 10.
  // f2 is consumed by f2' (6) and t2 (7): each serves its own side.
  EXPECT_EQ(t.Chain("f1", "G/t1", 1), "G/t2");
  EXPECT_EQ(t.Chain("f1", "G/f1", 1), "G/f2");
  // Behind the Merge neither side is always alive, and one step later (f3, consumed by t3) this is
  // no better; then comes loss, and its consumer s is alive.
  EXPECT_EQ(t.Chain("f1", "G/m1", 1), "G/s");
  EXPECT_EQ(t.Direct("f1", "G/m1", 2), "G/s");
  EXPECT_EQ(t.Direct("f1", "G/t1", 1), "G/t3");
}

TEST(TriggerSearchTest, AFusedSwapInHasATriggerThatIsSoundForAll) {
  const Triggers t(kCond, {"f1"});
  const auto find = [&t](const std::vector<std::string>& consumers) {
    std::vector<NodeId> ids;
    for (const std::string& c : consumers) ids.push_back(t.f().graph.Node(c));
    const NodeId id = *t.FindId(t.f().graph.Node("f1"), ids, 1, 10'000, false);
    return id == kNoNode ? "-" : std::string(t.f().graph->name(id));
  };
  EXPECT_EQ(find({"G/t1"}), "G/t2");
  EXPECT_EQ(find({"G/t1", "G/f1"}), "G/s");
}

// Updates of variables produce references and have side effects: a swap-in does not wait for one.
TEST(TriggerSearchTest, UpdatesAreNoTriggers) {
  std::string text = kTriggerNet;
  absl::StrAppend(&text, "v = VariableV2() {dtype=float32}\n");
  text.replace(text.find("G/g2 = AddV2(G/g3, f2)"), 22, "G/g2 = AssignAdd(v, f2, ^G/g3)");
  const Triggers t(text, {"f1", "v"});
  EXPECT_EQ(t.Chain("f1", "G/g1", 1), "G/g3");
}

TEST(TriggerSearchTest, ASearchTooLongSaysWhatToDo) {
  const Triggers t(kTriggerNet, {"f1"});
  for (bool direct : {false, true}) {
    const auto id =
        t.FindId(t.f().graph.Node("f1"), {t.f().graph.Node("G/g1")}, 3, 10'000, direct, 1);
    EXPECT_THAT(id, testing::FailsWith(absl::StatusCode::kResourceExhausted,
                                       v1::ERROR_REASON_SEARCH_TOO_LONG, "smaller lb and ub"));
  }
}

// ---- Against a naive implementation of the specification ----

std::string RandomText(uint32_t seed) {
  std::mt19937 random(seed);
  const int n = 10 + random() % 40;
  const int forward = n / 2;
  std::string text = "n0 = Placeholder() {dtype=float32}\np = Placeholder() {dtype=bool}\n";
  const auto name = [&](int i) {
    return absl::StrCat(i < forward ? "n" : i % 7 == 0 ? "G/cond/n" : i % 5 == 0 ? "u" : "G/n", i);
  };
  for (int i = 1; i < n; ++i) {
    // Backward ops read any forward op, others read recent ops.
    const auto pick = [&] {
      return random() % 3 == 0 ? name(random() % i) : name(i - 1 - random() % std::min(i, 4));
    };
    absl::StrAppend(&text, name(i), " = ");
    if (random() % 8 == 0) {
      absl::StrAppend(&text, "Switch(", pick(), ", p) {T=float32}\n");
    } else if (random() % 8 == 0) {
      absl::StrAppend(&text, "Merge(", pick(), ", ", pick(), ") {T=float32, N=2}\n");
    } else {
      absl::StrAppend(&text, "AddV2(", pick(), ", ", pick(),
                      random() % 5 == 0 ? absl::StrCat(", ^", pick()) : "", ") {T=float32}\n");
    }
  }
  return text;
}

// Compares all pairs of a producer and a consumer whose leading to the backward part is `leads`.
void CompareOnRandomGraphs(bool leads, int* found, int* none) {
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    const std::string text = RandomText(seed);
    const Triggers t(text, {"n0"});
    const Graph& graph = *t.f().graph;
    const NodeFlags leading =
        testing::ValueOrDie(LeadingTo(graph, t.backward(), StopToken()), "leading");
    const auto spell = [&graph](NodeId n) {
      return n == kNoNode ? "none" : std::string(graph.name(n));
    };
    for (const auto& [lb, ub, direct] : std::vector<std::tuple<int, int, bool>>{{1, 10'000, false},
                                                                                {1, 10'000, true},
                                                                                {3, 10'000, false},
                                                                                {3, 10'000, true},
                                                                                {1, 4, false},
                                                                                {1, 4, true},
                                                                                {3, 5, true}}) {
      const NaiveTriggers naive(t.f().facts, t.order(), t.backward(),
                                Triggers::Parameters(lb, ub, direct));
      for (NodeId producer(0); producer < graph.num_nodes(); ++producer) {
        const Graph::Readers readers = graph.readers(producer);
        for (uint32_t i = 0; i < readers.size(); ++i) {
          const NodeId consumer = readers[i].node;
          if (readers[i].port == kControl || t.order().order[consumer] < 0 ||
              leading[consumer] != leads) {
            continue;
          }
          const NodeId expected = naive.Expected(producer, consumer, {consumer});
          const auto id = t.FindId(producer, {consumer}, lb, ub, direct);
          ASSERT_THAT(id, testing::IsOk());
          ASSERT_EQ(spell(*id), spell(expected))
              << "for " << graph.name(producer) << " -> " << graph.name(consumer) << ", lb " << lb
              << ", ub " << ub << (direct ? ", direct, in\n" : ", chain, in\n") << text;
          ++*(expected == kNoNode ? none : found);
        }
      }
    }
  }
}

TEST(TriggerSearchTest, AgreesWithTheSpecificationOnRandomGraphs) {
  int found = 0, none = 0;
  CompareOnRandomGraphs(true, &found, &none);
  EXPECT_GT(found, 2'000);
  EXPECT_GT(none, 2'000);
}

// Consumers beside the way to the backward part (swap_branches may serve them): there, a level may
// be lower than that of an op's input.
TEST(TriggerSearchTest, AgreesForConsumersThatDoNotLeadToTheBackwardPart) {
  int found = 0, none = 0;
  CompareOnRandomGraphs(false, &found, &none);
  EXPECT_GT(found, 100);
}

}  // namespace
}  // namespace spillway::core
