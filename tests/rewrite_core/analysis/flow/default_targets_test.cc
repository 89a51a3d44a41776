#include "rewrite_core/analysis/flow/default_targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/function_graph.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TestGraph;
using testing::ValueOrDie;

std::vector<std::string> Targets(const TestGraph& graph) {
  const Topology topology = ValueOrDie(Topology::Build(*graph, {}), "topology");
  const Shapes shapes = ValueOrDie(Shapes::Infer(*graph, topology, {}, {}), "shapes");
  const BackwardPart backward = ValueOrDie(FindBackwardPart(*graph, topology, {}), "backward");
  std::vector<std::string> names;
  for (NodeId id :
       ValueOrDie(FindDefaultTargets(*graph, topology, shapes, backward, {}), "targets")) {
    names.emplace_back(graph->name(id));
  }
  return names;
}

std::vector<std::string> Targets(const std::string& text) { return Targets(TestGraph(text)); }

// A net of one layer, y = relu(v x), with its gradient and its update `up`, but without the loss.
constexpr char kNet[] =
    "v = VariableV2() {dtype=float32, shape=(3)}\n"
    "read = Identity(v) {T=float32}\n"
    "x = Placeholder() {dtype=float32, shape=(3)}\n"
    "lr = Const() {dtype=float32, _output_shapes=[()]}\n"
    "axes = Const() {dtype=int32, _output_shapes=[(1)]}\n"
    "y = Mul(read, x) {T=float32}\n"
    "r = Relu(y) {T=float32}\n"
    "g = ReluGrad(x, r) {T=float32}\n"
    "gv = Mul(g, x) {T=float32}\n"
    "up = ApplyGradientDescent(v, lr, gv) {T=float32}\n"
    "init = Assign(v, lr) {T=float32}\n";

std::string With(const std::string& more) { return absl::StrCat(kNet, more); }

TEST(DefaultTargetsTest, NoneWithoutUpdates) {
  EXPECT_THAT(Targets("a = Abs() {T=float32}\nb = Relu(a) {T=float32}"), IsEmpty());
}

TEST(DefaultTargetsTest, TheUpdatesAlone) { EXPECT_THAT(Targets(kNet), ElementsAre("up")); }

// The graph of a tf.function: the updates are in a function, and the loss is a scalar before them.
TEST(DefaultTargetsTest, UpdatesInAFunction) {
  const TestGraph graph = TestGraph::FromBytes(testing::GraphWithFunctions(
      R"(
      w = Placeholder() {dtype=resource, shape=()}
      read = ReadVariableOp(w) {dtype=float32, _output_shapes=[(3)]}
      x = Placeholder() {dtype=float32, shape=(3)}
      axes = Const() {dtype=int32, _output_shapes=[(1)]}
      y = Mul(read, x) {T=float32}
      r = Relu(y) {T=float32}
      loss = Mean(r, axes) {T=float32, Tidx=int32, _output_shapes=[()]}
      g = ReluGrad(x, r) {T=float32}
      gw = Mul(g, x) {T=float32}
      up = StatefulPartitionedCall(gw, w) {Tout=[], f="update"}
      group = NoOp(^up)
      )",
      {testing::Function("update", "gradient:float32 variable:resource", "",
                         "inner = PartitionedCall(variable, gradient) {Tout=[], f=\"inner\"}", {}),
       testing::Function("inner", "v:resource g:float32", "", R"(
           named = Identity(v) {T=resource}
           up = AssignSubVariableOp(named:output:0, g) {dtype=float32}
           )",
                         {})}));
  EXPECT_THAT(Targets(graph), ElementsAre("up", "group", "loss"));
}

TEST(DefaultTargetsTest, WhatWaitsForThem) {
  EXPECT_THAT(Targets(With("group = NoOp(^up)\n"
                           "step = VariableV2() {dtype=int64, shape=()}\n"
                           "one = Const() {dtype=int64}\n"
                           "count = AssignAdd(step, one, ^group) {T=int64}\n"
                           "other = VariableV2() {dtype=int64, shape=()}\n"
                           "train = NoOp(^count)\n"
                           "eval = AssignAdd(other, one) {T=int64}\n"
                           "save = NoOp(^read)")),
              ElementsAre("up", "train"));
}

// Like slim's train op, which is the loss behind control edges.
TEST(DefaultTargetsTest, ATrainOpMayHaveAValue) {
  EXPECT_THAT(Targets(With("train = Identity(r, ^up) {T=float32}")), ElementsAre("up", "train"));
}

TEST(DefaultTargetsTest, NotWhatReadsAVariableBack) {
  EXPECT_THAT(Targets(With("back = Identity(up) {T=float32}")), ElementsAre("up"));
  // v2: the write is in the train op, and is read back for possible readers.
  EXPECT_THAT(Targets("v = VarHandleOp() {dtype=float32, shape=(3)}\n"
                      "read = ReadVariableOp(v) {dtype=float32}\n"
                      "x = Placeholder() {dtype=float32, shape=(3)}\n"
                      "lr = Const() {dtype=float32, _output_shapes=[()]}\n"
                      "y = Mul(read, x) {T=float32}\n"
                      "r = Relu(y) {T=float32}\n"
                      "g = ReluGrad(x, r) {T=float32}\n"
                      "gv = Mul(g, x) {T=float32}\n"
                      "up = ResourceApplyGradientDescent(v, lr, gv) {T=float32}\n"
                      "beta = VarHandleOp() {dtype=float32, shape=()}\n"
                      "beta2 = AssignVariableOp(beta, lr, ^up) {dtype=float32}\n"
                      "back = ReadVariableOp(beta, ^beta2) {dtype=float32}\n"
                      "back2 = ReadVariableOp(v, ^up) {dtype=float32}"),
              ElementsAre("up", "beta2"));
}

constexpr char kAverage[] =
    "mean = VariableV2() {dtype=float32, shape=(3)}\n"
    "old = Identity(mean) {T=float32}\n"
    "diff = Sub(old, y) {T=float32}\n"
    "part = Mul(diff, lr) {T=float32}\n"
    "avg = AssignSub(mean, part) {T=float32}\n";

TEST(DefaultTargetsTest, MovingAveragesThatNothingGroups) {
  EXPECT_THAT(Targets(With(kAverage)), ElementsAre("up", "avg"));
  EXPECT_THAT(Targets(With("mean = VarHandleOp() {dtype=float32, shape=(3)}\n"
                           "old = ReadVariableOp(mean) {dtype=float32}\n"
                           "diff = Sub(old, y) {T=float32}\n"
                           "part = Mul(diff, lr) {T=float32}\n"
                           "avg = AssignSubVariableOp(mean, part) {dtype=float32}")),
              ElementsAre("up", "avg"));
}

// The second tower's updates are not run if the train op groups only those of the first.
TEST(DefaultTargetsTest, TheTrainOpSaysWhichAverages) {
  const std::string both = absl::StrCat(kAverage,
                                        "other = VariableV2() {dtype=float32, shape=(3)}\n"
                                        "old2 = Identity(other) {T=float32}\n"
                                        "diff2 = Sub(old2, r) {T=float32}\n"
                                        "avg2 = AssignSub(other, diff2) {T=float32}\n");
  EXPECT_THAT(Targets(With(both)), ElementsAre("up", "avg", "avg2"));
  EXPECT_THAT(Targets(With(absl::StrCat(both, "train = NoOp(^up, ^avg)"))),
              ElementsAre("up", "train"));
}

// Sums of inputs belong to a metric, counters count, and initializers read nothing from the step.
TEST(DefaultTargetsTest, NoMetricsCountersAndInitializers) {
  EXPECT_THAT(Targets(With("total = VariableV2() {dtype=float32, shape=(3)}\n"
                           "metric = AssignAdd(total, r) {T=float32}\n"
                           "zero = Const() {dtype=float32, _output_shapes=[(3)]}\n"
                           "reset = Assign(total, zero) {T=float32}\n"
                           "decay = Mul(total, lr) {T=float32}\n"
                           "shrink = Assign(total, decay) {T=float32}")),
              ElementsAre("up"));
}

// The graph with a loss: the mean of `e`, which otherwise only the gradient reads.
constexpr char kLoss[] =
    "v = VariableV2() {dtype=float32, shape=(3)}\n"
    "read = Identity(v) {T=float32}\n"
    "x = Placeholder() {dtype=float32, shape=(3)}\n"
    "lr = Const() {dtype=float32, _output_shapes=[()]}\n"
    "axes = Const() {dtype=int32}\n"
    "y = Mul(read, x) {T=float32}\n"
    "r = Relu(y) {T=float32}\n"
    "e = Exp(r) {T=float32}\n"
    "ge = Mul(e, x) {T=float32}\n"
    "g = ReluGrad(ge, r) {T=float32}\n"
    "gv = Mul(g, x) {T=float32}\n"
    "up = ApplyGradientDescent(v, lr, gv) {T=float32}\n"
    "loss = Sum(e, axes) {T=float32, Tidx=int32, keep_dims=false, _output_shapes=[()]}\n";

TEST(DefaultTargetsTest, TheLoss) {
  EXPECT_THAT(Targets(kLoss), ElementsAre("up", "loss"));
  // The last node computed from it.
  EXPECT_THAT(Targets(absl::StrCat(kLoss,
                                   "one = Const() {dtype=float32, _output_shapes=[()]}\n"
                                   "dice = Sub(one, loss) {T=float32, _output_shapes=[()]}")),
              ElementsAre("up", "dice"));
}

TEST(DefaultTargetsTest, NoAccuracyNoSummaryNoPenalty) {
  EXPECT_THAT(
      Targets(absl::StrCat(kLoss,
                           "hit = Equal(e, x) {T=float32}\n"
                           "hits = Cast(hit) {SrcT=bool, DstT=float32}\n"
                           "accuracy = Sum(hits, axes) {T=float32, Tidx=int32, keep_dims=false, "
                           "_output_shapes=[()]}\n"
                           "tag = Const() {dtype=string, _output_shapes=[()]}\n"
                           "summary = ScalarSummary(tag, loss) {T=float32}\n"
                           "l2 = L2Loss(read) {T=float32, _output_shapes=[()]}\n"
                           "total = AddV2(loss, l2) {T=float32, _output_shapes=[()]}\n"
                           "activation = Sum(r, axes) {T=float32, Tidx=int32, keep_dims=false, "
                           "_output_shapes=[()]}")),
      ElementsAre("up", "loss"));
}

}  // namespace
}  // namespace spillway::core
