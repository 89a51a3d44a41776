#include "rewrite_core/strategy/order/host_reads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/rewrite_core/strategy/budget/budget_fixture.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TestGpuStep;

#define ON_GPU " @/gpu:0 {T=float32, _output_shapes=[(256,256)]}\n"
#define ON_CPU " @/cpu:0 {T=float32, _output_shapes=[(256,256)]}\n"

// The weight is on a CPU. c reads it late, and leads to its update, which has the last line.
constexpr char kNet[] =
    "x = Placeholder() @/gpu:0 {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"
    "w = VariableV2() @/cpu:0 {dtype=float32, shape=(256,256), _output_shapes=[(256,256)]}\n"
    "r = Identity(w)" ON_CPU "a = MatMul(x, r)" ON_GPU "b = MatMul(a, a)" ON_GPU
    "c = MatMul(b, r)" ON_GPU "d = MatMul(b, b)" ON_GPU "e = MatMul(d, d)" ON_GPU
    "u = AssignSub(w, c)" ON_CPU;
constexpr char kUpdate[] = "AssignSub(w, c)";

struct Found {
  explicit Found(const std::string& text, const v1::Step& options = {})
      : step(text, options),
        reads(testing::ValueOrDie(
            HostReads::Find(step.facts, step.eligibility, step.needs, step.order, step.ranks,
                            FedInputs::kMayComeLate, {}),
            "reads")) {}

  bool MayReadLate(const char* tensor, const char* reader) const {
    return reads.MayReadLate(step.graph.Output(tensor), step.graph[reader]);
  }
  // For a plan in which `reader` reads the weight through a swap-in.
  std::vector<std::string> Guards(const char* reader) const {
    PlannedSwap swap;
    swap.tensor = step.graph.Output("r");
    swap.swap_ins = {{{{step.graph[reader], 1}}, {}}};
    std::vector<std::string> guards;
    for (const ControlEdge& edge : reads.GuardsOf({swap})) {
      guards.push_back(
          absl::StrCat(step.graph->name(edge.from), " => ", step.graph->name(edge.to)));
    }
    return guards;
  }

  const TestGpuStep step;
  const HostReads reads;
};

std::string Net(const char* update) { return absl::StrReplaceAll(kNet, {{kUpdate, update}}); }

TEST(HostReadsTest, AWeightOnACpu) {
  const Found found(kNet);
  EXPECT_TRUE(found.MayReadLate("r", "a"));
  EXPECT_TRUE(found.MayReadLate("r", "c"));
  EXPECT_FALSE(found.MayReadLate("b", "c"));  // Made on the GPU.
  EXPECT_THAT(found.Guards("c"), IsEmpty());  // The update waits anyway.
}

// The update needs e, launched after c.
TEST(HostReadsTest, AnUpdateThatDoesNotWaitGetsAGuard) {
  const Found found(Net("AssignSub(w, e)"));
  EXPECT_TRUE(found.MayReadLate("r", "c"));
  EXPECT_THAT(found.Guards("c"), ElementsAre("c => u"));
  EXPECT_THAT(found.Guards("a"), IsEmpty());
}

TEST(HostReadsTest, NotWhereTheUpdateMayComeFirst) {
  // It is ready before c is.
  EXPECT_FALSE(Found(Net("AssignSub(w, a)")).MayReadLate("r", "c"));
  // c waits for it.
  const std::string net =
      absl::StrReplaceAll(Net("AssignSub(w, b)"), {{"c = MatMul(b, r)", "c = MatMul(b, r, ^u)"}});
  EXPECT_FALSE(Found(net).MayReadLate("r", "c"));
  EXPECT_TRUE(Found(net).MayReadLate("r", "a"));
}

// An update leaves the value that was read unchanged.
TEST(HostReadsTest, AResource) {
  const Found found(absl::StrReplaceAll(
      kNet, {{"w = VariableV2() @/cpu:0 {", "w = VarHandleOp() @/cpu:0 {"},
             {"r = Identity(w) @/cpu:0 {T", "r = ReadVariableOp(w) @/cpu:0 {dtype"},
             {"u = AssignSub(w, c) @/cpu:0 {T", "u = AssignSubVariableOp(w, a) @/cpu:0 {dtype"}}));
  EXPECT_TRUE(found.MayReadLate("r", "c"));
  EXPECT_THAT(found.Guards("c"), IsEmpty());
}

TEST(HostReadsTest, WhatIsNoVariable) {
  const Found found(
      "i = IteratorGetNext() @/cpu:0 {output_types=[float32], "
      "output_shapes=[(256,256)], _output_shapes=[(256,256)]}\n"
      "f = Placeholder() @/cpu:0 {dtype=float32, shape=(256,256)}\n"
      "a = MatMul(i, f)" ON_GPU "b = MatMul(a, i)" ON_GPU);
  EXPECT_TRUE(found.MayReadLate("i", "b"));
}

// The client feeds it from the host; in place of the output of another op, nothing may move it.
TEST(HostReadsTest, WhatIsFed) {
  v1::Step options;
  for (const char* name : {"f", "h"}) {
    v1::Feed& feed = *options.add_feeds();
    feed.set_name(name);
    for (int i = 0; i < 2; ++i) feed.add_dims(256);
  }
  const Found found(
      "f = Placeholder() @/gpu:0 {dtype=float32}\n"
      "h = Relu(f)" ON_CPU "a = MatMul(f, h)" ON_GPU "b = MatMul(a, f)" ON_GPU
      "c = MatMul(b, h)" ON_GPU,
      options);
  EXPECT_TRUE(found.MayReadLate("f", "b"));
  EXPECT_FALSE(found.MayReadLate("h", "c"));
}

}  // namespace
}  // namespace spillway::core
