#include "rewrite_core/plan/state_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "rewrite_core/graph/attr_value.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/training_text.h"

namespace spillway::core {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::SizeIs;
using testing::TestStep;
using testing::TrainedLayers;
using testing::ValueOrDie;

v1::Step TrainStep() {
  v1::Step step;
  step.add_targets("train");
  return step;
}

struct StateGroupsTest : ::testing::Test {
  void Find(const std::string& text, v1::Step of = TrainStep()) {
    step_ = std::make_unique<TestStep>(text, std::move(of));
    groups_ = std::make_unique<StateGroups>(
        ValueOrDie(StateGroups::Find(step_->facts, StopToken()), "groups"));
  }
  void FindWith(const std::string& more) { Find(TrainedLayers() + more); }
  void FindReplaced(absl::string_view from, absl::string_view to) {
    const std::string text = absl::StrReplaceAll(TrainedLayers(), {{from, to}});
    ASSERT_NE(text, TrainedLayers()) << from;
    Find(text);
  }

  std::vector<std::string> Names(const std::vector<NodeId>& nodes) const {
    std::vector<std::string> names;
    for (NodeId id : nodes) names.emplace_back(step_->graph->name(id));
    return names;
  }
  const StateGroup& group(size_t i) const { return groups_->groups()[i]; }
  std::vector<std::string> Moves(const std::vector<size_t>& chosen) const {
    return Names(ValueOrDie(groups_->NodesOf(chosen, StopToken()), "nodes"));
  }
  // The first group stays, because of this node.
  void ExpectKept(v1::StateKept why, absl::string_view node) const {
    ASSERT_THAT(groups_->groups(), Not(IsEmpty()));
    EXPECT_EQ(v1::StateKept_Name(group(0).kept), v1::StateKept_Name(why));
    ASSERT_NE(group(0).in_the_way, kNoNode);
    EXPECT_EQ(step_->graph->name(group(0).in_the_way), node);
  }

  std::unique_ptr<TestStep> step_;
  std::unique_ptr<StateGroups> groups_;
};

TEST_F(StateGroupsTest, AVariableItsSlotAndWhatHoldsThem) {
  Find(TrainedLayers());
  ASSERT_THAT(groups_->groups(), SizeIs(2));
  EXPECT_THAT(Names(group(0).variables), ElementsAre("a/w", "a/m"));
  EXPECT_THAT(Names(group(0).holders), ElementsAre("a/assign", "a/read", "a/train"));
  EXPECT_THAT(Names(group(0).updates), ElementsAre("a/train"));
  EXPECT_EQ(group(0).bytes, 2 * 256 * 256 * 4);
  EXPECT_EQ(group(0).kept, v1::STATE_KEPT_UNSPECIFIED);
  EXPECT_EQ(group(1).kept, v1::STATE_KEPT_UNSPECIFIED);
}

TEST_F(StateGroupsTest, TheConeMovesAlong) {
  Find(TrainedLayers());
  EXPECT_THAT(Moves({0}), ElementsAre("a/w", "a/m", "a/assign", "a/read", "a/scaled", "a/train"));
  EXPECT_THAT(Moves({0, 1}), SizeIs(12));
  EXPECT_THAT(Moves({}), IsEmpty());
}

TEST_F(StateGroupsTest, WhatOthersReadIsNoCone) {
  FindWith("norm = L2Loss(a/scaled) @/gpu:0 {T=float32, _output_shapes=[()]}\n");
  EXPECT_THAT(Moves({0}), ElementsAre("a/w", "a/m", "a/assign", "a/read", "a/train"));
}

TEST_F(StateGroupsTest, NorIsAReductionOrASumOfTwoLargeTensors) {
  for (const char* text : {"MatMul(a/grad, a/grad)", "AddV2(a/grad, other)"}) {
    Find(absl::StrCat(absl::StrReplaceAll(TrainedLayers(), {{"Mul(a/grad, a/scale)", text}}),
                      "other = MatMul(x, x) @/gpu:0 {T=float32, transpose_a=true, "
                      "_output_shapes=[(256,256)]}\n"));
    EXPECT_THAT(Moves({0}), Not(Contains("a/scaled"))) << text;
  }
}

TEST_F(StateGroupsTest, DecayReadsWhatIsOnTheHost) {
  FindReplaced("a/scaled = Mul(a/grad, a/scale) @/gpu:0 {T=float32, _output_shapes=[(256,256)]}",
               "a/decay = Mul(a/read, a/scale) @/gpu:0 {T=float32, _output_shapes=[(256,256)]}\n"
               "a/scaled = AddV2(a/grad, a/decay) @/gpu:0 {T=float32, "
               "_output_shapes=[(256,256)]}");
  EXPECT_THAT(Moves({0}), IsSupersetOf({"a/decay", "a/scaled"}));
}

TEST_F(StateGroupsTest, ASlotByItsName) {
  FindWith(
      "a/w/ema = VariableV2() @/gpu:0 {dtype=float32, shape=(256,256), "
      "_output_shapes=[(256,256)]}\n"
      "a/w/step = VariableV2() @/gpu:0 {dtype=float32, shape=(), _output_shapes=[()]}\n");
  ASSERT_THAT(groups_->groups(), SizeIs(2));
  EXPECT_THAT(Names(group(0).variables), ElementsAre("a/w", "a/m", "a/w/ema"));
}

TEST_F(StateGroupsTest, NothingThatTheStepDoesNotUpdate) {
  v1::Step step;
  step.add_targets("b/train");
  Find(TrainedLayers(), step);
  ASSERT_THAT(groups_->groups(), SizeIs(1));
  EXPECT_THAT(Names(group(0).variables), ElementsAre("b/w", "b/m"));
}

TEST_F(StateGroupsTest, NothingThatIsOnTheHost) {
  Find(absl::StrReplaceAll(TrainedLayers(),
                           {{"a/w = VariableV2() @/gpu:0", "a/w = VariableV2() @/cpu:0"},
                            {"a/m = VariableV2() @/gpu:0", "a/m = VariableV2() @/cpu:0"}}));
  ASSERT_THAT(groups_->groups(), SizeIs(1));
  EXPECT_THAT(Names(group(0).variables), ElementsAre("b/w", "b/m"));
}

TEST_F(StateGroupsTest, StaysOnSeveralDevices) {
  FindReplaced("a/m = VariableV2() @/gpu:0", "a/m = VariableV2() @/gpu:1");
  ExpectKept(v1::STATE_KEPT_DEVICES, "a/m");
}

TEST_F(StateGroupsTest, StaysIfItIsSmall) {
  Find(absl::StrReplaceAll(TrainedLayers(), {{"(256,256)", "(64,64)"}}));
  ExpectKept(v1::STATE_KEPT_SIZE, "a/w");
}

TEST_F(StateGroupsTest, StaysIfItIsNotFloatingPoint) {
  FindReplaced("a/m = VariableV2() @/gpu:0 {dtype=float32",
               "a/m = VariableV2() @/gpu:0 {dtype=int64");
  ExpectKept(v1::STATE_KEPT_TYPE, "a/m");
}

TEST_F(StateGroupsTest, StaysIfItsReadIsFed) {
  v1::Step step = TrainStep();
  v1::Feed* feed = step.add_feeds();
  feed->set_name("a/read:0");
  for (int dim = 0; dim < 2; ++dim) feed->add_dims(256);
  Find(TrainedLayers(), step);
  ExpectKept(v1::STATE_KEPT_FED, "a/read");
}

// A reader of the weights beside the step: the loss of another batch, say.
constexpr char kRacer[] =
    "look = MatMul(x, a/read) @/gpu:0 {T=float32, _output_shapes=[(8,256)]}\n";

TEST_F(StateGroupsTest, AReaderThatLeadsToTheUpdateSuffices) {
  v1::Step step = TrainStep();
  step.add_targets("look");
  Find(TrainedLayers() + kRacer, step);
  EXPECT_EQ(group(0).kept, v1::STATE_KEPT_UNSPECIFIED);  // One copy serves both.
}

TEST_F(StateGroupsTest, StaysIfAReadRacesWithTheUpdate) {
  v1::Step step = TrainStep();
  step.add_targets("look");
  const std::string second =
      absl::StrReplaceAll(kRacer, {{"a/read", "a/second"}}) +
      "a/second = Identity(a/w) @/gpu:0 {T=float32, _output_shapes=[(256,256)]}\n";
  Find(TrainedLayers() + second, step);
  ExpectKept(v1::STATE_KEPT_RACE, "look");
  // Behind the update, it does not.
  Find(TrainedLayers() + absl::StrReplaceAll(second, {{"(a/w)", "(a/w, ^a/train)"}}), step);
  EXPECT_EQ(group(0).kept, v1::STATE_KEPT_UNSPECIFIED);
}

std::string WithResources() {
  return absl::StrReplaceAll(TrainedLayers(),
                             {{"VariableV2() @/gpu:0 {", "VarHandleOp() @/gpu:0 {"},
                              {", _output_shapes=[(256,256)]}\na/m", "}\na/m"},
                              {"a/read = Identity(a/w) @/gpu:0 {T=float32",
                               "a/read = ReadVariableOp(a/w) @/gpu:0 {dtype=float32"},
                              {"b/read = Identity(b/w) @/gpu:0 {T=float32",
                               "b/read = ReadVariableOp(b/w) @/gpu:0 {dtype=float32"},
                              {"= Assign(", "= AssignVariableOp("},
                              {"= ApplyMomentum(", "= ResourceApplyMomentum("}});
}

TEST_F(StateGroupsTest, ResourceVariables) {
  Find(WithResources());
  ASSERT_THAT(groups_->groups(), SizeIs(2));
  EXPECT_THAT(Names(group(0).variables), ElementsAre("a/w", "a/m"));
  EXPECT_EQ(group(0).kept, v1::STATE_KEPT_UNSPECIFIED);
  EXPECT_THAT(Moves({0}), ElementsAre("a/w", "a/m", "a/assign", "a/read", "a/scaled", "a/train"));
}

TEST_F(StateGroupsTest, StaysIfAnUnknownOpTakesItsHandle) {
  Find(WithResources() + "odd = MyOp(a/w) @/gpu:0 {T=float32}\n");
  ExpectKept(v1::STATE_KEPT_OP, "odd");
}

TEST_F(StateGroupsTest, StaysIfAReadByHandleRaces) {
  v1::Step step = TrainStep();
  step.add_targets("look");
  const std::string second =
      absl::StrReplaceAll(kRacer, {{"a/read", "a/second"}}) +
      "a/second = ReadVariableOp(a/w) @/gpu:0 {dtype=float32, _output_shapes=[(256,256)]}\n";
  Find(WithResources() + second, step);
  ExpectKept(v1::STATE_KEPT_RACE, "a/second");
  Find(WithResources() + absl::StrReplaceAll(second, {{"(a/w)", "(a/w, ^a/train)"}}), step);
  EXPECT_EQ(group(0).kept, v1::STATE_KEPT_UNSPECIFIED);
}

TEST_F(StateGroupsTest, GathersMoveIfTheirRowsAreSmaller) {
  const std::string gather =
      "ids = Const() {dtype=int32, _output_shapes=[(4)]}\n"
      "axis = Const() {dtype=int32, _output_shapes=[()]}\n"
      "a/rows = GatherV2(a/read, ids, axis) @/gpu:0 {Tparams=float32, Tindices=int32, "
      "Taxis=int32, _output_shapes=[(4,256)]}\n";
  const std::string only =
      absl::StrReplaceAll(TrainedLayers(), {{"MatMul(x, a/read)", "MatMul(x, x)"},
                                            {"MatMul(b/back, a/read)", "MatMul(a/rows, a/rows)"}});
  Find(only + gather);
  EXPECT_THAT(Moves({0}), Contains("a/rows"));
  FindWith(gather);  // The table crosses anyway.
  EXPECT_THAT(Moves({0}), Not(Contains("a/rows")));
}

// A graph made to make the search for groups dear.
TEST_F(StateGroupsTest, VeryManyHolders) {
  std::string text = WithResources();
  for (int i = 0; i < 100'000; ++i) {
    absl::StrAppend(&text, "r", i, " = ReadVariableOp(a/w) @/gpu:0 {dtype=float32}\n");
  }
  Find(text);
  ExpectKept(v1::STATE_KEPT_RACE, "a/train");
  EXPECT_EQ(group(1).kept, v1::STATE_KEPT_UNSPECIFIED);
}

TEST_F(StateGroupsTest, VeryManyGroups) {
  std::string text, train = "train = NoOp(";
  for (int i = 0; i < 20'000; ++i) {
    const std::string w = absl::StrCat("w", i);
    absl::StrAppend(&text, w, " = VarHandleOp() @/gpu:0 {dtype=float32, shape=(256,256)}\n", w,
                    "/t = AssignAddVariableOp(", w, ", one) @/gpu:0 {dtype=float32}\n");
    absl::StrAppend(&train, i == 0 ? "" : ", ", "^", w, "/t");
  }
  Find(absl::StrCat(text, "one = Const() @/gpu:0 {dtype=float32, _output_shapes=[(256,256)]}\n",
                    train, ")\n"));
  ASSERT_THAT(groups_->groups(), SizeIs(20'000));
  EXPECT_EQ(group(0).kept, v1::STATE_KEPT_UNSPECIFIED);
  EXPECT_EQ(group(19'999).kept, v1::STATE_KEPT_RACE);
}

TEST_F(StateGroupsTest, OddColocations) {
  Find(absl::StrReplaceAll(TrainedLayers(), {{"[\"loc:@a/w\"]", "[\"loc:@gone\", \"a/w\"]"}}) +
       "c = VariableV2() @/gpu:0 {dtype=float32, shape=(256,256), _class=[\"loc:@d\"], "
       "_output_shapes=[(256,256)]}\n"
       "d = VariableV2() @/gpu:0 {dtype=float32, shape=(256,256), _class=[\"loc:@c\"], "
       "_output_shapes=[(256,256)]}\n");
  ASSERT_THAT(groups_->groups(), SizeIs(2));
  EXPECT_THAT(Names(group(0).variables), ElementsAre("a/w", "a/m"));
}

TEST(WriteMovesTest, ALongDevice) {
  const std::string job(4078, 'j');  // The longest that is read.
  const testing::TestGraph graph(
      absl::StrCat("w = VariableV2() @/job:", job, "/device:GPU:3 {dtype=float32, shape=(2)}\n"));
  GraphEdit edit(*graph);
  ASSERT_THAT(WriteMoves(*graph, {graph["w"]}, StopToken(), &edit), testing::IsOk());
  const auto moved = testing::TestGraph::FromBytes(ValueOrDie(edit.Apply(StopToken()), "moved"));
  EXPECT_EQ(moved->device(moved["w"]), absl::StrCat("/job:", job, "/device:CPU:0"));
}

TEST(WriteMovesTest, DevicesAndColocationsAcross) {
  const testing::TestGraph graph(TrainedLayers() +
                                 "near = Relu(a/out) @/gpu:0 {T=float32, "
                                 "_class=[\"loc:@a/w\", \"loc:@b/w\"]}\n");
  GraphEdit edit(*graph);
  const std::vector<NodeId> nodes = {graph["a/w"], graph["a/m"], graph["a/read"]};
  ASSERT_THAT(WriteMoves(*graph, nodes, StopToken(), &edit), testing::IsOk());
  const auto moved = testing::TestGraph::FromBytes(ValueOrDie(edit.Apply(StopToken()), "moved"));
  EXPECT_EQ(moved->device(moved["a/w"]), "/device:CPU:0");
  EXPECT_EQ(moved->device(moved["b/w"]), "/gpu:0");
  const auto classes = [&](absl::string_view node) {
    const auto attr = moved->attr(moved[node], "_class");
    std::vector<std::string> items;
    for (absl::string_view item : AttrStrings(attr.value_or(absl::string_view()))) {
      items.emplace_back(item);
    }
    return items;
  };
  EXPECT_THAT(classes("a/m"), ElementsAre("loc:@a/w"));
  EXPECT_THAT(classes("a/train"), IsEmpty());
  EXPECT_THAT(classes("near"), ElementsAre("loc:@b/w"));
}

}  // namespace
}  // namespace spillway::core
