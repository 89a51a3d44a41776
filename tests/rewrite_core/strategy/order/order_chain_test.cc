#include "rewrite_core/strategy/order/order_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/rewrite_core/strategy/budget/budget_fixture.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TestGpuStep;

#define KIB_256 "{T=float32, _output_shapes=[(256,256)]}\n"

// Two chains of two, either of which may go first; their results are added.
constexpr char kTwoChains[] =
    "x = Placeholder() {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"
    "w = VariableV2() {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"
    "r = Identity(w) " KIB_256 "a1 = MatMul(x, r) " KIB_256 "b1 = MatMul(r, x) " KIB_256
    "a2 = MatMul(a1, r) " KIB_256 "b2 = MatMul(b1, r) " KIB_256 "sum = Add(a2, b2) " KIB_256;

TestGpuStep TwoChains(const std::string& rest = "", const std::string& target = "sum") {
  v1::Step options;
  options.add_targets(target);
  return TestGpuStep(absl::StrCat(kTwoChains, rest), options);
}

std::vector<ControlEdge> ChainOf(const TestGpuStep& step, const StepResult& result) {
  return testing::ValueOrDie(
      ChainInOrder(step.facts, step.needs, step.ranks, result, GpuIndex(0), {}), "chain");
}

std::vector<ControlEdge> Chain(const TestGpuStep& step) { return ChainOf(step, step.unswapped); }

std::vector<std::string> Names(const TestGpuStep& step, const std::vector<ControlEdge>& chain) {
  std::vector<std::string> edges;
  for (const ControlEdge& edge : chain) {
    EXPECT_EQ(edge.kind, v1::EDGE_KIND_SERIALIZATION);
    edges.push_back(absl::StrCat(step.graph->name(edge.from), " => ", step.graph->name(edge.to)));
  }
  return edges;
}

// Launched in order of readiness: a1, b1, a2, b2, sum. The last one waits for b2 anyway.
TEST(OrderChainTest, OpsKeepTheirOrder) {
  const TestGpuStep step = TwoChains();
  EXPECT_THAT(Names(step, Chain(step)), ElementsAre("a1 => b1", "b1 => a2", "a2 => b2"));
}

// Without the chain, other ready orders launch them differently; with it, all launch them alike.
TEST(OrderChainTest, WithTheChainThereIsOneOrder) {
  const TestGpuStep step = TwoChains();
  SwapPlan plan;
  std::set<std::vector<NodeId>> orders[2];
  for (const bool chained : {false, true}) {
    if (chained) plan.controls = Chain(step);
    for (uint32_t seed = 0; seed < 20; ++seed) {
      StepTerms terms;
      terms.record_operations = true;
      terms.variation.ready_order = seed == 0 ? ReadyOrder::kLastReady : ReadyOrder::kMixed;
      terms.variation.seed = seed;
      const StepResult result =
          testing::ValueOrDie(step.simulator->Simulate(plan, terms, {}), "simulate");
      std::vector<NodeId> order;
      for (OpId op : result.launch_ahead.order) {
        const NodeId node = result.ops[op].node;
        if (step.graph->op_name(step.graph->op_id(node)) == "MatMul") order.push_back(node);
      }
      orders[chained].insert(order);
    }
  }
  EXPECT_GT(orders[0].size(), 1u);
  EXPECT_EQ(orders[1].size(), 1u);
}

// Launched as b1, b2, a1, a2, where the ranks are those of a1, b1, a2, b2: an edge from b2 to a1
// could close a cycle with those of other plans.
TEST(OrderChainTest, NoneGoesAgainstTheRanks) {
  const TestGpuStep step = TwoChains();
  StepTerms last;
  last.record_operations = true;
  last.variation.ready_order = ReadyOrder::kLastReady;
  const StepResult result = testing::ValueOrDie(step.simulator->Simulate({}, last, {}), "simulate");
  std::vector<NodeId> launched;
  for (OpId op : result.launch_ahead.order) launched.push_back(result.ops[op].node);
  const auto place = [&](const char* name) {
    return std::find(launched.begin(), launched.end(), step.graph[name]);
  };
  ASSERT_LT(place("b2"), place("a1"));
  EXPECT_THAT(ChainOf(step, result), IsEmpty());
  EXPECT_THAT(testing::ValueOrDie(ChainInOrder(step.facts, step.needs, /*ranks=*/{}, step.unswapped,
                                               GpuIndex(0), {}),
                                  "chain"),
              IsEmpty())
      << "where edges close a cycle, there are no ranks";
}

// A step that fetches only nodes depending on x must not run an iterator because of the chain.
TEST(OrderChainTest, NobodyRunsWhatItDidWithout) {
  const TestGpuStep step = TwoChains(
      "it = OneShotIterator() {}\n"
      "next = IteratorGetNext(it) {output_types=[float32], output_shapes=[(256,256)], "
      "_output_shapes=[(256,256)]}\n"
      "c = MatMul(next, r) " KIB_256 "all = Add(sum, c) " KIB_256,
      "all");
  const std::vector<ControlEdge> chain = Chain(step);
  EXPECT_FALSE(chain.empty());
  for (const ControlEdge& edge : chain) EXPECT_NE(edge.from, step.graph["c"]);
}

}  // namespace
}  // namespace spillway::core
