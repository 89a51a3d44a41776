#include "rewrite_core/strategy/level/inactive_ops.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TestFacts;

// The names of the inactive ops, in order of the graph.
std::vector<std::string> Inactive(const std::string& text, Phase phase = Phase::kTraining) {
  const TestFacts f(text);
  const NodeFlags flags = testing::ValueOrDie(
      FindInactiveOps(*f.graph, f.facts.control_flow(), phase, StopToken()), "inactive ops");
  std::vector<std::string> names;
  for (NodeId id(0); id < f.graph->num_nodes(); ++id) {
    if (flags[id]) names.emplace_back(f.graph->name(id));
  }
  return names;
}

// The ops of the other mode. v2 checks only these two types: later versions stay active.
TEST(InactiveOpsTest, BatchNormalizationOfTheOtherMode) {
  const std::string text = R"(
      x = Placeholder() {dtype=float32}
      train = FusedBatchNorm(x, x, x, x, x) {T=float32, is_training=true}
      infer = FusedBatchNorm(x, x, x, x, x) {T=float32, is_training=false}
      unsaid = FusedBatchNorm(x, x, x, x, x) {T=float32}
      train_grad = FusedBatchNormGrad(x, x, x, x, x) {T=float32, is_training=true}
      infer_grad = FusedBatchNormGrad(x, x, x, x, x) {T=float32, is_training=false}
      v3 = FusedBatchNormV3(x, x, x, x, x) {T=float32, U=float32, is_training=false}
      dropout = PyFunc(x) {Tin=[float32], Tout=[float32], is_training=false}
  )";
  EXPECT_THAT(Inactive(text), ElementsAre("infer", "infer_grad"));
  // The attribute's default is true.
  EXPECT_THAT(Inactive(text, Phase::kInference), ElementsAre("train", "unsaid", "train_grad"));
}

constexpr char kNorm[] = R"(
      x = Placeholder() {dtype=float32}
      c = Const() {dtype=float32}
      norm = FusedBatchNorm(x, x, x, x, x) {T=float32, is_training=false}
)";

TEST(InactiveOpsTest, WhatDependsOnInactiveOpsAlone) {
  EXPECT_THAT(Inactive(std::string(kNorm) + R"(
      alone = Relu(norm) {T=float32}
      both_ports = AddV2(norm, norm:1) {T=float32}
      with_active = AddV2(norm, x) {T=float32}
      behind_active = Relu(with_active) {T=float32}
      with_constant = AddV2(c, alone) {T=float32}
      waits = Relu(norm, ^x) {T=float32}
      only_waits = NoOp(^alone, ^with_constant)
  )"),
              ElementsAre("norm", "alone", "both_ports", "with_constant", "only_waits"));
}

// The side that is not taken may join one that is.
TEST(InactiveOpsTest, MergeAndSwitchStay) {
  EXPECT_THAT(Inactive(std::string(kNorm) + R"(
      p = Placeholder() {dtype=bool}
      merge = Merge(norm, norm) {T=float32}
      behind = Relu(merge) {T=float32}
      pred = LogicalNot(norm)
      switch = Switch(norm, pred) {T=float32}
  )"),
              ElementsAre("norm", "pred"));
}

TEST(InactiveOpsTest, OneInactiveInputIsEnoughForVariable) {
  EXPECT_THAT(Inactive(std::string(kNorm) + R"(
      scope/ReadVariableOp = AddV2(norm, x) {T=float32}
      Variable/read = AddV2(norm, x) {T=float32}
  )"),
              ElementsAre("norm", "scope/ReadVariableOp"));
}

// Keras's placeholder determines which side of a Switch is taken: output 1 in training.
TEST(InactiveOpsTest, TheSideThatTheLearningPhaseDoesNotTake) {
  const std::string text = R"(
      x = Placeholder() {dtype=float32}
      block/keras_learning_phase = Placeholder() {dtype=bool}
      other = Placeholder() {dtype=bool}
      switch = Switch(x, block/keras_learning_phase) {T=float32}
      infer = Relu(switch) {T=float32}
      infer2 = Relu(infer) {T=float32}
      train = Relu(switch:1) {T=float32}
      nested = Switch(switch, other) {T=float32}
      waits = Relu(x, ^switch) {T=float32}
      merge = Merge(infer2, train) {T=float32}
      free = Switch(x, other) {T=float32}
      free_infer = Relu(free) {T=float32}
  )";
  EXPECT_THAT(Inactive(text), ElementsAre("infer", "infer2"));
  EXPECT_THAT(Inactive(text, Phase::kInference), ElementsAre("train"));
}

constexpr char kLoop[] = R"(
    x = Placeholder() {dtype=float32}
    while/enter = Enter(x) {T=float32, frame_name="f"}
    while/merge = Merge(while/enter, while/next) {T=float32}
    while/less = Less(while/merge, while/merge) {T=float32}
    while/cond = LoopCond(while/less)
    while/switch = Switch(while/merge, while/cond) {T=float32}
    while/next = NextIteration(while/switch:1) {T=float32}
    while/exit = Exit(while/switch) {T=float32}
    out = Relu(while/exit) {T=float32}
)";

TEST(InactiveOpsTest, OpsOfLoopsButTheWaysInAndOut) {
  EXPECT_THAT(Inactive(kLoop), ElementsAre("while/merge", "while/less", "while/cond",
                                           "while/switch", "while/next", "while/exit", "out"));
}

TEST(InactiveOpsTest, NothingInAPlainGraph) {
  EXPECT_THAT(Inactive("a = Placeholder()\nb = Relu(a)\nc = Switch(b, b)\nd = Relu(c)"), IsEmpty());
}

}  // namespace
}  // namespace spillway::core
