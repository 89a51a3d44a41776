#include "rewrite_core/plan/soundness.h"

#include <string>
#include <vector>

#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using testing::TestFacts;

// a -> b -> c; a Switch with two ops on each side; a loop frame; a fed node, and one that only it
// needs.
constexpr char kSoundnessNet[] = R"(
    x = Placeholder() {dtype=float32, shape=(4)}
    p = Placeholder() {dtype=bool, shape=()}
    a = Relu(x) {T=float32}
    b = Relu(a) {T=float32}
    c = Relu(b) {T=float32}
    d = Relu(x) {T=float32}
    switch = Switch(a, p) {T=float32}
    no = Relu(switch) {T=float32}
    no2 = Relu(no) {T=float32}
    yes = Relu(switch:1) {T=float32}
    yes2 = Relu(yes) {T=float32}
    merge = Merge(no2, yes2) {T=float32, N=2}
    after = Relu(merge) {T=float32}
    enter = Enter(a) {T=float32, frame_name="w"}
    inside = Relu(enter) {T=float32}
    inside2 = Relu(inside) {T=float32}
    only = Relu(a) {T=float32}
    fed = Relu(only) {T=float32}
    late = Relu(c) {T=float32}
)";

v1::Step Options() {
  v1::Step step;
  v1::Feed* feed = step.add_feeds();
  feed->set_name("fed");
  feed->add_dims(4);
  return step;
}

struct EdgeCase {
  std::string name;
  std::string from, to;
  EdgeFault fault;
};

class WaitTest : public ::testing::TestWithParam<EdgeCase> {};

TEST_P(WaitTest, TheRuleThatItBreaks) {
  const TestFacts f(kSoundnessNet, Options());
  const EdgeCase& c = GetParam();
  const Soundness soundness(f.facts);
  EXPECT_EQ(soundness.Wait(f.graph[c.from], f.graph[c.to]), c.fault)
      << EdgeFaultText(soundness.Wait(f.graph[c.from], f.graph[c.to]));
}

// Each rule, and the most similar edge that it does not forbid.
INSTANTIATE_TEST_SUITE_P(
    Soundness, WaitTest,
    ::testing::Values(EdgeCase{"Up", "a", "c", EdgeFault::kNone},
                      EdgeCase{"UpWithoutAPath", "d", "c", EdgeFault::kNone},
                      EdgeCase{"Down", "c", "a", EdgeFault::kCycle},
                      EdgeCase{"SameLevel", "a", "d", EdgeFault::kCycle},
                      EdgeCase{"Itself", "a", "a", EdgeFault::kCycle},
                      EdgeCase{"IntoABranch", "a", "no", EdgeFault::kNone},
                      EdgeCase{"OutOfABranch", "no", "after", EdgeFault::kDeadness},
                      EdgeCase{"AlongABranch", "no", "no2", EdgeFault::kNone},
                      EdgeCase{"ToTheOtherBranch", "no", "yes2", EdgeFault::kDeadness},
                      EdgeCase{"BehindTheMerge", "merge", "after", EdgeFault::kNone},
                      EdgeCase{"OfTheSwitchItself", "switch", "after", EdgeFault::kNone},
                      EdgeCase{"IntoALoop", "a", "inside2", EdgeFault::kFrame},
                      EdgeCase{"InTheLoop", "inside", "inside2", EdgeFault::kNone},
                      EdgeCase{"OutOfTheLoop", "enter", "late", EdgeFault::kFrame},
                      EdgeCase{"ForTheFed", "fed", "late", EdgeFault::kFed},
                      EdgeCase{"OfTheFed", "a", "fed", EdgeFault::kFed},
                      EdgeCase{"ForWhatOnlyTheFedNeeds", "only", "late", EdgeFault::kExtra},
                      EdgeCase{"OfWhatOnlyTheFedNeeds", "a", "only", EdgeFault::kNone}),
    testing::CaseName());

TEST(SoundnessTest, ACopyOfOneSideOfASwitchIsNotWaitedFor) {
  const TestFacts f(kSoundnessNet, Options());
  const Soundness soundness(f.facts);
  const NodeId sw = f.graph["switch"], after = f.graph["after"], no2 = f.graph["no2"];
  EXPECT_EQ(soundness.WaitForSwapOut(sw, after), EdgeFault::kSwitch);
  EXPECT_EQ(soundness.WaitInOrder(sw, after), EdgeFault::kSwitch);
  EXPECT_EQ(soundness.WaitForSwapOut(f.graph["no"], after), EdgeFault::kDeadness);
  EXPECT_EQ(soundness.WaitForSwapOut(f.graph["no"], no2), EdgeFault::kNone);
  EXPECT_EQ(soundness.WaitForSwapOut(f.graph["c"], f.graph["b"]), EdgeFault::kCycle);
}

TEST(SoundnessTest, APaceEdgeIsAsSoundAsAllThatItsSwapInWaitsFor) {
  const TestFacts f(kSoundnessNet, Options());
  const Soundness soundness(f.facts);
  const NodeId a = f.graph["a"], b = f.graph["b"], late = f.graph["late"];
  EXPECT_EQ(soundness.WaitForSwapIn(a, {}, late), EdgeFault::kNone);
  EXPECT_EQ(soundness.WaitForSwapIn(a, {b}, late), EdgeFault::kNone);
  EXPECT_EQ(soundness.WaitForSwapIn(a, {b, late}, f.graph["c"]), EdgeFault::kCycle);
  EXPECT_EQ(soundness.WaitForSwapIn(a, {f.graph["no"]}, f.graph["after"]), EdgeFault::kDeadness);
  EXPECT_EQ(soundness.WaitForSwapIn(a, {f.graph["fed"]}, late), EdgeFault::kFed);
}

TEST(SoundnessTest, InAnOrderOfTheCallersLevelsDoNotMatter) {
  const TestFacts f(kSoundnessNet, Options());
  const Soundness soundness(f.facts);
  EXPECT_EQ(soundness.WaitInOrder(f.graph["a"], f.graph["d"]), EdgeFault::kNone);
  EXPECT_EQ(soundness.WaitInOrder(f.graph["no"], f.graph["yes"]), EdgeFault::kDeadness);
}

}  // namespace
}  // namespace spillway::core
