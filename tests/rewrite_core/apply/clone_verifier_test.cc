// VerifyRewrite's findings on clones. Each case changes a sound rewrite in one way.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "rewrite_core/apply/verifier.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using testing::FailsWith;
using testing::IsOk;
using testing::TestFacts;

struct CloneCase {
  std::string name;
  std::vector<std::pair<absl::string_view, absl::string_view>> replacements;  // In the new graph.
  std::string check;  // The one that refuses it; empty: it passes.
};

absl::Status VerifyClones(const std::string& before, const std::string& after,
                          const v1::Step& step) {
  const TestFacts f(before);
  return VerifyRewrite(*f.graph, f.facts.control_flow(), testing::GraphBytes(after), step, {});
}

void Expect(const std::string& before, const std::string& after, const CloneCase& of,
            const v1::Step& step = {}) {
  for (const auto& [from, to] : of.replacements) {
    EXPECT_TRUE(absl::StrContains(after, from)) << "no " << from;
  }
  const absl::Status status =
      VerifyClones(before, absl::StrReplaceAll(after, of.replacements), step);
  if (of.check.empty()) {
    EXPECT_THAT(status, IsOk());
  } else {
    EXPECT_THAT(status, FailsWith(absl::StatusCode::kInternal, v1::ERROR_REASON_VERIFY_FAILED,
                                  absl::StrCat("(check ", of.check, ")")));
  }
}

// c is recomputed for e, once d has run, from b, which is recomputed, too.
constexpr char kCloneBefore[] = R"(
    a = Placeholder() {dtype=float32}
    a2 = Placeholder() {dtype=float32}
    p = Placeholder() {dtype=bool}
    w = VariableV2() {dtype=float32}
    r = Identity(w) {T=float32}
    x = RandomUniform(a) {T=float32, dtype=float32}
    b = MatMul(a, r, ^p) @/gpu:0 {T=float32}
    c = Relu(b) @/gpu:0 {T=float32}
    s = Split(a, c) {T=float32, num_split=2}
    d = Sub(s, s:1) {T=float32}
    e = AddV2(d, c) {T=float32}
    f = Mul(e, x) {T=float32}
    u = AssignSub(w, f) {T=float32}
)";
constexpr char kCloneAfter[] = R"(
    a = Placeholder() {dtype=float32}
    a2 = Placeholder() {dtype=float32}
    p = Placeholder() {dtype=bool}
    w = VariableV2() {dtype=float32}
    r = Identity(w) {T=float32}
    x = RandomUniform(a) {T=float32, dtype=float32}
    b = MatMul(a, r, ^p) @/gpu:0 {T=float32}
    c = Relu(b) @/gpu:0 {T=float32}
    s = Split(a, c) {T=float32, num_split=2}
    d = Sub(s, s:1) {T=float32}
    e = AddV2(d, c2) {T=float32, _spillway_undo=["1=c"]}
    f = Mul(e, x) {T=float32}
    u = AssignSub(w, f, ^b2) {T=float32, _spillway_undo=["^b2"]}
    b2 = MatMul(a, r, ^p, ^d) @/gpu:0 {T=float32, _spillway_undo=["added"]}
    c2 = Relu(b2, ^d) @/gpu:0 {T=float32, _spillway_undo=["added"]}
)";

class CloneTest : public ::testing::TestWithParam<CloneCase> {};

TEST_P(CloneTest, IsJudged) { Expect(kCloneBefore, kCloneAfter, GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Sound, CloneTest,
    ::testing::Values(
        CloneCase{"AsItIs", {}, ""},
        // Readers of clones cannot be merged with other nodes.
        CloneCase{"ItsInputTellsThemApart", {{"Relu(b2, ^d)", "Relu(b2)"}}, ""},
        CloneCase{"ASwapInTellsThemApart",
                  {{"c2 = Relu(b2, ^d)",
                    "bo = Identity(b2) {T=float32, _spillway_undo=[\"added\"], "
                    "_grappler_do_not_remove=true}\n"
                    "bi = Identity(bo, ^d) {T=float32, _spillway_undo=[\"added\"], "
                    "_grappler_do_not_remove=true}\n"
                    "c2 = Relu(bi)"}},
                  ""},
        CloneCase{"OfTheOriginal", {{"Relu(b2, ^d)", "Relu(b, ^d)"}}, ""},
        CloneCase{"TwoOfOneNode",
                  {{"f = Mul(e, x) {T=float32}",
                    "f = Mul(e, x) {T=float32}\n"
                    "c3 = Relu(b2, ^s) @/gpu:0 {T=float32, _spillway_undo=[\"added\"]}"}},
                  ""},
        CloneCase{
            "BeforeWhatItIsMadeOf",
            {{"b2 = MatMul(a, r, ^p, ^d) @/gpu:0 {T=float32, _spillway_undo=[\"added\"]}\n", ""},
             {"c2 = Relu(b2, ^d) @/gpu:0 {T=float32, _spillway_undo=[\"added\"]}\n",
              "c2 = Relu(b2, ^d) @/gpu:0 {T=float32, _spillway_undo=[\"added\"]}\n"
              "b2 = MatMul(a, r, ^p, ^d) @/gpu:0 {T=float32, _spillway_undo=[\"added\"]}\n"}},
            ""},
        CloneCase{"SwappedIn",
                  {{"c2 = Relu(b2, ^d)",
                    "bo = Identity(b2) {T=float32, _spillway_undo=[\"added\"], "
                    "_grappler_do_not_remove=true}\n"
                    "bi = Identity(bo, ^d) {T=float32, _spillway_undo=[\"added\"], "
                    "_grappler_do_not_remove=true}\n"
                    "c2 = Relu(bi, ^d)"}},
                  ""}),
    testing::CaseName());

INSTANTIATE_TEST_SUITE_P(
    Broken, CloneTest,
    ::testing::Values(
        CloneCase{"NoRecord",
                  {{"Relu(b2, ^d) @/gpu:0 {T=float32, _spillway_undo=[\"added\"]}",
                    "Relu(b2, ^d) @/gpu:0 {T=float32}"}},
                  "undo"},
        CloneCase{"AnotherOp", {{"c2 = Relu(b2", "c2 = Relu6(b2"}}, "clone"},
        CloneCase{
            "AnotherAttribute",
            {{"Relu(b2, ^d) @/gpu:0 {T=float32,", "Relu(b2, ^d) @/gpu:0 {T=float32, more=1,"}},
            "clone"},
        CloneCase{"AnotherDevice",
                  {{"Relu(b2, ^d) @/gpu:0 {T=float32, _spillway_undo=[\"added\"]}",
                    "Relu(b2, ^d) @/gpu:1 {T=float32, _spillway_undo=[\"added\"]}"}},
                  "clone"},
        CloneCase{"AnotherInput", {{"MatMul(a, r, ^p, ^d)", "MatMul(a2, r, ^p, ^d)"}}, "clone"},
        CloneCase{
            "InputsInAnotherOrder", {{"MatMul(a, r, ^p, ^d)", "MatMul(r, a, ^p, ^d)"}}, "clone"},
        CloneCase{"AnotherTensorIsRead", {{"e = AddV2(d, c2)", "e = AddV2(d, b2)"}}, "data"},
        CloneCase{"ForAnotherInput",
                  {{"e = AddV2(d, c2) {T=float32, _spillway_undo=[\"1=c\"]}",
                    "e = AddV2(c2, c) {T=float32, _spillway_undo=[\"0=d\"]}"}},
                  "data"},
        CloneCase{"ALostControlInput", {{"MatMul(a, r, ^p, ^d)", "MatMul(a, r, ^d)"}}, "clone"},
        CloneCase{"NothingTellsItFromItsOriginal",
                  {{"MatMul(a, r, ^p, ^d)", "MatMul(a, r, ^p)"}},
                  "clone"},
        CloneCase{"ARandomOp",
                  {{"f = Mul(e, x) {T=float32}",
                    "f = Mul(e, x2) {T=float32, _spillway_undo=[\"1=x\"]}\n"
                    "x2 = RandomUniform(a, ^d) {T=float32, dtype=float32, "
                    "_spillway_undo=[\"added\"]}"}},
                  "clone"},
        CloneCase{"OfAnUpdate",
                  {{"c2 = Relu(b2",
                    "u2 = AssignSub(w, f, ^d) {T=float32, _spillway_undo=[\"added\"]}\n"
                    "c2 = Relu(b2"}},
                  "clone"},
        // Swaps are planned on the graph with clones, and may make one wait for another.
        CloneCase{"ItWaitsForAClone", {{"Relu(b2, ^d)", "Relu(b2, ^b2)"}}, ""},
        CloneCase{"ACycle", {{"Relu(b2, ^d)", "Relu(b2, ^f)"}}, "acyclic"},
        CloneCase{"TheVariableMayHaveChanged",
                  {{"u = AssignSub(w, f, ^b2) {T=float32, _spillway_undo=[\"^b2\"]}",
                    "u = AssignSub(w, f) {T=float32}"}},
                  "variable"},
        // c2 is before the update, but b2 reads the variable.
        CloneCase{"TheWrongCloneIsWaitedFor",
                  {{"u = AssignSub(w, f, ^b2) {T=float32, _spillway_undo=[\"^b2\"]}",
                    "u = AssignSub(w, f, ^c2) {T=float32, _spillway_undo=[\"^c2\"]}"}},
                  "variable"}),
    testing::CaseName());

TEST(CloneVerifierTest, FedOriginal) {
  v1::Step step;
  step.add_feeds()->set_name("c");
  Expect(kCloneBefore, kCloneAfter, {"", {}, "clone"}, step);
}

// An update that comes before the original comes before the clone as well.
TEST(CloneVerifierTest, AnEarlierUpdate) {
  constexpr char kNet[] = R"(
    a = Placeholder() {dtype=float32}
    w = VariableV2() {dtype=float32}
    u = AssignSub(w, a) {T=float32}
    r = Identity(w, ^u) {T=float32}
    b = Relu(r) {T=float32}
    c = Relu(b) {T=float32}
  )";
  Expect(kNet,
         absl::StrCat(
             absl::StrReplaceAll(kNet, {{"c = Relu(b) {T=float32}",
                                         "d = Relu(c) {T=float32}\n"
                                         "c = Relu(b2) {T=float32, _spillway_undo=[\"0=b\"]}"}}),
             "b2 = Relu(r, ^a) {T=float32, _spillway_undo=[\"added\"]}\n"),
         {"", {{"d = Relu(c) {T=float32}\n", ""}}, ""});
}

// A value read from a resource stays unchanged.
TEST(CloneVerifierTest, AResource) {
  constexpr char kNet[] = R"(
    a = Placeholder() {dtype=float32}
    w = VarHandleOp() {dtype=float32}
    r = ReadVariableOp(w) {dtype=float32}
    b = MatMul(a, r) {T=float32}
    c = Relu(b) {T=float32}
    d = AddV2(c, b) {T=float32}
    u = AssignSubVariableOp(w, d) {dtype=float32}
)";
  const std::string after = absl::StrCat(
      absl::StrReplaceAll(kNet, {{"d = AddV2(c, b) {T=float32}",
                                  "d = AddV2(c, b2) {T=float32, _spillway_undo=[\"1=b\"]}"}}),
      "b2 = MatMul(a, r, ^c) {T=float32, _spillway_undo=[\"added\"]}\n");
  Expect(kNet, after, {"", {}, ""});
  // But it is read once.
  Expect(kNet, after,
         {"",
          {{"b2 = MatMul(a, r, ^c)",
            "r2 = ReadVariableOp(w, ^c) {dtype=float32, _spillway_undo=[\"added\"]}\n"
            "b2 = MatMul(a, r2, ^c)"}},
          "clone"});
}

// Two nodes that are equal in everything stand for each other: a clone is one of both.
TEST(CloneVerifierTest, EqualNodes) {
  constexpr char kNet[] = R"(
    a = Placeholder() {dtype=float32}
    b = Relu(a) {T=float32}
    c = Relu(a) {T=float32}
    d = Neg(b) {T=float32}
    e = Neg(c) {T=float32}
    f = AddV2(d, e) {T=float32}
    g = AddV2(f, e) {T=float32}
)";
  const std::string after = absl::StrCat(
      absl::StrReplaceAll(kNet, {{"g = AddV2(f, e) {T=float32}",
                                  "g = AddV2(f, e2) {T=float32, _spillway_undo=[\"1=e\"]}"}}),
      "c2 = Relu(a, ^f) {T=float32, _spillway_undo=[\"added\"]}\n"
      "e2 = Neg(c2, ^f) {T=float32, _spillway_undo=[\"added\"]}\n");
  Expect(kNet, after, {"", {}, ""});
  // With another attribute they are not.
  Expect(absl::StrReplaceAll(kNet, {{"c = Relu(a) {T=float32}", "c = Relu(a) {T=float32, x=1}"}}),
         after, {"", {{"c = Relu(a) {T=float32}", "c = Relu(a) {T=float32, x=1}"}}, "data"});
}

constexpr char kBranches[] = R"(
    a = Placeholder() {dtype=float32}
    p = Placeholder() {dtype=bool}
    q = Placeholder() {dtype=bool}
    switch = Switch(a, p) {T=float32}
    other = Switch(a, q) {T=float32}
    no = Relu(switch) {T=float32}
    no2 = Neg(no) {T=float32}
    no3 = AddV2(no2, no) {T=float32}
    yes = Relu(switch:1) {T=float32}
    yes2 = Neg(yes) {T=float32}
    else = Relu(other) {T=float32}
    merge = Merge(no3, yes2) {T=float32, N=2}
    after = Neg(merge) {T=float32}
)";

class CloneInABranchTest : public ::testing::TestWithParam<CloneCase> {};

TEST_P(CloneInABranchTest, IsJudged) {
  const std::string after = absl::StrCat(
      absl::StrReplaceAll(kBranches,
                          {{"no3 = AddV2(no2, no) {T=float32}",
                            "no3 = AddV2(no2, again) {T=float32, _spillway_undo=[\"1=no\"]}"}}),
      "again = Relu(switch, ^no2) {T=float32, _spillway_undo=[\"added\"]}\n");
  Expect(kBranches, after, GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    All, CloneInABranchTest,
    ::testing::Values(
        CloneCase{"AsItIs", {}, ""}, CloneCase{"TriggerOutside", {{"^no2", "^a"}}, ""},
        CloneCase{"TheOtherSide", {{"Relu(switch, ^no2)", "Relu(switch:1, ^a)"}}, "data"},
        CloneCase{"ADeadTrigger", {{"^no2", "^yes"}}, "deadness"},
        CloneCase{"ATriggerOfAnotherCondition", {{"^no2", "^else"}}, "deadness"},
        CloneCase{"ASwitchAsTrigger", {{"^no2", "^switch"}}, "deadness"},
        CloneCase{"ASwapAsTrigger",
                  {{"again = Relu(switch, ^no2)",
                    "out = Identity(no2) {T=float32, _spillway_undo=[\"added\"], "
                    "_grappler_do_not_remove=true}\n"
                    "again = Relu(switch, ^out)"}},
                  ""},
        CloneCase{"ASwapOfTheOtherSideAsTrigger",
                  {{"again = Relu(switch, ^no2)",
                    "out = Identity(yes2) {T=float32, _spillway_undo=[\"added\"], "
                    "_grappler_do_not_remove=true}\n"
                    "again = Relu(switch, ^out)"}},
                  "deadness"},
        CloneCase{"ASwapThatWaitsForTheOtherSide",
                  {{"again = Relu(switch, ^no2)",
                    "out = Identity(no2, ^yes) {T=float32, _spillway_undo=[\"added\"], "
                    "_grappler_do_not_remove=true}\n"
                    "again = Relu(switch, ^out)"}},
                  "deadness"},
        CloneCase{"ASwitch",
                  {{"again = Relu(switch, ^no2)",
                    "switch2 = Switch(a, p, ^a) {T=float32, _spillway_undo=[\"added\"]}\n"
                    "again = Relu(switch2, ^no2)"}},
                  ""},
        CloneCase{"ASwitchOfAnotherCondition",
                  {{"again = Relu(switch, ^no2)",
                    "switch2 = Switch(a, q, ^a) {T=float32, _spillway_undo=[\"added\"]}\n"
                    "again = Relu(switch2, ^a)"}},
                  "data"},
        CloneCase{"TheOtherSideOfAClone",
                  {{"again = Relu(switch, ^no2)",
                    "switch2 = Switch(a, p, ^a) {T=float32, _spillway_undo=[\"added\"]}\n"
                    "again = Relu(switch2:1, ^a)"}},
                  "data"},
        CloneCase{"AMerge",
                  {{"after = Neg(merge) {T=float32}",
                    "after = Neg(merge2) {T=float32, _spillway_undo=[\"0=merge\"]}\n"
                    "merge2 = Merge(three, yes2) {T=float32, N=2, _spillway_undo=[\"added\"]}\n"
                    "three = AddV2(no2, again) {T=float32, _spillway_undo=[\"added\"]}"}},
                  ""},
        CloneCase{"AMergeTurnedRound",
                  {{"after = Neg(merge) {T=float32}",
                    "after = Neg(merge2) {T=float32, _spillway_undo=[\"0=merge\"]}\n"
                    "merge2 = Merge(yes2, three) {T=float32, N=2, _spillway_undo=[\"added\"]}\n"
                    "three = AddV2(no2, again) {T=float32, _spillway_undo=[\"added\"]}"}},
                  "clone"},
        CloneCase{"AMergeThatWaitsForASide",
                  {{"after = Neg(merge) {T=float32}",
                    "after = Neg(merge2) {T=float32, _spillway_undo=[\"0=merge\"]}\n"
                    "merge2 = Merge(no3, yes2, ^no) {T=float32, N=2, "
                    "_spillway_undo=[\"added\"]}"}},
                  "deadness"}),
    testing::CaseName());

// u is recomputed for r, the only node that reads it; the original is pruned.
constexpr char kReadOnce[] = R"(
    a = Placeholder() {dtype=float32}
    w = VariableV2() {dtype=float32}
    init = Assign(w, a) {T=float32}
    t = Tanh(a) {T=float32}
    s = Exp(t) {T=float32}
    u = Relu(a, ^w) {T=float32}
    v = Neg(a) {T=float32}
    r = AddN(v, u, s) {T=float32, N=3}
)";

class CloneOfWhatIsReadOnceTest : public ::testing::TestWithParam<CloneCase> {};

TEST_P(CloneOfWhatIsReadOnceTest, IsJudged) {
  v1::Step step;
  step.add_targets("r");
  const std::string after = absl::StrCat(
      absl::StrReplaceAll(kReadOnce,
                          {{"r = AddN(v, u, s) {T=float32, N=3}",
                            "r = AddN(v, u2, s) {T=float32, N=3, _spillway_undo=[\"1=u\"]}"}}),
      "u2 = Relu(a, ^w, ^t) {T=float32, _spillway_undo=[\"added\"]}\n");
  Expect(kReadOnce, after, GetParam(), step);
}

INSTANTIATE_TEST_SUITE_P(
    All, CloneOfWhatIsReadOnceTest,
    ::testing::Values(
        CloneCase{"AsItIs", {}, ""},
        CloneCase{
            "AnEdgeMakesTheOriginalRun",
            {{"v = Neg(a) {T=float32}", "v = Neg(a, ^u) {T=float32, _spillway_undo=[\"^u\"]}"}},
            "step"},
        CloneCase{
            "AnEdgeFromWhatRunsAnyway",
            {{"v = Neg(a) {T=float32}", "v = Neg(a, ^t) {T=float32, _spillway_undo=[\"^t\"]}"}},
            ""},
        CloneCase{
            "AnEdgeFromTheClone",
            {{"v = Neg(a) {T=float32}", "v = Neg(a, ^u2) {T=float32, _spillway_undo=[\"^u2\"]}"}},
            ""},
        CloneCase{"AnEdgeToWhatDoesNotRun",
                  {{"init = Assign(w, a) {T=float32}",
                    "init = Assign(w, a, ^u) {T=float32, _spillway_undo=[\"^u\"]}"}},
                  ""},
        CloneCase{"AnEdgeFromWhatTheStepDidNotRun",
                  {{"v = Neg(a) {T=float32}",
                    "v = Neg(a, ^init) {T=float32, _spillway_undo=[\"^init\"]}"}},
                  "step"},
        CloneCase{"ATriggerThatOnlyAClonesOriginalReads",
                  {{"AddN(v, u2, s) {T=float32, N=3, _spillway_undo=[\"1=u\"]}",
                    "AddN(v, u2, s2) {T=float32, N=3, _spillway_undo=[\"1=u\", \"2=s\"]}\n"
                    "t2 = Tanh(a, ^v) {T=float32, _spillway_undo=[\"added\"]}\n"
                    "s2 = Exp(t2) {T=float32, _spillway_undo=[\"added\"]}"}},
                  "step"},
        CloneCase{"ATriggerThatAnotherCloneReads",
                  {{"AddN(v, u2, s) {T=float32, N=3, _spillway_undo=[\"1=u\"]}",
                    "AddN(v, u2, s2) {T=float32, N=3, _spillway_undo=[\"1=u\", \"2=s\"]}\n"
                    "s2 = Exp(t, ^v) {T=float32, _spillway_undo=[\"added\"]}"}},
                  ""},
        CloneCase{"ASwapInThatMakesTheOriginalRun",
                  {{"AddN(v, u2, s) {T=float32, N=3, _spillway_undo=[\"1=u\"]}",
                    "AddN(in, u2, s) {T=float32, N=3, _spillway_undo=[\"0=v\", \"1=u\"]}\n"
                    "out = Identity(v) {T=float32, _spillway_undo=[\"added\"], "
                    "_grappler_do_not_remove=true}\n"
                    "in = Identity(out, ^u) {T=float32, _spillway_undo=[\"added\"], "
                    "_grappler_do_not_remove=true}"}},
                  "step"}),
    testing::CaseName());

// A step that runs both does not run one of them only for the other.
TEST(CloneVerifierTest, AnEdgeFromAnotherTarget) {
  v1::Step step;
  for (const char* target : {"r", "u"}) step.add_targets(target);
  const std::string after = absl::StrCat(
      absl::StrReplaceAll(
          kReadOnce,
          {{"r = AddN(v, u, s) {T=float32, N=3}",
            "r = AddN(v, u2, s) {T=float32, N=3, _spillway_undo=[\"1=u\"]}"},
           {"v = Neg(a) {T=float32}", "v = Neg(a, ^u) {T=float32, _spillway_undo=[\"^u\"]}"}}),
      "u2 = Relu(a, ^w, ^t) {T=float32, _spillway_undo=[\"added\"]}\n");
  Expect(kReadOnce, after, {"", {}, ""}, step);
}

// More equal nodes than are looked at one by one, each with a control input of its own: the clone
// of the last is found by its control input.
TEST(CloneVerifierTest, VeryManyEqualNodes) {
  std::string net = "a = Placeholder() {dtype=float32}\n", inputs;
  constexpr int kCount = 100;
  for (int i = 0; i < kCount; ++i) {
    absl::StrAppend(&net, "p", i, " = Placeholder() {dtype=float32}\n", "b", i, " = Relu(a, ^p", i,
                    ") {T=float32}\n");
  }
  const std::string last = absl::StrCat("b", kCount - 1), wait = absl::StrCat("^p", kCount - 1);
  absl::StrAppend(&net, "c = Neg(", last, ") {T=float32}\n");
  const std::string before = absl::StrCat(net, "d = AddV2(c, ", last, ") {T=float32}\n");
  const std::string after =
      absl::StrCat(net, "d = AddV2(c, again) {T=float32, _spillway_undo=[\"1=", last, "\"]}\n",
                   "again = Relu(a, ", wait, ", ^c) {T=float32, _spillway_undo=[\"added\"]}\n");
  Expect(before, after, {"", {}, ""});
  Expect(before, after,
         {"", {{absl::StrCat("again = Relu(a, ", wait), "again = Relu(a, ^p1"}}, "data"});
  Expect(before, after,
         {"", {{absl::StrCat("again = Relu(a, ", wait), "again = Relu(a"}}, "clone"});
}

TEST(CloneVerifierTest, InALoop) {
  constexpr char kLoop[] = R"(
    a = Placeholder() {dtype=float32}
    enter = Enter(a) {T=float32, frame_name="w"}
    b = Relu(enter) {T=float32}
    c = Neg(b) {T=float32}
    d = AddV2(c, b) {T=float32}
    exit = Exit(d) {T=float32}
)";
  Expect(kLoop,
         absl::StrCat(absl::StrReplaceAll(
                          kLoop, {{"d = AddV2(c, b) {T=float32}",
                                   "d = AddV2(c, b2) {T=float32, _spillway_undo=[\"1=b\"]}"}}),
                      "b2 = Relu(enter, ^c) {T=float32, _spillway_undo=[\"added\"]}\n"),
         {"", {}, "frames"});
}

}  // namespace
}  // namespace spillway::core
