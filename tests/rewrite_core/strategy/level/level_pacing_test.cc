#include "rewrite_core/strategy/level/level_pacing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewrite_core/graph/topology.h"
#include "rewrite_core/simulate/step_simulator.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/plan_text.h"
#include "tests/testing/random_graph.h"
#include "tests/testing/strategy_fixture.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::PrintPlan;
using testing::TestStep;

struct PacedStep : TestStep {
  template <typename Source>
  explicit PacedStep(Source&& source, v1::Step s = {})
      : TestStep(std::forward<Source>(source), std::move(s)),
        simulator(testing::ValueOrDie(StepSimulator::Create(facts, {}), "simulator")) {}

  std::unique_ptr<LevelPacing> Pacing(
      LevelPacing::Serialization serialization = LevelPacing::Serialization::kOff) const {
    return testing::ValueOrDie(
        LevelPacing::Create(facts, SwapPlan(), {GpuIndex(0)}, serialization, simulator.get(), {}),
        "pacing");
  }

  std::unique_ptr<StepSimulator> simulator;
};

// Plans with these parameters and sync_mode 0.
std::string PacedPlan(const std::string& graph, int threshold, int ahead, bool pace = true,
                      int groupby = 0, const std::vector<std::string>& targets = {}) {
  v1::RewriteOptions options;
  for (const std::string& target : targets) options.mutable_step()->add_targets(target);
  options.mutable_level()->set_swapout_threshold(threshold);
  options.mutable_level()->set_swapin_ahead(ahead);
  options.mutable_level()->set_swapin_groupby(groupby);
  options.mutable_level()->set_pace(pace);
  const PacedStep step(graph, options.step());
  const auto result = testing::PlanWith(step, options, step.simulator.get());
  return result.ok() ? "\n" + PrintPlan(*step.graph, result->plan) : result.status().ToString();
}

// Launched in this order, each waiting for the previous one, except that u and w wait for g4, as g3
// does.
// Distances: f1 -> g1 7, f2 -> g2 5, f3 -> g3 3.
constexpr char kPacedNet[] = R"(
    x = Placeholder() {dtype=float32, shape=(8,4)}
    f1 = Relu(x) {T=float32}
    f2 = Tanh(f1) {T=float32}
    f3 = Relu(f2) {T=float32}
    f4 = Tanh(f3) {T=float32}
    g4 = Relu(f4) {T=float32}
    g3 = AddV2(g4, f3) {T=float32}
    u = Tanh(g4) {T=float32}
    w = Relu(u) {T=float32}
    g2 = AddV2(g3, f2) {T=float32}
    g1 = AddV2(g2, f1) {T=float32}
)";

// f1 comes back for g1 when g4 is done. One slot behind g4 is left for a kernel that is launched
// meanwhile, either g3 or u. The frontier consists of kernels that then wait only for earlier ones:
// the other of the two, g3, and those that only the first leads to; not g1, which reads it.
TEST(LevelPacingTest, WhatIsLaunchedBehindTheTriggerWaits) {
  EXPECT_EQ(PacedPlan(kPacedNet, 6, 2, /*pace=*/false), "\nf1:0 (128 bytes) -> g1[1] after g4\n");
  const PacedStep step(kPacedNet);
  const StepOrder order = testing::ValueOrDie(
      StepOrder::Create(step.facts, GpuIndex(0), step.Pacing()->unswapped(), {}), "");
  const auto slot = [&](const char* name) { return order.slot(step.graph[name]); };
  ASSERT_EQ(slot("g3"), slot("g4") + 1);  // By id, among nodes that are ready at the same time.
  ASSERT_EQ(slot("u"), slot("g4") + 2);
  // u waits only for g4; g2 for g3; w for u.
  EXPECT_EQ(PacedPlan(kPacedNet, 6, 2),
            "\nf1:0 (128 bytes) -> g1[1] after g4\nf1:0 in => u\nf1:0 in => g2\n");
}

// Nothing triggers it, so nothing can wait for it in vain.
TEST(LevelPacingTest, NoGateWithoutATrigger) {
  EXPECT_EQ(PacedPlan(kPacedNet, 6, 20), PacedPlan(kPacedNet, 6, 20, /*pace=*/false));
}

// t leads to early, which the step does not run, and not to late, which it does: with it the step
// would run t, and y, which is not fed.
TEST(LevelPacingTest, NobodyWaitsForWhatTheStepDoesNotRun) {
  const std::string plan = PacedPlan(R"(
    x = Placeholder() {dtype=float32, shape=(8,4)}
    y = Placeholder() {dtype=float32, shape=(8,4)}
    f = Relu(x) {T=float32}
    t0 = Relu(y) {T=float32}
    t1 = Relu(t0) {T=float32}
    t2 = Relu(t1) {T=float32}
    t3 = Relu(t2) {T=float32}
    t = Relu(t3) {T=float32}
    t5 = Relu(t) {T=float32}
    early = AddV2(t5, f) {T=float32}
    g1 = Tanh(f) {T=float32}
    g2 = Tanh(g1) {T=float32}
    g3 = Tanh(g2) {T=float32}
    g4 = Tanh(g3) {T=float32}
    g5 = Tanh(g4) {T=float32}
    g6 = Tanh(g5) {T=float32}
    late = AddV2(g6, f) {T=float32}
)",
                                     3, 1, true, 5, {"late"});
  EXPECT_EQ(plan, "\nf:0 (128 bytes) -> early[1], late[1]\n");
}

#define KIB_256 "{T=float32, _output_shapes=[(256,256)]}\n"

// The gradient of a weight decay, ready when the step begins, waits for the other gradient.
constexpr char kDecay[] =
    "x = Placeholder() {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"
    "w = VariableV2() {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"
    "r = Identity(w) " KIB_256
    "two = Const() {dtype=float32, _output_shapes=[()]}\n"
    "a = MatMul(x, r) " KIB_256 "b = MatMul(a, r) " KIB_256 "c = MatMul(b, r) " KIB_256
    "d = MatMul(c, b) " KIB_256 "g = MatMul(d, a) " KIB_256 "decay = Mul(r, two) " KIB_256
    "sum = AddN(g, decay) {N=2, T=float32, _output_shapes=[(256,256)]}\n";

TEST(LevelPacingTest, OrderEdgesThatLowerThePeakAreInThePlan) {
  v1::Step options;
  options.add_targets("sum");
  const PacedStep step(kDecay, options);
  const std::unique_ptr<LevelPacing> pacing = step.Pacing();
  ASSERT_EQ(pacing->order_edges().size(), 1u);
  EXPECT_EQ(step.graph->name(pacing->order_edges()[0].from), "g");
  EXPECT_EQ(step.graph->name(pacing->order_edges()[0].to), "decay");
  // decay is on a low topological level, but behind g.
  EXPECT_LT(step.facts.topology().level(step.graph["decay"]),
            step.facts.topology().level(step.graph["g"]));
  EXPECT_LT(pacing->ranks()[step.graph["g"]], pacing->ranks()[step.graph["decay"]]);
  // Serialized levels have a separate order.
  EXPECT_THAT(step.Pacing(LevelPacing::Serialization::kOn)->order_edges(), IsEmpty());
  EXPECT_THAT(step.Pacing(LevelPacing::Serialization::kOn)->ranks(), IsEmpty());
}

// Every edge leads upward, and kernels are in launch order.
TEST(LevelPacingTest, RanksGrowAlongAllEdges) {
  int edges = 0, order_edges = 0, kernels = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    testing::RandomGraphOptions options;
    options.conds = seed % 3 == 0;
    options.loops = seed % 5 == 0;
    options.devices = seed % 2 == 0;
    options.forward_ops = 40;
    const PacedStep step(
        testing::TestGraph::FromBytes(testing::MakeRandomGraph(seed, options).SerializeAsString()));
    if (step.facts.placement().devices().empty()) continue;
    const std::unique_ptr<LevelPacing> pacing = step.Pacing();
    const absl::Span<const int32_t> ranks = pacing->ranks();
    ASSERT_EQ(ranks.size(), step.graph->num_nodes()) << seed;
    for (NodeId id(0); id < step.graph->num_nodes(); ++id) {
      for (Tensor input : step.graph->inputs(id)) {
        if (IsBackEdge(*step.graph, input.node, id)) continue;
        ++edges;
        ASSERT_LT(ranks[input.node], ranks[id]) << seed;
      }
    }
    for (const ControlEdge& edge : pacing->order_edges()) {
      ++order_edges;
      ASSERT_LT(ranks[edge.from], ranks[edge.to]) << seed;
    }
    if (!pacing->order_edges().empty()) continue;
    int32_t last = -1;
    for (OpId op : pacing->unswapped().launch_ahead.order) {
      if (pacing->unswapped().ops[op].kind != OpKind::kCompute) continue;
      const int32_t rank = ranks[pacing->unswapped().ops[op].node];
      ASSERT_LT(last, rank) << seed;
      last = rank;
      ++kernels;
    }
  }
  EXPECT_GT(edges, 10'000);
  EXPECT_GT(kernels, 2'000);
  EXPECT_GT(order_edges, 0);
}

}  // namespace
}  // namespace spillway::core
