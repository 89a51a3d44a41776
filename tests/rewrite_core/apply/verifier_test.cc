#include "rewrite_core/apply/verifier.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using testing::FailsWith;
using testing::IsOk;
using testing::TestFacts;

absl::Status Verify(const std::string& before, const std::string& after_bytes,
                    const v1::RewriteOptions& options = {}) {
  const TestFacts f(before);
  return VerifyRewrite(*f.graph, f.facts.control_flow(), after_bytes, options.step(), StopToken());
}

absl::Status VerifyText(const std::string& before, const std::string& after,
                        const v1::RewriteOptions& options = {}) {
  return Verify(before, testing::GraphBytes(after), options);
}

// Refused by this check. (The message says `(check NAME)`; the detail `check` is NAME.)
auto IsRefusedBy(const std::string& check) {
  return FailsWith(absl::StatusCode::kInternal, v1::ERROR_REASON_VERIFY_FAILED,
                   absl::StrCat("(check ", check, ")"));
}

using Replacements = std::vector<std::pair<absl::string_view, absl::string_view>>;

std::string Replaced(absl::string_view text, const Replacements& replacements) {
  for (const auto& [from, to] : replacements) {
    if (!absl::StrContains(text, from)) ADD_FAILURE() << "no " << from;
  }
  return absl::StrReplaceAll(text, replacements);
}

// b is swapped out behind its producer and swapped in for d, once c is done.
constexpr char kBefore[] = R"(
    a = Placeholder() {dtype=float32}
    b = Relu(a) {T=float32}
    c = Relu(b) {T=float32}
    d = AddV2(c, b) {T=float32}
    e = Relu(d) {T=float32}
    g = AddV2(e, b) {T=float32}
)";
constexpr char kAfter[] = R"(
    a = Placeholder() {dtype=float32}
    b = Relu(a) {T=float32}
    c = Relu(b) {T=float32}
    d = AddV2(c, in) {T=float32, _spillway_undo=["1=b"]}
    e = Relu(d) {T=float32}
    g = AddV2(e, b) {T=float32}
    out = Identity(b) {T=float32, _spillway_undo=["added"]}
    in = Identity(out, ^c) {T=float32, _spillway_undo=["added"]}
)";

TEST(VerifierTest, TheRewriteItselfPasses) { EXPECT_THAT(VerifyText(kBefore, kAfter), IsOk()); }

TEST(VerifierTest, TheSameBytesPass) { EXPECT_THAT(VerifyText(kBefore, kBefore), IsOk()); }

struct Change {
  std::string name;
  Replacements replacements;  // Replacements in kAfter.
  std::string check;          // Empty: it passes.
};

class StraightGraphTest : public ::testing::TestWithParam<Change> {};

TEST_P(StraightGraphTest, IsJudged) {
  const absl::Status status = VerifyText(kBefore, Replaced(kAfter, GetParam().replacements));
  if (GetParam().check.empty()) {
    EXPECT_THAT(status, IsOk());
  } else {
    EXPECT_THAT(status, IsRefusedBy(GetParam().check));
    EXPECT_EQ(testing::ErrorDetailOf(status, "check"), GetParam().check);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sound, StraightGraphTest,
    ::testing::Values(
        Change{"WithoutTrigger", {{"Identity(out, ^c)", "Identity(out)"}}, ""},
        Change{"OnTheHost",
               {{"Identity(b) ", "Identity(b) @/cpu:0 "},
                {"Identity(out, ^c) ", "Identity(out, ^c) @/cpu:0 "}},
               ""},
        Change{"TwoConsumersOfOneSwapIn",
               {{"g = AddV2(e, b) {T=float32}",
                 "g = AddV2(e, in) {T=float32, _spillway_undo=[\"1=b\"]}"}},
               ""},
        Change{
            "TwoSwapIns",
            {{"g = AddV2(e, b) {T=float32}",
              "g = AddV2(e, in2) {T=float32, _spillway_undo=[\"1=b\"]}"},
             {"in = ", "in2 = Identity(out, ^e) {T=float32, _spillway_undo=[\"added\"]}\nin = "}},
            ""},
        // A control edge between two original nodes that no swap uses.
        Change{"ControlBetweenOriginals",
               {{"g = AddV2(e, b) {T=float32}",
                 "g = AddV2(e, b, ^c) {T=float32, _spillway_undo=[\"^c\"]}"}},
               ""},
        Change{"OnAnEditedNode",
               {{"d = AddV2(c, in) {T=float32, _spillway_undo=[\"1=b\"]}",
                 "d = AddV2(c, in, ^a) {T=float32, _spillway_undo=[\"1=b\", \"^a\"]}"}},
               ""},
        // A deadline edge: a node starts when the swap-out is done.
        Change{"Deadline",
               {{"c = Relu(b) {T=float32}",
                 "c = Relu(b, ^out) {T=float32, _spillway_undo=[\"^out\"]}"}},
               ""},
        // A pace edge: a node starts when the swap-in is done.
        Change{
            "Pace",
            {{"e = Relu(d) {T=float32}", "e = Relu(d, ^in) {T=float32, _spillway_undo=[\"^in\"]}"}},
            ""},
        Change{"TheOtherEncoding",
               {{"out = Identity(b)", "out = _CopyFromGpuToHost(b)"},
                {"in = Identity(out, ^c)", "in = _CopyFromHostToGpu(out, ^c)"}},
               ""}),
    testing::CaseName());

INSTANTIATE_TEST_SUITE_P(
    Broken, StraightGraphTest,
    ::testing::Values(
        // Changes that strip would not undo.
        Change{"NoRecordOnTheConsumer", {{", _spillway_undo=[\"1=b\"]", ""}}, "undo"},
        Change{"NoRecordOnTheSwapOut",
               {{"Identity(b) {T=float32, _spillway_undo=[\"added\"]}", "Identity(b) {T=float32}"}},
               "undo"},
        Change{"NoRecordOnTheSwapIn",
               {{"^c) {T=float32, _spillway_undo=[\"added\"]}", "^c) {T=float32}"}},
               "undo"},
        Change{"RecordOfAnotherTensor", {{"1=b", "1=a"}}, "undo"},
        Change{"RecordInAnotherSpelling", {{"1=b", "1=b:0"}}, "undo"},
        Change{"RecordOfAnotherPosition", {{"1=b", "0=b"}}, "undo"},
        Change{"EmptyRecord", {{"[\"1=b\"]", "[]"}}, "undo"},
        Change{"AnotherOpThanBefore", {{"e = Relu(d)", "e = Tanh(d)"}}, "undo"},
        Change{"AnOriginalIsGone", {{"g = AddV2(e, b) {T=float32}", ""}}, "parse"},
        Change{"AnOriginalPassesForAdded",
               {{"g = AddV2(e, b) {T=float32}",
                 "g = AddV2(e, b) {T=float32, _spillway_undo=[\"added\"]}"}},
               "undo"},
        Change{"AnotherNodeWithoutRecord", {{"out = ", "more = NoOp()\nout = "}}, "undo"},
        Change{"AnotherFieldOfTheGraph", {{"out = ", "! 0x22020801\nout = "}}, "undo"},
        // Inputs that read another tensor.
        Change{"SwapOutOfAnotherTensor", {{"out = Identity(b)", "out = Identity(a)"}}, "data"},
        Change{"ConsumerReadsAnother", {{"AddV2(c, in)", "AddV2(c, a)"}}, "data"},
        Change{"ConsumerReadsTheSwapOut", {{"AddV2(c, in)", "AddV2(c, out)"}}, "data"},
        Change{"InputsExchanged",
               {{"d = AddV2(c, in) {T=float32, _spillway_undo=[\"1=b\"]}",
                 "d = AddV2(in, c) {T=float32, _spillway_undo=[\"0=c\", \"1=b\"]}"}},
               "data"},
        Change{"SwapInOfTheProducer", {{"in = Identity(out, ^c)", "in = Identity(b, ^c)"}}, "data"},
        Change{"ThreeSwapNodes",
               {{"in = Identity(out, ^c)",
                 "mid = Identity(out) {T=float32, _spillway_undo=[\"added\"]}\n"
                 "in = Identity(mid, ^c)"}},
               "data"},
        Change{"AnotherType",
               {{"Identity(out, ^c) {T=float32", "Identity(out, ^c) {T=float16"}},
               "data"},
        Change{"BothOfAnotherType",
               {{"Identity(b) {T=float32", "Identity(b) {T=float64"},
                {"Identity(out, ^c) {T=float32", "Identity(out, ^c) {T=float64"}},
               "data"},
        Change{"NoType", {{"Identity(b) {T=float32, ", "Identity(b) {"}}, "data"},
        Change{"ANewNodeThatComputes", {{"in = Identity(out", "in = Relu(out"}}, "data"},
        Change{"ANewNodeWithTwoInputs", {{"Identity(out, ^c)", "Identity(out, c)"}}, "data"},
        Change{"ANewNodeWithoutInput",
               {{"in = Identity(out, ^c)", "in = Identity(^out, ^c)"}},
               "data"},
        // A wait for a node that waits for it.
        Change{"TriggerBehindTheConsumer", {{"Identity(out, ^c)", "Identity(out, ^e)"}}, "acyclic"},
        Change{"TriggerIsTheConsumer", {{"Identity(out, ^c)", "Identity(out, ^d)"}}, "acyclic"},
        Change{
            "ControlThatClosesACycle",
            {{"b = Relu(a) {T=float32}", "b = Relu(a, ^e) {T=float32, _spillway_undo=[\"^e\"]}"}},
            "acyclic"},
        Change{
            "PaceThatClosesACycle",
            {{"c = Relu(b) {T=float32}", "c = Relu(b, ^in) {T=float32, _spillway_undo=[\"^in\"]}"}},
            "acyclic"}),
    testing::CaseName());

TEST(VerifierTest, WhatIsNoGraphIsRefused) {
  const std::string bytes = testing::GraphBytes(kAfter);
  EXPECT_THAT(Verify(kBefore, bytes.substr(0, bytes.size() - 3)), IsRefusedBy("parse"));
  EXPECT_THAT(VerifyText(kBefore, Replaced(kAfter, {{"AddV2(c, in)", "AddV2(c, nowhere)"}})),
              IsRefusedBy("parse"));
}

TEST(VerifierTest, OriginalsThatHaveMovedAreRefused) {
  // The same nodes in another order.
  EXPECT_THAT(VerifyText("a = NoOp()\nb = NoOp()", "b = NoOp()\na = NoOp()"), IsRefusedBy("parse"));
}

// A record may hold a whole node; everything else that the node now says must equal it.
class RawRecordTest : public ::testing::TestWithParam<Change> {};

TEST_P(RawRecordTest, IsJudged) {
  const TestFacts f(kBefore);
  const std::string raw =
      absl::StrCat("[\"raw=", absl::CHexEscape(f.graph->node_field(f.graph.Node("d"))), "\"]");
  const std::string after = Replaced(kAfter, {{"[\"1=b\"]", raw}});
  const absl::Status status = VerifyText(kBefore, Replaced(after, GetParam().replacements));
  if (GetParam().check.empty()) {
    EXPECT_THAT(status, IsOk());
  } else {
    EXPECT_THAT(status, IsRefusedBy(GetParam().check));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Verifier, RawRecordTest,
    ::testing::Values(
        Change{"Sound", {{"d = ", "d = "}}, ""},
        Change{"WithAControl", {{"AddV2(c, in)", "AddV2(c, in, ^a)"}}, ""},
        Change{"AnInputIsGone", {{"AddV2(c, in)", "AddV2(c)"}}, "data"},
        Change{"AnInputWasAdded", {{"AddV2(c, in)", "AddV2(c, in, a)"}}, "data"},
        Change{"AnInputBecameAControl", {{"AddV2(c, in)", "AddV2(c, ^in)"}}, "data"},
        Change{"AnotherOp", {{"d = AddV2(c, in)", "d = Sub(c, in)"}}, "data"},
        Change{"AnotherDevice", {{"d = AddV2(c, in) ", "d = AddV2(c, in) @/cpu:0 "}}, "data"},
        Change{"AnotherAttribute",
               {{"d = AddV2(c, in) {T=float32", "d = AddV2(c, in) {T=float16"}},
               "data"},
        Change{"OneMoreAttribute",
               {{"d = AddV2(c, in) {T=float32", "d = AddV2(c, in) {T=float32, X=1"}},
               "data"}),
    testing::CaseName());

TEST(VerifierTest, TheRightNodeOfTheWrongPortIsAnotherTensor) {
  constexpr char kTwo[] = R"(
      x = Placeholder() {dtype=float32}
      i = Const() {dtype=int32}
      s = Split(i, x) {T=float32, num_split=2}
      d = AddV2(s, s:1) {T=float32}
  )";
  const auto with = [&](absl::string_view tensor) {
    return absl::StrCat(Replaced(kTwo, {{"AddV2(s, s:1) {T=float32}",
                                         "AddV2(s, in) {T=float32, _spillway_undo=[\"1=s:1\"]}"}}),
                        "out = Identity(", tensor, ") {T=float32, _spillway_undo=[\"added\"]}\n",
                        "in = Identity(out) {T=float32, _spillway_undo=[\"added\"]}\n");
  };
  EXPECT_THAT(VerifyText(kTwo, with("s:1")), IsOk());
  EXPECT_THAT(VerifyText(kTwo, with("s")), IsRefusedBy("data"));
}

TEST(VerifierTest, AReferenceIsNeverHandedOn) {
  const std::string before = "v = VariableV2() {dtype=float32}\nr = Relu(v) {T=float32}";
  EXPECT_THAT(VerifyText(before, R"(
      v = VariableV2() {dtype=float32}
      r = Relu(in) {T=float32, _spillway_undo=["0=v"]}
      out = Identity(v) {T=float32, _spillway_undo=["added"]}
      in = Identity(out) {T=float32, _spillway_undo=["added"]}
  )"),
              IsRefusedBy("data"));
}

// ---- Deadness ----

// A weight on a CPU, which b reads late: its update has to wait for b.
TEST(VerifierTest, ALateReadOfAVariableComesBeforeItsUpdate) {
  constexpr char kFrom[] = R"(
    x = Placeholder() @/gpu:0 {dtype=float32}
    w = VariableV2() @/cpu:0 {dtype=float32}
    r = Identity(w) @/cpu:0 {T=float32}
    a = Mul(x, r) @/gpu:0 {T=float32}
    b = Mul(a, r) @/gpu:0 {T=float32}
    u = AssignSub(w, a) @/cpu:0 {T=float32}
)";
  const auto after = [&](absl::string_view update) {
    return absl::StrCat(
        absl::StrReplaceAll(kFrom,
                            {{"b = Mul(a, r) @/gpu:0 {T=float32}",
                              "b = Mul(a, in) @/gpu:0 {T=float32, _spillway_undo=[\"1=r\"]}"},
                             {"u = AssignSub(w, a) @/cpu:0 {T=float32}", update}}),
        "out = Identity(r) @/cpu:0 {T=float32, _grappler_do_not_remove=true, "
        "_spillway_undo=[\"added\"]}\n"
        "in = Identity(out, ^a) @/cpu:0 {T=float32, _grappler_do_not_remove=true, "
        "_spillway_undo=[\"added\"]}\n");
  };
  EXPECT_THAT(VerifyText(kFrom, after("u = AssignSub(w, a, ^b) @/cpu:0 {T=float32, "
                                      "_spillway_undo=[\"^b\"]}")),
              IsOk());
  EXPECT_THAT(
      VerifyText(kFrom, after("u = AssignSub(w, a) @/cpu:0 {T=float32}")),
      FailsWith(absl::StatusCode::kInternal, v1::ERROR_REASON_VERIFY_FAILED, "(check variable)"));
}

// A weight in half precision is a copy, which no update changes.
TEST(VerifierTest, ALateReadOfACopyOfAVariableWaitsForNothing) {
  constexpr char kFrom[] = R"(
    x = Placeholder() @/gpu:0 {dtype=float16}
    w = VariableV2() @/gpu:0 {dtype=float32}
    k = Const() {dtype=int32}
    c = CAST @/gpu:0 {SrcT=float32, DstT=TO, T=float32, N=2}
    a = Mul(x, c) @/gpu:0 {T=TO}
    b = Mul(a, c) @/gpu:0 {T=TO}
    u = AssignSub(w, a) @/gpu:0 {T=float32}
)";
  const auto verify = [&](absl::string_view op, absl::string_view type) {
    const std::string from = absl::StrReplaceAll(kFrom, {{"CAST", op}, {"TO", type}});
    const std::string to = absl::StrCat(
        Replaced(from, {{absl::StrCat("b = Mul(a, c) @/gpu:0 {T=", type, "}"),
                         absl::StrCat("b = Mul(a, in) @/gpu:0 {T=", type,
                                      ", _spillway_undo=[\"1=c\"]}")}}),
        absl::StrReplaceAll("out = Identity(c) @/cpu:0 {T=TO, _spillway_undo=[\"added\"]}\n"
                            "in = Identity(out, ^a) @/cpu:0 {T=TO, _spillway_undo=[\"added\"]}\n",
                            {{"TO", type}}));
    return VerifyText(from, to);
  };
  EXPECT_THAT(verify("Cast(w)", "float16"), IsOk());
  EXPECT_THAT(verify("AddN(w, w)", "float32"), IsOk());
  EXPECT_THAT(verify("Transpose(w, k)", "float32"), IsOk());
  EXPECT_THAT(verify("Cast(w)", "float32"), IsRefusedBy("variable"));
  EXPECT_THAT(verify("Reshape(w, k)", "float32"), IsRefusedBy("variable"));
}

// As in cond_v1: the gradient of a conditional depends on the same predicate.
constexpr char kCond[] = R"(
    p = Placeholder() {dtype=bool}
    x = Placeholder() {dtype=float32}
    y = Relu(x) {T=float32}
    s = Switch(y, p) {T=float32}
    f = Relu(s) {T=float32}
    t = Relu(s:1) {T=float32}
    t2 = AddV2(t, t) {T=float32}
    m = Merge(f, t2) {T=float32, N=2}
    z = AddV2(m, y) {T=float32}
    gs = Switch(z, p) {T=float32}
    gf = Relu(gs) {T=float32}
    gt = AddV2(gs:1, t) {T=float32}
)";

// kCond with y swapped for z (in_y), and t for gt (in_t), with these control inputs.
std::string CondAfter(absl::string_view in_y, absl::string_view in_t) {
  return absl::StrCat(
      Replaced(kCond, {{"z = AddV2(m, y) {T=float32}",
                        "z = AddV2(m, in_y) {T=float32, _spillway_undo=[\"1=y\"]}"},
                       {"gt = AddV2(gs:1, t) {T=float32}",
                        "gt = AddV2(gs:1, in_t) {T=float32, _spillway_undo=[\"1=t\"]}"}}),
      "out_y = Identity(y) {T=float32, _spillway_undo=[\"added\"]}\n", "in_y = Identity(out_y",
      in_y, ") {T=float32, _spillway_undo=[\"added\"]}\n",
      "out_t = Identity(t) {T=float32, _spillway_undo=[\"added\"]}\n", "in_t = Identity(out_t",
      in_t, ") {T=float32, _spillway_undo=[\"added\"]}\n");
}

TEST(VerifierTest, ASwapInMayWaitForWhatIsAliveWithItsConsumers) {
  EXPECT_THAT(VerifyText(kCond, CondAfter("", "")), IsOk());
  EXPECT_THAT(VerifyText(kCond, CondAfter(", ^m", ", ^z")), IsOk());
  EXPECT_THAT(VerifyText(kCond, CondAfter("", ", ^t2")), IsOk());
}

TEST(VerifierTest, ASwapInMayNotWaitForABranchThatMayNotBeTaken) {
  // IBM's program adds the first one in cond_v1: if the branch is not taken, z and all its
  // successors are dead, and training stops silently.
  EXPECT_THAT(VerifyText(kCond, CondAfter(", ^t", "")), IsRefusedBy("deadness"));
  EXPECT_THAT(VerifyText(kCond, CondAfter(", ^f", "")), IsRefusedBy("deadness"));
  EXPECT_THAT(VerifyText(kCond, CondAfter("", ", ^f")), IsRefusedBy("deadness"));
  EXPECT_THAT(VerifyText(kCond, CondAfter("", ", ^gf")), IsRefusedBy("deadness"));
  // On the swap-out it is just as bad.
  EXPECT_THAT(VerifyText(kCond, Replaced(CondAfter("", ""),
                                         {{"out_y = Identity(y)", "out_y = Identity(y, ^t)"}})),
              IsRefusedBy("deadness"));
}

TEST(VerifierTest, OneConsumerMoreMayMakeATriggerUnsound) {
  // in_t serves only gt: ^t2 is sound. If y's reader f read y's swap-in gated by ^t2, it would not
  // be.
  const std::string after = Replaced(CondAfter("", ", ^t2"),
                                     {{"s = Switch(y, p) {T=float32}",
                                       "s = Switch(in_s, p) {T=float32, _spillway_undo=[\"0=y\"]}"},
                                      {"out_t = ",
                                       "in_s = Identity(out_y, ^x) {T=float32, "
                                       "_spillway_undo=[\"added\"]}\nout_t = "}});
  EXPECT_THAT(VerifyText(kCond, after), IsOk());
  EXPECT_THAT(VerifyText(kCond, Replaced(after, {{"Identity(out_y, ^x)", "Identity(out_y, ^t)"}})),
              IsRefusedBy("deadness"));
}

struct ControlCase {
  std::string from, to;  // `to` is a line's beginning.
  bool sound;
};

// By the rule of MayControl, of which control_flow_test.cc has every case.
TEST(VerifierTest, ControlEdgesBetweenOriginals) {
  const std::vector<ControlCase> cases = {
      {"t", "gt = AddV2(gs:1, t", true},
      {"t", "gf = Relu(gs", false},
      {"t", "z = AddV2(m, y", false},
      {"m", "z = AddV2(m, y", true},
      // The end of a Switch is not one of its sides, but may be executed as one: refused.
      {"gs", "gt = AddV2(gs:1, t", false},
  };
  for (const ControlCase& c : cases) {
    const std::string after = Replaced(
        kCond,
        {{c.to + ") {T=float32}",
          absl::StrCat(c.to, ", ^", c.from, ") {T=float32, _spillway_undo=[\"^", c.from, "\"]}")}});
    const absl::Status status = VerifyText(kCond, after);
    if (c.sound) {
      EXPECT_THAT(status, IsOk()) << c.from << " -> " << c.to;
    } else {
      EXPECT_THAT(status, IsRefusedBy("deadness")) << c.from << " -> " << c.to;
    }
  }
}

TEST(VerifierTest, ADeadlineOfABranchHoldsWithinItAlone) {
  // out_t copies t, so it is dead when t is.
  const auto with = [](absl::string_view line) {
    return Replaced(CondAfter("", ""),
                    {{absl::StrCat(line, ") {T=float32}"),
                      absl::StrCat(line, ", ^out_t) {T=float32, _spillway_undo=[\"^out_t\"]}")}});
  };
  EXPECT_THAT(VerifyText(kCond, with("t2 = AddV2(t, t")), IsOk());
  EXPECT_THAT(VerifyText(kCond, with("gf = Relu(gs")), IsRefusedBy("deadness"));
}

TEST(VerifierTest, ADeadlineOfOneSideOfASwitchIsRefused) {
  const std::string after = absl::StrCat(
      Replaced(kCond, {{"t = Relu(s:1) {T=float32}",
                        "t = Relu(in) {T=float32, _spillway_undo=[\"0=s:1\"]}"},
                       {"t2 = AddV2(t, t) {T=float32}",
                        "t2 = AddV2(t, t, ^out) {T=float32, _spillway_undo=[\"^out\"]}"}}),
      "out = Identity(s:1) {T=float32, _spillway_undo=[\"added\"]}\n",
      "in = Identity(out) {T=float32, _spillway_undo=[\"added\"]}\n");
  EXPECT_THAT(VerifyText(kCond, after), IsRefusedBy("deadness"));
  // Without the deadline the swap itself is sound.
  EXPECT_THAT(VerifyText(kCond, Replaced(after, {{"t2 = AddV2(t, t, ^out) {T=float32, "
                                                  "_spillway_undo=[\"^out\"]}",
                                                  "t2 = AddV2(t, t) {T=float32}"}})),
              IsOk());
}

TEST(VerifierTest, ASwapNodeThatWaitsForAnotherIsRefused) {
  EXPECT_THAT(VerifyText(kCond, CondAfter(", ^out_t", "")), IsRefusedBy("deadness"));
}

// ---- Frames ----

constexpr char kLoop[] = R"(
    x = Placeholder() {dtype=float32}
    y = Relu(x) {T=float32}
    enter = Enter(y) {T=float32, frame_name="w"}
    merge = Merge(enter, next) {T=float32, N=2}
    less = Less(merge, merge) {T=float32}
    cond = LoopCond(less)
    switch = Switch(merge, cond) {T=float32}
    b1 = Relu(switch:1) {T=float32}
    b2 = AddV2(b1, b1) {T=float32}
    next = NextIteration(b2) {T=float32}
    exit = Exit(switch) {T=float32}
    z = AddV2(exit, y) {T=float32}
    mixed = Sub(b1, y) {T=float32}
    behind = Relu(mixed) {T=float32}
)";

std::string LoopAfter(absl::string_view line, absl::string_view control) {
  return Replaced(
      kLoop,
      {{absl::StrCat(line, ") {T=float32}"),
        absl::StrCat(line, ", ^", control, ") {T=float32, _spillway_undo=[\"^", control, "\"]}")}});
}

TEST(VerifierTest, ControlEdgesStayInTheirFrame) {
  EXPECT_THAT(VerifyText(kLoop, LoopAfter("b2 = AddV2(b1, b1", "less")), IsOk());
  EXPECT_THAT(VerifyText(kLoop, LoopAfter("z = AddV2(exit, y", "x")), IsOk());
  EXPECT_THAT(VerifyText(kLoop, LoopAfter("b2 = AddV2(b1, b1", "y")), IsRefusedBy("frames"));
  EXPECT_THAT(VerifyText(kLoop, LoopAfter("z = AddV2(exit, y", "b1")), IsRefusedBy("frames"));
  EXPECT_THAT(VerifyText(kLoop, LoopAfter("behind = Relu(mixed", "x")), IsRefusedBy("frames"));
}

std::string LoopSwap(absl::string_view from, absl::string_view to, absl::string_view tensor,
                     absl::string_view trigger) {
  return absl::StrCat(Replaced(kLoop, {{from, to}}), "out = Identity(", tensor,
                      ") {T=float32, _spillway_undo=[\"added\"]}\n", "in = Identity(out", trigger,
                      ") {T=float32, _spillway_undo=[\"added\"]}\n");
}

TEST(VerifierTest, SwapsStayInTheirFrame) {
  constexpr char kFrom[] = "b2 = AddV2(b1, b1) {T=float32}";
  constexpr char kTo[] = "b2 = AddV2(b1, in) {T=float32, _spillway_undo=[\"1=b1\"]}";
  EXPECT_THAT(VerifyText(kLoop, LoopSwap(kFrom, kTo, "b1", "")), IsOk());
  EXPECT_THAT(VerifyText(kLoop, LoopSwap(kFrom, kTo, "b1", ", ^less")), IsOk());
  EXPECT_THAT(VerifyText(kLoop, LoopSwap(kFrom, kTo, "b1", ", ^x")), IsRefusedBy("frames"));
  // The frame of `mixed` is uncertain.
  EXPECT_THAT(VerifyText(kLoop, LoopSwap("behind = Relu(mixed) {T=float32}",
                                         "behind = Relu(in) {T=float32, "
                                         "_spillway_undo=[\"0=mixed\"]}",
                                         "mixed", "")),
              IsRefusedBy("frames"));
}

TEST(VerifierTest, ACycleThroughTheLoopsOwnBackEdgeIsNone) {
  // The graph's own loop passes, edited or not.
  EXPECT_THAT(VerifyText(kLoop, kLoop), IsOk());
  EXPECT_THAT(VerifyText(kLoop, LoopAfter("b1 = Relu(switch:1", "b2")), IsRefusedBy("acyclic"));
}

// The second variable enters after the first has left, but the body needs it earlier.
TEST(VerifierTest, ALoopThatWaitsForWhatItLeavesIsRefused) {
  constexpr char kTwo[] = R"(
    x = Placeholder() {dtype=float32}
    y = Relu(x) {T=float32}
    y2 = Relu(y) {T=float32}
    enter = Enter(x) {T=float32, frame_name="w"}
    merge = Merge(enter, next) {T=float32, N=2}
    less = Less(merge, merge) {T=float32}
    cond = LoopCond(less)
    switch = Switch(merge, cond) {T=float32}
    other = Enter(y2) {T=float32, frame_name="w"}
    other_merge = Merge(other, other_next) {T=float32, N=2}
    other_switch = Switch(other_merge, cond) {T=float32}
    b = AddV2(switch:1, other_switch:1) {T=float32}
    next = NextIteration(b) {T=float32}
    other_next = NextIteration(other_switch:1) {T=float32}
    exit = Exit(switch) {T=float32}
    z = Relu(exit) {T=float32}
)";
  const auto with = [&](absl::string_view control) {
    return Replaced(kTwo, {{"y2 = Relu(y) {T=float32}",
                            absl::StrCat("y2 = Relu(y, ^", control,
                                         ") {T=float32, _spillway_undo=[\"^", control, "\"]}")}});
  };
  EXPECT_THAT(VerifyText(kTwo, with("x")), IsOk());
  EXPECT_THAT(VerifyText(kTwo, with("z")), IsRefusedBy("acyclic"));
}

// ---- Names ----

v1::RewriteOptions WithTarget(const std::string& name) {
  v1::RewriteOptions options;
  options.mutable_step()->add_targets(name);
  return options;
}

v1::RewriteOptions WithFeed(const std::string& name) {
  v1::RewriteOptions options;
  options.mutable_step()->add_feeds()->set_name(name);
  return options;
}

TEST(VerifierTest, TargetsMustBeThere) {
  EXPECT_THAT(VerifyText(kBefore, kAfter, WithTarget("d")), IsOk());
  EXPECT_THAT(VerifyText(kBefore, kAfter, WithTarget("d:0")), IsOk());
  EXPECT_THAT(VerifyText(kBefore, kAfter, WithTarget("nope")), IsRefusedBy("names"));
}

TEST(VerifierTest, FedNodesMustBeUnedited) {
  EXPECT_THAT(VerifyText(kBefore, kAfter, WithFeed("a")), IsOk());
  EXPECT_THAT(VerifyText(kBefore, kAfter, WithFeed("b:0")), IsOk());
  EXPECT_THAT(VerifyText(kBefore, kAfter, WithFeed("d")), IsRefusedBy("names"));
  EXPECT_THAT(VerifyText(kBefore, kAfter, WithFeed("d:0")), IsRefusedBy("names"));
  EXPECT_THAT(VerifyText(kBefore, kAfter, WithFeed("nope")), IsRefusedBy("names"));
}

// ---- A graph that was rewritten before ----

TEST(VerifierTest, AnEarlierRewriteIsTheOriginalOfTheNext) {
  // g's read of b is swapped in a second rewrite.
  const std::string second =
      absl::StrCat(Replaced(kAfter, {{"g = AddV2(e, b) {T=float32}",
                                      "g = AddV2(e, in2) {T=float32, _spillway_undo=[\"1=b\"]}"}}),
                   "out2 = Identity(b) {T=float32, _spillway_undo=[\"added\"]}\n",
                   "in2 = Identity(out2, ^e) {T=float32, _spillway_undo=[\"added\"]}\n");
  EXPECT_THAT(VerifyText(kAfter, second), IsOk());
  EXPECT_THAT(VerifyText(kAfter, Replaced(second, {{"g = AddV2(e, in2) {T=float32, "
                                                    "_spillway_undo=[\"1=b\"]}",
                                                    "g = AddV2(e, in2) {T=float32}"}})),
              IsRefusedBy("undo"));
  // The earlier swap-in must not be touched.
  EXPECT_THAT(
      VerifyText(kAfter, Replaced(second, {{"in = Identity(out, ^c)", "in = Identity(out, ^b)"}})),
      IsRefusedBy("data"));
}

}  // namespace
}  // namespace spillway::core
