#include "rewrite_core/analysis/flow/loops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/testing/const_text.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using testing::ConstText;
using testing::IsInvalid;
using testing::TestFacts;

// A counting loop: `NAME_i` goes from `start` by `op` with `step`, while `condition` holds for it
// and `bound`; these are nodes outside the loop. `body` may read `NAME_now`, the counter.
std::string CountingLoop(const std::string& name, const std::string& start,
                         const std::string& condition, const std::string& bound,
                         const std::string& op, const std::string& step,
                         const std::string& more = "") {
  const std::string frame = absl::StrCat(", frame_name=\"", name, "\"}\n");
  return absl::StrCat(
      name, "_i = Enter(", start, ") {T=int32", frame,                                     //
      name, "_bound = Enter(", bound, ") {T=int32, is_constant=true", frame,               //
      name, "_merge = Merge(", name, "_i, ", name, "_next) {T=int32, N=2}\n",              //
      name, "_compare = ", condition, "(", name, "_merge, ", name, "_bound) {T=int32}\n",  //
      name, "_cond = LoopCond(", more.empty() ? name + "_compare" : name + "_all", ")\n",  //
      name, "_switch = Switch(", name, "_merge, ", name, "_cond) {T=int32}\n",             //
      name, "_now = Identity(", name, "_switch:1) {T=int32}\n",                            //
      name, "_step = Enter(", step, ") {T=int32, is_constant=true", frame,                 //
      name, "_added = ", op, "(", name, "_now, ", name, "_step) {T=int32}\n",              //
      name, "_next = NextIteration(", name, "_added) {T=int32}\n",                         //
      name, "_exit = Exit(", name, "_switch) {T=int32}\n", more);
}

int64_t CountOf(const std::string& text, const std::string& loop, const v1::Step& step = {}) {
  const TestFacts test(text, step);
  test.Compute({Fact::kLoops});
  for (const Loops::Loop& found : test.facts.loops().loops()) {
    if (found.name == loop) return found.count;
  }
  ADD_FAILURE() << "there is no loop " << loop;
  return -2;
}

struct CountCase {
  std::string name;
  int start;
  std::string condition;
  int bound;
  std::string op;
  int step;
  int64_t count;
};

class LoopCountTest : public ::testing::TestWithParam<CountCase> {};

TEST_P(LoopCountTest, IsThatOfTheCondition) {
  const CountCase& c = GetParam();
  EXPECT_EQ(CountOf(absl::StrCat(ConstText("a", {}, {c.start}), ConstText("b", {}, {c.bound}),
                                 ConstText("s", {}, {c.step}),
                                 CountingLoop("w", "a", c.condition, "b", c.op, "s")),
                    "w"),
            c.count);
}

INSTANTIATE_TEST_SUITE_P(
    Loops, LoopCountTest,
    ::testing::Values(CountCase{"UpToTen", 0, "Less", 10, "Add", 1, 10},
                      CountCase{"ByThree", 0, "Less", 10, "AddV2", 3, 4},
                      CountCase{"Inclusive", 1, "LessEqual", 10, "AddV2", 3, 4},
                      CountCase{"Down", 10, "Greater", 0, "Sub", 1, 10},
                      CountCase{"DownInclusive", 10, "GreaterEqual", 1, "Sub", 1, 10},
                      CountCase{"DownByAdding", 10, "GreaterEqual", 0, "AddV2", -2, 6},
                      CountCase{"UntilEqual", 0, "NotEqual", 12, "AddV2", 3, 4},
                      CountCase{"NeverEqual", 0, "NotEqual", 10, "AddV2", 3, kUnknownCount},
                      CountCase{"NotOnce", 5, "Less", 5, "AddV2", 1, 0},
                      CountCase{"ForEver", 0, "Less", 10, "AddV2", 0, kUnknownCount},
                      CountCase{"AwayFromTheBound", 0, "Less", 10, "Sub", 1, kUnknownCount},
                      CountCase{"Often", 0, "Less", 2'000'000'000, "AddV2", 1, 2'000'000'000},
                      CountCase{"OtherCondition", 0, "Equal", 10, "AddV2", 1, kUnknownCount},
                      CountCase{"OtherStep", 1, "Less", 10, "Mul", 2, kUnknownCount}),
    testing::CaseName());

TEST(LoopsTest, ANextIterationThatReadsNothing) {
  const std::string loop = absl::StrReplaceAll(CountingLoop("w", "a", "Less", "b", "AddV2", "s"),
                                               {{"NextIteration(w_added)", "NextIteration()"}});
  EXPECT_EQ(CountOf(absl::StrCat(ConstText("a", {}, {0}), ConstText("b", {}, {10}),
                                 ConstText("s", {}, {1}), loop),
                    "w"),
            kUnknownCount);
}

constexpr char kBad[] = "x = Placeholder() {dtype=int32, shape=()}\n";

TEST(LoopsTest, TheLeastOfSeveralConditions) {
  const std::string numbers = absl::StrCat(
      kBad, ConstText("zero", {}, {0}), ConstText("one", {}, {1}), ConstText("most", {}, {7}),
      "data = Placeholder() {dtype=float32, shape=(?,9)}\n",
      "dims = Shape(data) {T=float32, out_type=int32}\n", ConstText("at", {1}, {1}),
      ConstText("end", {1}, {2}), ConstText("by", {1}, {1}),
      "nine = StridedSlice(dims, at, end, by) {T=int32, Index=int32, "
      "shrink_axis_mask=1}\n");
  // A dimension of 9 but at most 7 iterations, and an undecidable condition.
  const std::string both =
      "w_most = Enter(most) {T=int32, is_constant=true, frame_name=\"w\"}\n"
      "w_early = Less(w_merge, w_most) {T=int32}\n"
      "w_data = Enter(x) {T=int32, is_constant=true, frame_name=\"w\"}\n"
      "w_open = Less(w_data, w_merge) {T=int32}\n"
      "w_two = LogicalAnd(w_compare, w_early)\n"
      "w_all = LogicalAnd(w_two, w_open)\n";
  EXPECT_EQ(CountOf(numbers + CountingLoop("w", "zero", "Less", "nine", "AddV2", "one"), "w"), 9);
  EXPECT_EQ(CountOf(numbers + CountingLoop("w", "zero", "Less", "nine", "AddV2", "one", both), "w"),
            7);
  // Nothing is known about fed values.
  EXPECT_EQ(CountOf(numbers + CountingLoop("w", "zero", "Less", "x", "AddV2", "one"), "w"),
            kUnknownCount);
}

// The gradient's loop counts down from the forward loop's count.
TEST(LoopsTest, WhatAnotherLoopCounted) {
  const std::string text =
      absl::StrCat(ConstText("zero", {}, {0}), ConstText("one", {}, {1}), ConstText("n", {}, {12}),
                   CountingLoop("back", "w_exit", "GreaterEqual", "one", "Sub", "one"),
                   CountingLoop("w", "zero", "Less", "n", "AddV2", "one"));
  EXPECT_EQ(CountOf(text, "w"), 12);
  EXPECT_EQ(CountOf(text, "back"), 12);
}

// A functional loop carries its inputs as variables that it does not change.
TEST(LoopsTest, ABoundThatIsCarried) {
  const std::string text =
      absl::StrCat(ConstText("zero", {}, {0}), ConstText("one", {}, {1}), ConstText("n", {}, {12}),
                   CountingLoop("w", "zero", "Less", "n", "AddV2", "one"),
                   CountingLoop("back", "zero", "Equal", "n", "AddV2", "one",
                                "carried = Enter(w_exit) {T=int32, frame_name=\"back\"}\n"
                                "carried_merge = Merge(carried, carried_next) {T=int32, N=2}\n"
                                "carried_switch = Switch(carried_merge, back_cond) {T=int32}\n"
                                "carried_now = Identity(carried_switch:1) {T=int32}\n"
                                "carried_next = NextIteration(carried_now) {T=int32}\n"
                                "back_all = Less(back_merge, carried_merge) {T=int32}\n"));
  EXPECT_EQ(CountOf(text, "back"), 12);
}

TEST(LoopsTest, LoopsInLoopsAndTheOrderOfAll) {
  const std::string numbers =
      absl::StrCat(ConstText("zero", {}, {0}), ConstText("one", {}, {1}), ConstText("n", {}, {5}));
  const std::string inner =
      "in_i = Enter(w_now) {T=int32, frame_name=\"in\"}\n"
      "in_merge = Merge(in_i, in_next) {T=int32, N=2}\n"
      "in_end = Enter(w_bound) {T=int32, is_constant=true, frame_name=\"in\"}\n"
      "in_compare = Less(in_merge, in_end) {T=int32}\n"
      "in_cond = LoopCond(in_compare)\n"
      "in_switch = Switch(in_merge, in_cond) {T=int32}\n"
      "in_body = Relu(in_switch:1) {T=int32}\n"
      "in_next = NextIteration(in_body) {T=int32}\n"
      "in_exit = Exit(in_switch) {T=int32}\n";
  v1::Step step;
  step.add_loop_counts()->set_name("in");
  step.mutable_loop_counts(0)->set_count(3);
  const TestFacts test(
      absl::StrCat(numbers, CountingLoop("w", "zero", "Less", "n", "AddV2", "one"), inner), step);
  test.Compute({Fact::kLoops});
  const Loops& loops = test.facts.loops();
  const auto& graph = test.graph;
  EXPECT_EQ(loops.runs(graph["in_body"]), 15);
  EXPECT_EQ(loops.runs(graph["w_now"]), 5);
  EXPECT_EQ(loops.runs(graph["in_i"]), 5);  // Enters once in each of them.
  EXPECT_EQ(loops.runs(graph["in_exit"]), 5);
  EXPECT_EQ(loops.runs(graph["w_exit"]), 1);
  EXPECT_EQ(loops.loop(graph["w_exit"]), nullptr);
  EXPECT_EQ(loops.last_value(graph["w_exit"]), graph["w_next"]);
  EXPECT_EQ(loops.last_value(graph["w_now"]), kNoNode);
  std::vector<int> position(graph->num_nodes(), -1);
  ASSERT_EQ(loops.order().size(), position.size());
  for (size_t i = 0; i < loops.order().size(); ++i)
    position[loops.order()[i]] = static_cast<int>(i);
  EXPECT_LT(position[graph["in_next"]], position[graph["in_exit"]]);
  EXPECT_LT(position[graph["w_next"]], position[graph["w_exit"]]);
}

TEST(LoopsTest, Given) {
  const std::string text =
      absl::StrCat(kBad, ConstText("zero", {}, {0}), ConstText("one", {}, {1}),
                   ConstText("n", {}, {12}), CountingLoop("w", "zero", "Less", "n", "AddV2", "one"),
                   CountingLoop("open", "zero", "Less", "x", "AddV2", "one"));
  v1::Step step;
  step.add_loop_counts()->set_name("open");
  const auto compute = [&step](const std::string& nodes) {
    const testing::TestGraph graph(nodes);
    return StepFacts(*graph, step).Compute({Fact::kLoops}, {});
  };
  EXPECT_THAT(compute(text), IsInvalid(v1::ERROR_REASON_BAD_OPTION, "loop count of 'open' is 0"));
  step.mutable_loop_counts(0)->set_count(-3);
  EXPECT_THAT(compute(text), IsInvalid(v1::ERROR_REASON_BAD_OPTION, "is -3; give 1 or more"));
  step.mutable_loop_counts(0)->set_count(30);
  EXPECT_EQ(CountOf(text, "open", step), 30);
  EXPECT_EQ(CountOf(text, "w", step), 12);
  *step.add_loop_counts() = step.loop_counts(0);
  EXPECT_THAT(compute(text), IsInvalid(v1::ERROR_REASON_BAD_OPTION, "is given twice"));
  step.mutable_loop_counts(1)->set_name("w");
  EXPECT_EQ(CountOf(text, "w", step), 30);  // The given count applies.
  step.mutable_loop_counts(1)->set_name("nowhere");
  EXPECT_THAT(compute(text),
              IsInvalid(v1::ERROR_REASON_NAME_MATCHES_NOTHING, "names no loop of the graph"));
  EXPECT_THAT(compute("x = Placeholder() {dtype=float32}"),
              IsInvalid(v1::ERROR_REASON_NAME_MATCHES_NOTHING, "the graph has no loops"));
}

// A body that reads a node behind its own loop: TensorFlow would wait forever, Spillway does not.
TEST(LoopsTest, ALoopThatWaitsForItself) {
  const std::string text =
      absl::StrCat(ConstText("zero", {}, {0}), ConstText("one", {}, {1}), ConstText("n", {}, {5}),
                   CountingLoop("w", "zero", "Less", "n", "AddV2", "late"),
                   "late = Maximum(w_exit, one) {T=int32}\n");
  const TestFacts test(text);
  test.Compute({Fact::kLoops});
  EXPECT_TRUE(test.facts.loops().order().empty());
  EXPECT_EQ(test.facts.loops().last_value(test.graph["w_exit"]), kNoNode);
}

}  // namespace
}  // namespace spillway::core
