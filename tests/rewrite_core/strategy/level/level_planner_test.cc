// The plan of the strategy `level` with given parameters: which tensors, which groups, which
// control edges (level_candidates.h, level_planner.h, level_strategy.h).
#include "rewrite_core/strategy/level/level_planner.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "rewrite_core/strategy/level/level_strategy.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/plan_text.h"
#include "tests/testing/strategy_fixture.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::PlanWith;
using testing::PrintPlan;
using testing::TestFacts;

// Parameters, in the order of TFLMS v2; `more`: other options, in protobuf's text form.
v1::RewriteOptions Options(int threshold, int ahead, int groupby, int sync_mode,
                           const std::string& more = "") {
  v1::RewriteOptions options;
  if (!google::protobuf::TextFormat::MergeFromString(more, &options)) std::abort();
  options.mutable_level()->set_swapout_threshold(threshold);
  options.mutable_level()->set_swapin_ahead(ahead);
  options.mutable_level()->set_swapin_groupby(groupby);
  options.mutable_level()->set_sync_mode(sync_mode);
  return options;
}

// The printed plan, or the error.
std::string Printed(const std::string& graph, const v1::RewriteOptions& options) {
  const TestFacts f(graph, options.step());
  const auto result = PlanWith(f, options);
  return result.ok() ? "\n" + PrintPlan(*f.graph, result->plan) : result.status().ToString();
}

std::map<std::string, std::string> Verdicts(const std::string& graph,
                                            const v1::RewriteOptions& options) {
  const TestFacts f(graph, options.step());
  std::map<std::string, std::string> verdicts;
  for (const TensorDecision& d : testing::ValueOrDie(PlanWith(f, options), "plan").decisions) {
    verdicts[TensorName(*f.graph, d.tensor)] = v1::Reason_Name(d.reason).substr(7);
  }
  return verdicts;
}

// Levels: x 0, f1 1, f2 2, f3 3, f4 4, g4 5, g3 6, g2 7, g1 8. Distances: f1 -> g1 7, f2 -> g2 5,
// f3 -> g3 3, all others 1.
constexpr char kPlannerNet[] = R"(
    x = Placeholder() {dtype=float32, shape=(8,4)}
    f1 = Relu(x) {T=float32}
    f2 = Tanh(f1) {T=float32}
    f3 = Relu(f2) {T=float32}
    f4 = Tanh(f3) {T=float32}
    g4 = Relu(f4) {T=float32}
    g3 = AddV2(g4, f3) {T=float32}
    g2 = AddV2(g3, f2) {T=float32}
    g1 = AddV2(g2, f1) {T=float32}
)";

TEST(LevelPlannerTest, EdgesLongerThanTheThresholdAreSwapped) {
  // A distance equal to the threshold does not exceed it. The trigger is the op on the highest
  // level up to level(d) - 2, above the producer.
  EXPECT_EQ(Printed(kPlannerNet, Options(7, 1, 0, 0)), "\n");
  EXPECT_EQ(Printed(kPlannerNet, Options(6, 1, 0, 0)), "\nf1:0 (128 bytes) -> g1[1] after g3\n");
  EXPECT_EQ(Printed(kPlannerNet, Options(5, 1, 0, 0)), "\nf1:0 (128 bytes) -> g1[1] after g3\n");
  EXPECT_EQ(Printed(kPlannerNet, Options(4, 1, 0, 0)),
            "\nf1:0 (128 bytes) -> g1[1] after g3\nf2:0 (128 bytes) -> g2[1] after g4\n");
  EXPECT_EQ(Printed(kPlannerNet, Options(1, 1, 0, 0)), R"(
f1:0 (128 bytes) -> g1[1] after g3
f2:0 (128 bytes) -> g2[1] after g4
f3:0 (128 bytes) -> g3[1] after f4
)");
  EXPECT_EQ(Printed(kPlannerNet, Options(2'147'483'647, 1, 0, 0)), "\n");
}

TEST(LevelPlannerTest, ALargerAheadTakesAnEarlierTrigger) {
  EXPECT_EQ(Printed(kPlannerNet, Options(6, 2, 0, 0)), "\nf1:0 (128 bytes) -> g1[1] after g4\n");
  EXPECT_EQ(Printed(kPlannerNet, Options(6, 5, 0, 0)), "\nf1:0 (128 bytes) -> g1[1] after f2\n");
}

// v2 then waits for the consumer's other inputs, as with sync_mode 2.
TEST(LevelPlannerTest, WithoutATriggerASwapInWaitsForTheOtherInputs) {
  EXPECT_EQ(Printed(kPlannerNet, Options(6, 6, 0, 0)), "\nf1:0 (128 bytes) -> g1[1] after g2\n");
  EXPECT_EQ(Printed(kPlannerNet, Options(6, 2'147'483'647, 0, 0)),
            "\nf1:0 (128 bytes) -> g1[1] after g2\n");
}

TEST(LevelPlannerTest, ASearchForATriggerEndsTenLevelsDown) {
  // A branch that joins late: t1 .. t13 and f (levels 1 to 14) lead to d, then the chain of CPU
  // ops, which cannot be triggers.
  std::string text = "x = Placeholder() {dtype=float32, shape=(8,4)}\n";
  text += "f = Relu(x) {T=float32}\nt1 = Tanh(f) {T=float32}\n";
  std::string last = "t1";
  for (int i = 0; i < 10; ++i) {
    text += absl::StrCat("c", i, " = Tanh(", last, ") @/device:CPU:0 {T=float32}\n");
    last = absl::StrCat("c", i);
  }
  // Levels: t1 2, c0 3, ..., c9 12, d 13. With ahead 1, levels 11 to 2 are searched; with one more
  // CPU op, 12 to 3.
  EXPECT_EQ(Printed(text + "d = AddV2(f, c9) {T=float32}", Options(1, 1, 0, 0)),
            "\nf:0 (128 bytes) -> d[0] after t1\n");
  EXPECT_EQ(Printed(text + "c10 = Relu(c9) @/cpu:0 {T=float32}\nd = AddV2(f, c10) {T=float32}",
                    Options(1, 1, 0, 0)),
            "\nf:0 (128 bytes) -> d[0]\n");
}

// Levels: f 1, d1 3, d2 5, d3 5, d4 8, d5 9.
constexpr char kReaders[] = R"(
    x = Placeholder() {dtype=float32, shape=(8,4)}
    f = Relu(x) {T=float32}
    c2 = Tanh(f) {T=float32}
    d1 = AddV2(c2, f) {T=float32}
    c4 = Relu(d1) {T=float32}
    d2 = AddV2(f, c4) {T=float32}
    d3 = AddV2(c4, f) {T=float32}
    c6 = AddV2(d2, d3) {T=float32}
    c7 = Relu(c6) {T=float32}
    d4 = AddN(f, c7, f) {T=float32, N=3}
    d5 = AddV2(f, d4) {T=float32}
)";

std::vector<std::string> Groups(int groupby, int threshold = 1) {
  const TestFacts f(kReaders);
  const StrategyResult result =
      testing::ValueOrDie(PlanWith(f, Options(threshold, 1, groupby, 0)), "plan");
  EXPECT_EQ(result.plan.swaps.size(), 1u);
  std::vector<std::string> groups;
  for (const PlannedSwapIn& swap_in : result.plan.swaps[0].swap_ins) {
    std::string text;
    for (const InputPosition& p : swap_in.consumers) {
      absl::StrAppend(&text, text.empty() ? "" : " ", f.graph->name(p.node), "[", p.index, "]");
    }
    groups.push_back(text);
  }
  return groups;
}

TEST(LevelPlannerTest, ConsumersThatAreNearEnoughToTheNextShareASwapIn) {
  // 0: one swap-in for each consumer, however many of its inputs read the tensor.
  EXPECT_THAT(Groups(0), ElementsAre("d1[1]", "d2[0]", "d3[1]", "d4[0] d4[2]", "d5[0]"));
  // The gaps are 2, 0, 3 and 1.
  EXPECT_THAT(Groups(1), ElementsAre("d1[1]", "d2[0] d3[1]", "d4[0] d4[2] d5[0]"));
  EXPECT_THAT(Groups(2), ElementsAre("d1[1] d2[0] d3[1]", "d4[0] d4[2] d5[0]"));
  EXPECT_THAT(Groups(3), ElementsAre("d1[1] d2[0] d3[1] d4[0] d4[2] d5[0]"));
  EXPECT_EQ(Groups(2'147'483'647), Groups(3));
}

TEST(LevelPlannerTest, OnlyLateConsumersAreGrouped) {
  // d1 is 2 levels behind f, d2 and d3 are 4.
  EXPECT_THAT(Groups(9, 2), ElementsAre("d2[0] d3[1] d4[0] d4[2] d5[0]"));
  EXPECT_THAT(Groups(9, 4), ElementsAre("d4[0] d4[2] d5[0]"));
}

// A group's trigger is that of its first consumer.
TEST(LevelPlannerTest, TheFirstConsumerOfAGroupDecidesOnTheTrigger) {
  EXPECT_EQ(Printed(kReaders, Options(4, 1, 1, 0)),
            "\nf:0 (128 bytes) -> d4[0], d4[2], d5[0] after c6\n");
}

TEST(LevelPlannerTest, TheValuesWorthTuning) {
  const TestFacts f(kReaders);
  const v1::RewriteOptions options = Options(1, 1, 0, 0);
  const auto eligibility = testing::ValueOrDie(Eligibility::Create(f.facts, options, {}), "rules");
  const StopToken stop;
  const auto filters =
      testing::ValueOrDie(LevelFilters::Create(f.facts, options.level(), stop), "filters");
  const auto levels = testing::ValueOrDie(
      LevelOrder::Build(*f.graph, f.facts.topology(), f.facts.control_flow(), {}, stop), "levels");
  const auto candidates =
      testing::ValueOrDie(LevelCandidates::Find(f.facts, eligibility, filters, levels, 1,
                                                v1::DECISION_DETAIL_NONE, stop),
                          "candidates");
  SearchBudget budget(1'000'000, stop);
  WantedGpu gpu;
  gpu.devices.assign(f.graph->num_devices(), true);
  LevelPlanner planner(f.facts, filters, levels, candidates, gpu, &budget);
  // Distances of f: 2, 4, 4, 7, 8; the values are one less, the largest that still swap it.
  EXPECT_THAT(planner.Thresholds(), ElementsAre(1, 3, 6, 7));
  // Levels 2 to 8 lie within the longest edge.
  EXPECT_THAT(planner.Aheads(), ElementsAre(1, 2, 3, 4, 5, 6, 7));
  // Gaps, with a minimum of 1 for those within a level; and 0.
  EXPECT_THAT(planner.Groupbys(), ElementsAre(0, 1, 2, 3));

  // Between two values nothing changes, and any two values give different plans.
  std::string last;
  for (int32_t threshold = 1, i = 0; threshold <= 7; ++threshold) {
    const std::vector<int32_t> values = planner.Thresholds();
    if (threshold > values[i]) ++i;
    SwapPlan at, next;
    at.swaps = testing::ValueOrDie(planner.Plan({threshold, 1, 0, 0}), "plan");
    next.swaps = testing::ValueOrDie(planner.Plan({values[i], 1, 0, 0}), "plan");
    EXPECT_EQ(PrintPlan(*f.graph, at), PrintPlan(*f.graph, next)) << threshold;
    if (threshold == values[i]) {
      EXPECT_NE(PrintPlan(*f.graph, at), last);
      last = PrintPlan(*f.graph, at);
    }
  }
}

// ---- Outputs and inputs that take part ----

TEST(LevelPlannerTest, ConsumersOnACpuReadTheTensorItself) {
  const std::string text =
      absl::StrCat(kPlannerNet, "late = AddV2(f2, g1) @/device:CPU:0 {T=float32}\n");
  EXPECT_EQ(Printed(text, Options(4, 1, 0, 0)), Printed(kPlannerNet, Options(4, 1, 0, 0)));
}

// A fed node does not run: it neither reads nor makes a copy, and nothing waits for it.
TEST(LevelPlannerTest, WhatIsFed) {
  const std::string feed_g2 = "step { feeds { name: 'g2' dims: [8, 4] } }";
  EXPECT_EQ(Printed(kPlannerNet, Options(4, 1, 0, 0, feed_g2)), "\nf1:0 (128 bytes) -> g1[1]\n");
  const std::string feed_f2 = "step { feeds { name: 'f2' dims: [8, 4] } }";
  EXPECT_EQ(Verdicts(kPlannerNet, Options(4, 1, 0, 0, feed_f2))["f2:0"], "FED");
  EXPECT_THAT(Printed(kPlannerNet, Options(4, 1, 0, 1, feed_f2)), Not(HasSubstr("out => f2")));
}

TEST(LevelPlannerTest, EveryTensorHasAVerdict) {
  const std::string text = std::string(R"(
    v = VariableV2() {dtype=float32, shape=(8,4)}
    relu_v = Relu(v) {T=float32}
    vector = PyFunc(x) {Tin=[float32], Tout=[float32], _output_shapes=[(8)]}
    vague = PyFunc(x) {Tin=[float32], Tout=[float32]}
    ints = PyFunc(x) {Tin=[float32], Tout=[int32], _output_shapes=[(8,4)]}
    on_cpu = Relu(x) @/cpu:0 {T=float32}
    other = Relu(x) @/gpu:1 {T=float32}
    any = Placeholder() {dtype=float32}
    norm = FusedBatchNorm(any, any, any, any, any) {T=float32, is_training=false}
    last = AddN(v, relu_v, vector, vague, ints, on_cpu, other, norm, g1) {T=float32, N=9}
  )") + kPlannerNet;
  const v1::RewriteOptions options = Options(4, 1, 0, 0, R"(
      devices: '' level { excl_output_by_types: 'AddV2' incl_output_by_types:
      ['Relu', 'PyFunc', 'FusedBatchNorm'] })");
  const auto verdicts = Verdicts(text, options);
  EXPECT_EQ(verdicts, (std::map<std::string, std::string>{
                          {"v:0", "EXCLUDED"},
                          {"relu_v:0", "SWAPPED"},
                          {"vector:0", "LOW_RANK"},
                          {"vague:0", "LOW_RANK"},
                          {"ints:0", "HOST_MEMORY"},
                          {"on_cpu:0", "CPU_PRODUCER"},
                          {"other:0", "OTHER_DEVICE"},
                          {"any:0", "EXCLUDED"},
                          {"norm:0", "INACTIVE"},
                          {"x:0", "EXCLUDED"},
                          {"f1:0", "SWAPPED"},
                          {"f2:0", "NOT_INCLUDED"},
                          {"f3:0", "NO_LATE_CONSUMER"},
                          {"f4:0", "NOT_INCLUDED"},
                          {"g4:0", "NO_LATE_CONSUMER"},
                          {"g3:0", "EXCLUDED"},
                          {"g2:0", "EXCLUDED"},
                          {"g1:0", "EXCLUDED"},
                      }));
}

TEST(LevelPlannerTest, ExplainsNothingIfThatIsAsked) {
  const v1::RewriteOptions options = Options(4, 1, 0, 0, "decision_detail: DECISION_DETAIL_NONE");
  const TestFacts f(kPlannerNet, options.step());
  const StrategyResult result = testing::ValueOrDie(PlanWith(f, options), "plan");
  EXPECT_THAT(result.decisions, IsEmpty());
  EXPECT_EQ(result.plan.swaps.size(), 2u);
}

// A loop reads swapped tensors through its Enter; nothing inside it is swapped or read late.
TEST(LevelPlannerTest, Loops) {
  const std::string text = std::string(R"(
    while/enter = Enter(g1) {T=float32, frame_name="f"}
    while/late = Enter(f1) {T=float32, frame_name="f", is_constant=true}
    while/merge = Merge(while/enter, while/next) {T=float32}
    while/less = Less(while/merge, while/merge) {T=float32}
    while/cond = LoopCond(while/less)
    while/switch = Switch(while/merge, while/cond) {T=float32}
    while/body = AddV2(while/switch:1, while/late) {T=float32}
    while/body2 = Relu(while/body) {T=float32}
    while/body3 = AddV2(while/body2, while/body) {T=float32}
    while/next = NextIteration(while/body3) {T=float32}
    while/exit = Exit(while/switch) {T=float32}
    out = AddV2(while/exit, f2) {T=float32}
  )") + kPlannerNet;
  const auto verdicts = Verdicts(text, Options(1, 1, 0, 0));
  EXPECT_EQ(verdicts.at("while/body:0"), "INACTIVE");
  EXPECT_EQ(verdicts.at("while/enter:0"), "NO_LATE_CONSUMER");
  // As far as v2 knows, `out` depends only on the loop and on f2, which is active.
  const std::string plan = Printed(text, Options(5, 1, 0, 0));
  EXPECT_THAT(plan, HasSubstr("f1:0 (128 bytes) -> g1[1] after g3\n"));
  EXPECT_THAT(plan, HasSubstr("f2:0 (128 bytes) -> out[1]"));
  EXPECT_THAT(plan, Not(HasSubstr("-> while/body")));
}

TEST(LevelPlannerTest, AFunctionalLoopReadsNoSwapIn) {
  const std::string text = absl::StrCat(
      kPlannerNet, "w = While(g1, f1) {T=[float32,float32]}\nr = AddN(w, f4) {T=float32, N=2}\n");
  EXPECT_THAT(Printed(text, Options(1, 1, 0, 0)), Not(HasSubstr("w[")));
  const std::string only = R"(
    x = Placeholder() {dtype=float32, shape=(8,4)}
    f1 = Relu(x) {T=float32}
    f2 = Relu(f1) {T=float32}
    f3 = Relu(f2) {T=float32}
    w = While(f3, f1) {T=[float32,float32]}
  )";
  EXPECT_EQ(Verdicts(only, Options(1, 1, 0, 0))["f1:0"], "READ_BY_LOOP");
}

// ---- Synchronization ----

TEST(LevelPlannerTest, Mode1HoldsTheOtherReadersUntilTheTensorIsOut) {
  EXPECT_EQ(Printed(kPlannerNet, Options(4, 1, 0, 1)), R"(
f1:0 (128 bytes) -> g1[1] after g3
f1:0 out => f2
f2:0 (128 bytes) -> g2[1] after g4
f2:0 out => f3
)");
}

TEST(LevelPlannerTest, Mode2HoldsASwapInUntilTheOtherInputsAreThere) {
  EXPECT_EQ(Printed(kPlannerNet, Options(4, 1, 0, 2)), R"(
f1:0 (128 bytes) -> g1[1] after g2
f2:0 (128 bytes) -> g2[1] after g3
)");
  // `ahead` has no effect.
  EXPECT_EQ(Printed(kPlannerNet, Options(4, 3, 0, 2)), Printed(kPlannerNet, Options(4, 1, 0, 2)));
}

TEST(LevelPlannerTest, Mode3IsBoth) {
  EXPECT_EQ(Printed(kPlannerNet, Options(4, 1, 0, 3)), R"(
f1:0 (128 bytes) -> g1[1] after g2
f1:0 out => f2
f2:0 (128 bytes) -> g2[1] after g3
f2:0 out => f3
)");
}

// d reads two swapped tensors, one unswapped one and one from a CPU, and waits for two ops.
constexpr char kBeside[] = R"(
    x = Placeholder() {dtype=float32, shape=(8,4)}
    a = Relu(x) {T=float32}
    b = Tanh(x) {T=float32}
    u = AddV2(a, b) {T=float32}
    v = Relu(u) {T=float32}
    w = Tanh(v) {T=float32}
    cpu = Relu(w) @/cpu:0 {T=float32}
    ctl = NoOp(^u)
    ctl_cpu = NoOp(^a) @/cpu:0
    d = AddN(a, b, w, cpu, ^ctl, ^ctl_cpu) {T=float32, N=4}
)";

TEST(LevelPlannerTest, OtherInputsAreThoseThatStayOnAGpuAndControlInputs) {
  // Levels: a, b 1, u 2, v 3, w 4, cpu 5, d 6. w is on a GPU and read directly. A CPU op's output
  // is not waited for, but a control input is, wherever it runs.
  EXPECT_EQ(Printed(kBeside, Options(3, 1, 0, 2)), R"(
a:0 (128 bytes) -> d[0] after w, ctl, ctl_cpu
b:0 (128 bytes) -> d[1] after w, ctl, ctl_cpu
)");
}

TEST(LevelPlannerTest, WhoWaitsForASwapOut) {
  // For a: u, which reads it, and ctl_cpu, which waits for it; not d, which reads the swap-in. cpu
  // would not count, since it runs on a CPU.
  EXPECT_EQ(Printed(kBeside, Options(3, 1, 0, 1)), R"(
a:0 (128 bytes) -> d[0] after w
a:0 out => u
a:0 out => ctl_cpu
b:0 (128 bytes) -> d[1] after w
b:0 out => u
)");
  const std::string text = absl::StrCat(kBeside, "e = Relu(a) @/cpu:0 {T=float32}\n");
  EXPECT_EQ(Printed(text, Options(3, 1, 0, 1)), Printed(kBeside, Options(3, 1, 0, 1)));
}

// v2 synchronizes only swap-ins for a single consumer.
TEST(LevelPlannerTest, AGroupOfSeveralIsNotSynchronized) {
  EXPECT_EQ(Printed(kReaders, Options(4, 1, 1, 2)), "\nf:0 (128 bytes) -> d4[0], d4[2], d5[0]\n");
  // Two inputs of one consumer count as one consumer.
  EXPECT_EQ(Printed(kReaders, Options(4, 1, 0, 2)),
            "\nf:0 (128 bytes) -> d4[0], d4[2] after c7\nf:0 (128 bytes) -> d5[0] after d4\n");
}

// No live node may wait for one that may be dead.
TEST(LevelPlannerTest, SynchronizationMakesNothingDead) {
  const std::string text = R"(
    x = Placeholder() {dtype=float32, shape=(8,4)}
    p = Placeholder() {dtype=bool, shape=()}
    f = Relu(x) {T=float32}
    switch = Switch(f, p) {T=float32}
    no = Relu(switch) {T=float32}
    yes = Tanh(switch:1) {T=float32}
    no2 = Relu(no) {T=float32}
    merge = Merge(no2, yes) {T=float32, N=2}
    after = Relu(merge) {T=float32}
    d = AddV2(after, f) {T=float32}
    no3 = AddV2(no2, no) {T=float32}
    no4 = AddV2(no3, no) {T=float32}
  )";
  for (int mode = 0; mode <= 3; ++mode) {
    const v1::RewriteOptions options = Options(1, 1, 0, mode);
    const TestFacts f(text, options.step());
    const StrategyResult result = testing::ValueOrDie(PlanWith(f, options), "plan");
    EXPECT_GE(result.plan.swaps.size(), 2u);
    const auto may = [&](NodeId from, NodeId to) {
      EXPECT_TRUE(f.facts.control_flow().MayControl(from, to))
          << f.graph->name(from) << " => " << f.graph->name(to) << " in mode " << mode;
    };
    for (const PlannedSwap& swap : result.plan.swaps) {
      for (NodeId node : swap.deadlines) may(swap.tensor.node, node);
      for (const PlannedSwapIn& swap_in : swap.swap_ins) {
        for (NodeId trigger : swap_in.triggers) {
          for (const InputPosition& p : swap_in.consumers) may(trigger, p.node);
        }
      }
    }
  }
}

// ---- Several GPUs, tuned ----

constexpr int64_t kMiB = 1 << 20;

constexpr char kTwoGpus[] = R"(
    x = Placeholder() {dtype=float32, shape=(8,4)}
    f0 = Relu(x) @/gpu:0 {T=float32}
    g0 = Tanh(f0) @/gpu:0 {T=float32}
    h0 = Tanh(g0) @/gpu:0 {T=float32}
    i0 = AddV2(h0, f0) @/gpu:0 {T=float32}
    f1 = Relu(x) @/gpu:1 {T=float32}
    g1 = Tanh(f1) @/gpu:1 {T=float32}
    h1 = Tanh(g1) @/gpu:1 {T=float32}
    i1 = AddV2(h1, f1) @/gpu:1 {T=float32}
)";

// GPUs that need 30 and 40 MiB without swaps. With swaps, each fits into `alone_bytes` while the
// other one has unlimited memory; both together do not fit: `i1` runs out of memory.
class ApartSimulator : public PlanSimulator {
 public:
  ApartSimulator(const TestFacts& f, int64_t alone_bytes) : f_(f), alone_bytes_(alone_bytes) {}

  absl::StatusOr<StepResult> Simulate(const SwapPlan& plan, const StepTerms& terms,
                                      const StopToken&) override {
    const bool all = terms.budgets == StepTerms::Budgets::kAllGpus;
    together += all && !plan.swaps.empty();
    const int64_t peak =
        !plan.swaps.empty() ? alone_bytes_ : (!all && terms.gpu == 0 ? 30 : 40) * kMiB;
    if (terms.budget_bytes >= peak && (!all || plan.swaps.empty())) {
      return testing::FittingStep(0, 0, peak, /*num_gpus=*/2);
    }
    OutOfMemory oom;
    oom.device = GpuIndex(1);
    oom.node = f_.graph.Node("i1");
    oom.requested_bytes = 3 * kMiB;
    oom.in_use_bytes = 9 * kMiB;
    return testing::UnfitStep(oom, peak, 0, /*num_gpus=*/2);
  }

  absl::StatusOr<std::vector<DeviceBounds>> LowerBounds(const std::vector<NodeId>&,
                                                        const std::vector<bool>&,
                                                        const StopToken&) override {
    return absl::UnimplementedError("bounds");
  }

  int together = 0;  // Simulations of all GPUs, with swaps.

 private:
  const TestFacts& f_;
  const int64_t alone_bytes_;
};

// Tunes all GPUs, each with that budget.
v1::RewriteOptions WithBudget(int64_t budget_bytes) {
  v1::RewriteOptions options;
  options.mutable_level();
  options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(budget_bytes);
  options.mutable_step()->mutable_hardware()->set_allocator_reserve(0);
  return options;
}

// Whether or not each GPU alone fits in less than the budget, the error refers to the given budget,
// and the budget that it names is sufficient.
TEST(LevelPlannerTest, GpusThatDoNotFitTogetherNameTheBudgetThatWasGiven) {
  for (const auto& [alone_bytes, together] : {std::make_pair(kMiB, 4), {10 * kMiB, 1}}) {
    const v1::RewriteOptions options = WithBudget(10 * kMiB);
    const TestFacts f(kTwoGpus, options.step());
    ApartSimulator simulator(f, alone_bytes);
    const auto refused = PlanWith(f, options, &simulator);
    for (const char* part :
         {"each GPU fits into its 10.00 MiB (gpu_memory_bytes)", "not all at once",
          "on GPU '/gpu:1': at best, node 'i1' asks for 3.00 MiB while 9.00 MiB are in use",
          "40.00 MiB (41943040 bytes) of GPU memory would suffice without swapping"}) {
      EXPECT_THAT(refused, testing::FailsWith(absl::StatusCode::kFailedPrecondition,
                                              v1::ERROR_REASON_DOES_NOT_FIT, part));
    }
    EXPECT_EQ(simulator.together, together);
    const auto detail = [&](const char* key) { return testing::ErrorDetailOf(refused, key); };
    EXPECT_EQ(detail("device"), "/gpu:1");
    EXPECT_EQ(detail("node"), "i1");
    EXPECT_EQ(detail("budget_bytes"), absl::StrCat(10 * kMiB));
    EXPECT_EQ(detail("budget_source"), "OPTION");
    EXPECT_EQ(detail("smallest_budget_bytes"), absl::StrCat(40 * kMiB));
  }
  const v1::RewriteOptions options = WithBudget(40 * kMiB);
  const TestFacts f(kTwoGpus, options.step());
  ApartSimulator enough(f, kMiB);
  const auto planned = PlanWith(f, options, &enough);
  ASSERT_THAT(planned, testing::IsOk());
  EXPECT_THAT(planned->plan.swaps, IsEmpty());
}

}  // namespace
}  // namespace spillway::core
