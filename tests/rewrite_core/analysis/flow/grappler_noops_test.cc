#include "rewrite_core/analysis/flow/grappler_noops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/flow/active_nodes.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TestGraph;
using testing::ValueOrDie;

// The names of the nodes that become NoOps in a step with these targets.
std::vector<std::string> NoOps(const std::string& text, std::vector<std::string> targets,
                               v1::Step step = {}) {
  const TestGraph graph(text);
  for (const std::string& target : targets) step.add_targets(target);
  const Topology topology = ValueOrDie(Topology::Build(*graph, {}), "topology");
  const Shapes shapes = ValueOrDie(Shapes::Infer(*graph, topology, step, {}), "shapes");
  const ActiveNodes active =
      ValueOrDie(FindActiveNodes(*graph, topology, shapes, step, nullptr, {}), "active");
  std::vector<std::string> names;
  for (NodeId id(0); id < graph->num_nodes(); ++id) {
    EXPECT_FALSE(active.only_orders[id] && !active.flags[id]) << graph->name(id);
    if (active.only_orders[id]) names.emplace_back(graph->name(id));
  }
  return names;
}

// As tf.gradients leaves it: the train op waits for all gradients, and reads one.
constexpr char kWaitedGradients[] =
    "x = Placeholder() {dtype=float32}\n"
    "of_constant = Relu(x) {T=float32}\n"  // Read by the next alone.
    "unread = Mul(of_constant, x) {T=float32}\n"
    "read = Neg(x) {T=float32}\n"
    "group = NoOp(^unread, ^read)\n"
    "gradient = Identity(read, ^group) {T=float32}\n";

TEST(GrapplerNoOpsTest, AreWhatOnlyControlEdgesLeaveAndWhatOnlyThoseRead) {
  EXPECT_THAT(NoOps(kWaitedGradients, {"gradient"}), ElementsAre("of_constant", "unread"));
}

TEST(GrapplerNoOpsTest, AreNotTargets) {
  EXPECT_THAT(NoOps(kWaitedGradients, {"gradient", "unread"}), IsEmpty());
  EXPECT_THAT(NoOps(kWaitedGradients, {"gradient", "of_constant:0"}), ElementsAre("unread"));
}

TEST(GrapplerNoOpsTest, AreNotWhatIsFed) {
  v1::Step step;
  step.add_feeds()->set_name("unread");
  EXPECT_THAT(NoOps(kWaitedGradients, {"gradient"}, step), IsEmpty());
}

TEST(GrapplerNoOpsTest, ThereAreNoneAsIs) {
  v1::Step step;
  step.set_grappler(v1::GRAPPLER_AS_IS);
  EXPECT_THAT(NoOps(kWaitedGradients, {"gradient"}, step), IsEmpty());
  step.set_grappler(v1::GRAPPLER_AUTO);
  EXPECT_THAT(NoOps(kWaitedGradients, {"gradient"}, step), ElementsAre("of_constant", "unread"));
}

// A reader that the step does not run is pruned before.
TEST(GrapplerNoOpsTest, ReadersOutsideOfTheStepDoNotCount) {
  const std::string text = absl::StrCat(kWaitedGradients, "summary = Relu(unread) {T=float32}\n");
  EXPECT_THAT(NoOps(text, {"gradient"}), ElementsAre("of_constant", "unread"));
  EXPECT_THAT(NoOps(text, {"gradient", "summary"}), IsEmpty());
}

// Each node is waited for by a target and read by nothing; TensorFlow keeps each for a reason.
TEST(GrapplerNoOpsTest, OpsThatTensorFlowKeeps) {
  for (const char* node :
       {"n = RandomUniform(shape) {T=int32, dtype=float32}",                // It has state.
        "n = Assign(v, c) {T=float32}",                                     // Writes.
        "n = NoOp()",                                                       // Is one.
        "n = Assert(c) {T=[float32]}", "n = CheckNumerics(c) {T=float32}",  // Fails.
        "n = Placeholder() {dtype=float32}",                                // May be fed.
        "n = PlaceholderWithDefault(c) {dtype=float32}",
        "n = Identity(v) {T=float32}",              // Reads a variable.
        "n = InplaceAdd(c, shape, c) {T=float32}",  // Works in place.
        "n = NobodyKnowsIt(c)"}) {
    const std::string text = absl::StrCat(
        "v = VariableV2() {dtype=float32, shape=(3)}\nc = Const() {dtype=float32}\n"
        "shape = Const() {dtype=int32}\n",
        node, "\nkept = AddN(c, ^n) {T=float32}\nuses = Shape(shape)  {T=int32}\n");
    EXPECT_THAT(NoOps(text, {"kept", "uses"}), IsEmpty()) << node;
  }
}

TEST(GrapplerNoOpsTest, ControlFlowStays) {
  // An Identity that pins a branch of a conditional for nodes that wait for it, as tf.cond makes.
  EXPECT_THAT(NoOps("p = Placeholder() {dtype=bool}\nx = Const() {dtype=float32}\n"
                    "switch = Switch(x, p) {T=float32}\npivot = Identity(switch:1) {T=float32}\n"
                    "then = Relu(x, ^pivot) {T=float32}\n",
                    {"then"}),
              IsEmpty());
}

// A chain of a million nodes that go is found in one pass, and the search can be stopped.
TEST(GrapplerNoOpsTest, LongChainsAreLinearAndPolled) {
  constexpr int kLength = 1'000'000;
  std::string text = "n0 = Const() {dtype=float32}\n";
  for (int i = 1; i < kLength; ++i) {
    absl::StrAppend(&text, "n", i, " = Relu(n", i - 1, ") {T=float32}\n");
  }
  absl::StrAppend(&text, "end = NoOp(^n", kLength - 1, ")\n");
  const TestGraph graph(text);
  v1::Step step;
  step.add_targets("end");
  const Topology topology = ValueOrDie(Topology::Build(*graph, {}), "topology");
  const Shapes shapes = ValueOrDie(Shapes::Infer(*graph, topology, step, {}), "shapes");
  const NodeFlags needed(graph->num_nodes(), true), constants(graph->num_nodes(), false);
  const StopToken counts;
  const NodeFlags noops = ValueOrDie(
      FindGrapplerNoOps(*graph, topology, shapes, step, needed, constants, {graph["end"]}, counts),
      "noops");
  EXPECT_EQ(std::count(noops.begin(), noops.end(), true), kLength);
  EXPECT_LE(counts.steps(), 3 * kLength);
  std::atomic<bool> cancelled{true};
  const StopToken stop(absl::InfiniteFuture(), &cancelled);
  const absl::Status stopped =
      FindGrapplerNoOps(*graph, topology, shapes, step, needed, constants, {graph["end"]}, stop)
          .status();
  EXPECT_EQ(stopped.code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace spillway::core
