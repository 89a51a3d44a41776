#include "rewrite_core/strategy/scope/scope_strategy.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/text_format.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"
#include "tests/testing/plan_text.h"
#include "tests/testing/strategy_fixture.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::IsInvalid;
using testing::IsOk;
using testing::PlanWith;
using testing::PrintPlan;
using testing::TestFacts;
using testing::TestGraph;

// RewriteOptions in protobuf's text form; the backward part is G/ by default.
v1::RewriteOptions Options(const std::string& text) {
  v1::RewriteOptions options;
  if (!google::protobuf::TextFormat::MergeFromString(text, &options)) std::abort();
  if (options.scope().optimizer_scopes().empty()) {
    options.mutable_scope()->add_optimizer_scopes("G/");
  }
  return options;
}

absl::StatusOr<StrategyResult> Plan(const std::string& graph, const std::string& options) {
  return PlanWith(TestFacts(graph, Options(options).step()), Options(options));
}

// The printed plan, or the error.
std::string Printed(const std::string& graph, const std::string& options) {
  const TestFacts f(graph, Options(options).step());
  const auto result = PlanWith(f, Options(options));
  return result.ok() ? PrintPlan(*f.graph, result->plan) : result.status().ToString();
}

// The verdicts, by tensor.
std::map<std::string, std::string> Verdicts(const std::string& graph, const std::string& options) {
  const TestFacts f(graph, Options(options).step());
  std::map<std::string, std::string> verdicts;
  for (const TensorDecision& d :
       testing::ValueOrDie(PlanWith(f, Options(options)), "plan").decisions) {
    verdicts[TensorName(*f.graph, d.tensor)] = v1::Reason_Name(d.reason).substr(7);
  }
  return verdicts;
}

// Five forward ops, and a backward op for each. The seed is f1, which reaches the four others that
// feed the backward part. Orders: f1 0, f2 1, f3 2, f4 3, loss 4, g5 5, g4 6, g3 7, g2 8, g1 9, end
// 10; the backward part starts at 5. The shapes of f4 and loss are unknown. trigger_search_test
// explains each trigger.
constexpr char kNet[] = R"(
    x = Placeholder() {dtype=float32, shape=(?,4)}
    f1 = Relu(x) {T=float32, _output_shapes=[(?,4)]}
    f2 = Relu(f1) {T=float32, _output_shapes=[(2,4)]}
    f3 = Tanh(f2) {T=float32, _output_shapes=[(3,4)]}
    f4 = RiscAbs(f3) {T=float32}
    loss = Relu(f4) {T=float32}
    G/g5 = Relu(loss) {T=float32}
    G/g4 = AddV2(G/g5, f4) {T=float32}
    G/g3 = AddV2(G/g4, f3) {T=float32}
    G/g2 = AddV2(G/g3, f2) {T=float32}
    G/g1 = AddV2(G/g2, f1) {T=float32}
    G/end = Relu(G/g1) {T=float32}
)";

constexpr char kNetPlan[] =
    "f1:0 (? bytes) -> G/g1[1] after G/g2\n"
    "f2:0 (32 bytes) -> G/g2[1] after G/g3\n"
    "f3:0 (48 bytes) -> G/g3[1] after G/g4\n"
    "f4:0 (? bytes) -> G/g4[1] after G/g5\n"
    // order(g5) - 1 is not above order(loss), and no level lies between.
    "loss:0 (? bytes) -> G/g5[0]\n";

std::string Changed(const std::string& from, const std::string& to) {
  const std::string text = absl::StrReplaceAll(kNet, {{from, to}});
  if (text == kNet) ADD_FAILURE() << "no " << from;
  return text;
}

// The lines of kNetPlan that begin with one of these.
std::string LinesOf(const std::vector<std::string>& tensors) {
  std::string lines;
  for (absl::string_view line : absl::StrSplit(kNetPlan, '\n')) {
    for (const std::string& tensor : tensors) {
      if (absl::StartsWith(line, tensor + ":")) absl::StrAppend(&lines, line, "\n");
    }
  }
  return lines;
}

TEST(ScopeStrategyTest, Defaults) {
  EXPECT_EQ(Printed(kNet, ""), kNetPlan);
  EXPECT_EQ(Printed(kNet,
                    "scope { lb: 1 ub: 10000 n_tensors: -1 ctrld_strategy: "
                    "CTRLD_STRATEGY_CHAIN_RULE }"),
            kNetPlan);
}

TEST(ScopeStrategyTest, ReportsWhatItTookAsGiven) {
  const auto result = Plan(kNet, "");
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->report.scope().backward_op_count(), 6);
  EXPECT_THAT(result->report.scope().starting_ops(), ElementsAre("f1"));
  EXPECT_TRUE(result->report.scope().starting_ops_found());
  EXPECT_EQ(result->report.scope().backward_start_level(), 5);
  EXPECT_EQ(result->report.scope().level_count(), 11);
  EXPECT_THAT(result->report.warnings(), IsEmpty());
}

struct PlanCase {
  std::string name, options, plan;
};

class ParameterTest : public ::testing::TestWithParam<PlanCase> {};

TEST_P(ParameterTest, ChangesThePlan) {
  EXPECT_EQ(Printed(kNet, GetParam().options), GetParam().plan);
}

INSTANTIATE_TEST_SUITE_P(
    ScopeStrategy, ParameterTest,
    ::testing::Values(
        // f4: 6 - 2 < 5, so direct, and no level from 6 - 2 - 1 = 3 is above order(f4) = 3.
        PlanCase{"Lb", "scope { lb: 2 }",
                 "f1:0 (? bytes) -> G/g1[1] after G/g3\n"
                 "f2:0 (32 bytes) -> G/g2[1] after G/g4\n"
                 "f3:0 (48 bytes) -> G/g3[1] after G/g5\n"
                 "f4:0 (? bytes) -> G/g4[1]\n"
                 "loss:0 (? bytes) -> G/g5[0]\n"},
        PlanCase{"Ub", "scope { ub: 1 }",
                 "f1:0 (? bytes) -> G/g1[1]\n"
                 "f2:0 (32 bytes) -> G/g2[1]\n"
                 "f3:0 (48 bytes) -> G/g3[1]\n"
                 "f4:0 (? bytes) -> G/g4[1]\n"
                 "loss:0 (? bytes) -> G/g5[0]\n"},
        PlanCase{"UbOfTwo", "scope { ub: 2 }", kNetPlan},
        PlanCase{"DirectOrder", "scope { ctrld_strategy: CTRLD_STRATEGY_DIRECT_ORDER }",
                 "f1:0 (? bytes) -> G/g1[1] after G/g3\n"
                 "f2:0 (32 bytes) -> G/g2[1] after G/g4\n"
                 "f3:0 (48 bytes) -> G/g3[1] after G/g5\n"
                 "f4:0 (? bytes) -> G/g4[1] after loss\n"
                 "loss:0 (? bytes) -> G/g5[0]\n"},
        PlanCase{"NTensors", "scope { n_tensors: 2 }", LinesOf({"f1", "f2"})},
        PlanCase{"NTensorsOfAll", "scope { n_tensors: 5 }", kNetPlan},
        PlanCase{"NTensorsNegative", "scope { n_tensors: -7 }", kNetPlan},
        PlanCase{"NTensorsNone", "scope { n_tensors: 0 }", ""},
        PlanCase{"ExclScope", "scope { excl_scopes: 'f2' }", LinesOf({"f1", "f3", "f4", "loss"})},
        PlanCase{"ExclScopes", "scope { excl_scopes: 'f2' excl_scopes: 'l.ss' }",
                 LinesOf({"f1", "f3", "f4"})},
        PlanCase{"ExclType", "scope { excl_types: 'Tanh' }", LinesOf({"f1", "f2", "f4", "loss"})},
        PlanCase{"InclScope", "scope { incl_scopes: 'f2' }", LinesOf({"f2"})},
        PlanCase{"InclType", "scope { incl_types: 'Tanh' }", LinesOf({"f3"})},
        PlanCase{"InclBoth", "scope { incl_types: 'Tanh' incl_scopes: 'f1' }",
                 LinesOf({"f1", "f3"})},
        // f4 is not a Relu.
        PlanCase{"ExclGoesBeforeIncl", "scope { incl_types: 'Relu' excl_scopes: 'f1' }",
                 LinesOf({"f2", "loss"})},
        // Starting at f3, earlier nodes are not visited; levels are lower by two, so nothing else
        // changes.
        PlanCase{"StartingOp", "scope { starting_op_names: 'f3' }", LinesOf({"f3", "f4", "loss"})},
        PlanCase{"StartingScope", "scope { starting_scope: 'f[34]' }",
                 LinesOf({"f3", "f4", "loss"})},
        // An exact name: no op is called f.
        PlanCase{"MinBytes", "min_tensor_bytes: 40", LinesOf({"f1", "f3", "f4", "loss"})},
        PlanCase{"BatchSize", "step { batch_size: 8 } scope { incl_scopes: 'f1' }",
                 "f1:0 (128 bytes) -> G/g1[1] after G/g2\n"}),
    testing::CaseName());

TEST(ScopeStrategyTest, EveryTensorConsideredHasAVerdict) {
  using Map = std::map<std::string, std::string>;
  EXPECT_EQ(Verdicts(kNet, "scope { n_tensors: 2 excl_scopes: 'f2' } min_tensor_bytes: 50"),
            (Map{{"f1:0", "SWAPPED"},
                 {"f2:0", "EXCLUDED"},
                 {"f3:0", "TOO_SMALL"},
                 {"f4:0", "SWAPPED"},
                 {"loss:0", "LIMIT_REACHED"}}));
  EXPECT_EQ(Verdicts(kNet, "scope { incl_scopes: 'f4' }"), (Map{{"f1:0", "NOT_INCLUDED"},
                                                                {"f2:0", "NOT_INCLUDED"},
                                                                {"f3:0", "NOT_INCLUDED"},
                                                                {"f4:0", "SWAPPED"},
                                                                {"loss:0", "NOT_INCLUDED"}}));
  EXPECT_EQ(Verdicts(kNet, "decision_detail: DECISION_DETAIL_NONE"), Map{});
  EXPECT_EQ(Verdicts(kNet, "scope { n_tensors: 0 }"), Map{});
}

// G/early shares its level with loss and so has no order; the only consumer left is G/w.
TEST(ScopeStrategyTest, AWhileIsTheReasonThoughAnotherConsumerHasNoOrder) {
  constexpr char kLoop[] = R"(
      f1 = Placeholder() {dtype=float32}
      f2 = Relu(f1) {T=float32}
      loss = Relu(f2) {T=float32}
      G/early = Relu(f2) {T=float32}
      G/g3 = Relu(loss) {T=float32}
      G/w = While(G/g3, f2) {T=[float32,float32]}
      G/end = AddV2(G/w, G/early) {T=float32}
      G/last = Relu(G/end) {T=float32}
  )";
  EXPECT_EQ(Verdicts(kLoop, "").at("f2:0"), "READ_BY_LOOP");
}

TEST(ScopeStrategyTest, DetailDoesNotChangeThePlan) {
  EXPECT_EQ(Printed(kNet, "decision_detail: DECISION_DETAIL_NONE"), kNetPlan);
}

TEST(ScopeStrategyTest, VerdictsCarrySizesAndWhyTheyAreUnknown) {
  const auto result = Plan(kNet, "");
  ASSERT_THAT(result, IsOk());
  ASSERT_EQ(result->decisions.size(), 5u);
  EXPECT_EQ(result->decisions[0].why_unknown, v1::SIZE_UNKNOWN_DIM);
  EXPECT_EQ(result->decisions[1].size_bytes, 32);
  EXPECT_EQ(result->decisions[1].why_unknown, v1::SIZE_UNKNOWN_UNSPECIFIED);
  EXPECT_EQ(result->decisions[3].why_unknown, v1::SIZE_UNKNOWN_NO_SHAPE);
}

class BuiltInTypeTest : public ::testing::TestWithParam<std::string> {};

TEST_P(BuiltInTypeTest, IsNeverSwapped) {
  const std::string graph = Changed("f3 = Tanh(f2)", absl::StrCat("f3 = ", GetParam(), "(f2)"));
  EXPECT_EQ(Verdicts(graph, "").at("f3:0"), "EXCLUDED");
  EXPECT_EQ(Verdicts(graph, "scope { incl_scopes: 'f3' }").at("f3:0"), "EXCLUDED");
  EXPECT_EQ(Verdicts(Changed("f3 = Tanh(f2)", "f3 = Sub(f2, f2)"), "").at("f3:0"), "SWAPPED");
}

INSTANTIATE_TEST_SUITE_P(ScopeStrategy, BuiltInTypeTest,
                         ::testing::Values("Const", "Mul", "Add", "Identity", "Assign",
                                           "VariableV2", "Reshape", "Shape", "ShapeN",
                                           "Placeholder"),
                         [](const auto& type) { return type.param; });

// ---- Consumers ----

TEST(ScopeStrategyTest, AConsumerWithoutConsumersIsDropped) {
  // G/last reads f2 but nothing reads it; control edges do not read.
  const std::string graph =
      absl::StrCat(kNet, "G/last = AddV2(G/g2, f2) {T=float32}\n", "G/done = NoOp(^G/last)\n");
  EXPECT_EQ(Printed(graph, ""), kNetPlan);
  EXPECT_EQ(
      Printed(graph + "G/reader = Relu(G/last) {T=float32}", ""),
      absl::StrReplaceAll(
          // G/last has order 9: f3 is one step from f2, and g3 (7) lies between 1 and 9.
          kNetPlan, {{"after G/g3\n", "after G/g3\nf2:0 (32 bytes) -> G/last[1] after G/g3\n"}}));
}

TEST(ScopeStrategyTest, WithoutALateConsumerNothingIsSwapped) {
  const std::string graph = Changed("AddV2(G/g3, f2)", "Relu(G/g3)");
  EXPECT_EQ(Printed(graph, ""),
            "f1:0 (? bytes) -> G/g1[1] after G/g3\n"  // f2 has no backward consumer now, f3 has.
                + LinesOf({"f3", "f4", "loss"}));
  EXPECT_EQ(Verdicts(graph, "").at("f2:0"), "NO_LATE_CONSUMER");
}

TEST(ScopeStrategyTest, ForwardConsumersReadTheProducer) {
  // f1 -> f2 appears in no line of kNetPlan; nor does a control input.
  EXPECT_EQ(Printed(Changed("AddV2(G/g2, f1)", "AddV2(G/g2, f1, ^f1)"), ""), kNetPlan);
}

TEST(ScopeStrategyTest, AllPositionsOfAConsumerShareASwapIn) {
  EXPECT_EQ(Printed(Changed("G/g1 = AddV2(G/g2, f1)", "G/g1 = AddN(f1, G/g2, f1, f1)"),
                    "scope { incl_scopes: 'f1' }"),
            "f1:0 (? bytes) -> G/g1[0], G/g1[2], G/g1[3] after G/g2\n");
}

TEST(ScopeStrategyTest, OutputsOfOneOpAreSwappedApart) {
  const std::string graph = absl::StrReplaceAll(
      kNet, {{"f3 = Tanh(f2) {T=float32, _output_shapes=[(3,4)]}",
              "f3 = Split(dim, f2) {T=float32, num_split=2, _output_shapes=[(3,4),(6)]}\n"
              "dim = Const() {dtype=int32}"},
             {"AddV2(G/g4, f3)", "AddN(G/g4, f3:1, f3)"}});
  EXPECT_EQ(Printed(graph, "scope { incl_scopes: 'f3' }"),
            "f3:0 (48 bytes) -> G/g3[2] after G/g4\n"
            "f3:1 (24 bytes) -> G/g3[1] after G/g4\n");
}

// f1 is read by g3 and by g1.
const char* const kTwoConsumers[] = {"AddV2(G/g4, f3)", "AddN(G/g4, f3, f1)"};

TEST(ScopeStrategyTest, EachConsumerHasItsOwnSwapIn) {
  const std::string graph = Changed(kTwoConsumers[0], kTwoConsumers[1]);
  EXPECT_EQ(Printed(graph, "scope { incl_scopes: 'f1' }"),
            // For g3 (7): f2's g2 (8) comes too late, f3's g3 is itself, f4's g4 (6) is between.
            "f1:0 (? bytes) -> G/g3[2] after G/g4\n"
            "f1:0 (? bytes) -> G/g1[1] after G/g2\n");
}

TEST(ScopeStrategyTest, FusedTheyShareOneForTheEarliest) {
  const std::string graph = Changed(kTwoConsumers[0], kTwoConsumers[1]);
  EXPECT_EQ(Printed(graph, "scope { fuse_swapins: true incl_scopes: 'f1' }"),
            "f1:0 (? bytes) -> G/g3[2], G/g1[1] after G/g4\n");
  // A single consumer has nothing to share.
  EXPECT_EQ(Printed(kNet, "scope { fuse_swapins: true }"), kNetPlan);
}

TEST(ScopeStrategyTest, TheEarliestIsSoByOrderNotByPlaceInTheFile) {
  // G/g1 (9) stands before G/g3 (7) here. Direct, for g3: level 7 - 1 - 1 = 5 is g5. (For g1 it
  // would be g4: of the levels from 7 down, g3 may not wait for itself.)
  const std::string line = "G/g1 = AddV2(G/g2, f1) {T=float32}\n";
  const std::string graph =
      line + absl::StrReplaceAll(kNet, {{line, ""}, {kTwoConsumers[0], kTwoConsumers[1]}});
  EXPECT_EQ(Printed(graph,
                    "scope { fuse_swapins: true incl_scopes: 'f1' "
                    "ctrld_strategy: CTRLD_STRATEGY_DIRECT_ORDER }"),
            "f1:0 (? bytes) -> G/g1[1], G/g3[2] after G/g5\n");
}

// A skip connection: f4 reads f1 too. f1's forward consumers have orders 1 and 3.
TEST(ScopeStrategyTest, BranchesAreSwappedBeyondTheThreshold) {
  const std::string graph =
      Changed("f4 = RiscAbs(f3) {T=float32}", "f4 = AddV2(f3, f1) {T=float32}");
  const std::string own =
      // In the graph without branches f1 -> G/g1 alone: one step from f1 are f2 and f4 now, whose
      // backward consumers are g2 (8) and g4 (6): the lowest is g4.
      "f1:0 (? bytes) -> G/g1[1] after G/g4\n";
  const std::string branch = "f1:0 (? bytes) -> f4[1] after f2\n";  // Direct: level 3 - 1 - 1.
  const std::string only_f1 = "incl_scopes: 'f1'";
  EXPECT_EQ(Printed(graph, absl::StrCat("scope { ", only_f1, "}")), own);
  EXPECT_EQ(Printed(graph, absl::StrCat("scope { swap_branches: true ", only_f1, "}")),
            branch + own);
  EXPECT_EQ(Printed(graph,
                    absl::StrCat("scope { swap_branches: true branch_threshold: 1 ", only_f1, "}")),
            branch + own);
  // 3 is not above 1 + 2.
  EXPECT_EQ(Printed(graph,
                    absl::StrCat("scope { swap_branches: true branch_threshold: 2 ", only_f1, "}")),
            own);
  // Without swap_branches the threshold has no effect.
  EXPECT_EQ(Printed(graph, absl::StrCat("scope { branch_threshold: 0 ", only_f1, "}")), own);
}

// ---- Consumers that have no order ----

TEST(ScopeStrategyTest, BehindAConsumerWithoutOrderTheSearchGoesOn) {
  // aux and aux2 share levels 1 and 2 with f2 and f3, so they have no order; aux2 is read by g2,
  // whose order 8 is behind the start of the backward part, so aux2 is swapped.
  const std::string graph = absl::StrReplaceAll(
      kNet, {{"AddV2(G/g3, f2)", "AddN(G/g3, f2, G/aux2)"},
             {"G/end", "G/aux = Relu(f1) {T=float32}\nG/aux2 = Relu(G/aux) {T=float32}\nG/end"}});
  EXPECT_EQ(Printed(graph, ""),
            absl::StrReplaceAll(kNetPlan,
                                // A backward producer: direct, level 8 - 1 - 1 = 6.
                                {{"f2:0", "G/aux2:0 (? bytes) -> G/g2[2] after G/g4\nf2:0"}}));
  EXPECT_EQ(Verdicts(graph, "").count("G/aux:0"), 0u);
}

TEST(ScopeStrategyTest, TheSearchPassesConsumersUpToTheStart) {
  // g5 (5) is not behind the start (5), so the search goes on to it: its reader g4 (6) is.
  const std::string graph =
      absl::StrReplaceAll(kNet, {{"G/g5 = Relu(loss)", "G/g5 = AddV2(loss, G/aux)"},
                                 {"G/end", "G/aux = Relu(f1) {T=float32}\nG/end"}});
  EXPECT_EQ(Printed(graph, ""),
            absl::StrReplaceAll(kNetPlan, {{"f2:0", "G/g5:0 (? bytes) -> G/g4[0]\nf2:0"}}));
}

TEST(ScopeStrategyTest, ATensorWhoseConsumersHaveNoOrderIsNotSwapped) {
  const std::string graph = absl::StrReplaceAll(
      kNet, {{"AddV2(G/g2, f1)", "Relu(G/g2)"},
             {"G/end", "G/aux = Relu(f1) {T=float32}\nG/aux2 = Relu(G/aux) {T=float32}\nG/end"}});
  EXPECT_EQ(Verdicts(graph, "").at("f1:0"), "NO_ORDER");
  EXPECT_EQ(Verdicts(kNet, "").at("f1:0"), "SWAPPED");
}

// ---- Refusals ----

TEST(ScopeStrategyTest, WhatIsNotEligibleIsRefusedWithItsReason) {
  const std::string graph =
      absl::StrReplaceAll(kNet, {{"f1 = Relu(x) {T=float32, ", "f1 = Relu(x) @/cpu:0 {T=float32, "},
                                 {"f3 = Tanh(f2) {T=float32, ", "f3 = Tanh(f2) {T=int32, "},
                                 {"f4 = RiscAbs(f3) {T=float32}", "f4 = MyOwnOp(f3)"}});
  EXPECT_EQ(Verdicts(graph, ""), (std::map<std::string, std::string>{{"f1:0", "CPU_PRODUCER"},
                                                                     {"f2:0", "SWAPPED"},
                                                                     {"f3:0", "HOST_MEMORY"},
                                                                     {"f4:0", "UNKNOWN_DTYPE"},
                                                                     {"loss:0", "SWAPPED"}}));
  EXPECT_EQ(Printed(graph, ""), LinesOf({"f2", "loss"}));
}

TEST(ScopeStrategyTest, ARefusedTensorDoesNotCountAgainstTheLimit) {
  EXPECT_EQ(Printed(Changed("f1 = Relu(x) ", "f1 = Relu(x) @/cpu:0 "), "scope { n_tensors: 1 }"),
            LinesOf({"f2"}));
}

TEST(ScopeStrategyTest, DevicesNameWhatIsSwapped) {
  const std::string graph =
      absl::StrReplaceAll(kNet, {{"f2 = Relu(f1) ", "f2 = Relu(f1) @/gpu:1 "},
                                 {"f4 = RiscAbs(f3) ", "f4 = RiscAbs(f3) @/device:GPU:0 "}});
  EXPECT_EQ(Printed(graph, "devices: '/gpu:1'"), LinesOf({"f2"}));
  EXPECT_EQ(Printed(graph, "devices: '/gpu:0' devices: '/gpu:1'"), LinesOf({"f2", "f4"}));
  EXPECT_EQ(Printed(graph, ""), kNetPlan);
}

// ---- Errors ----

struct ErrorCase {
  std::string name, options;
  v1::ErrorReason reason;
  std::string message;
  std::string option;
};

class ScopeErrorTest : public ::testing::TestWithParam<ErrorCase> {};

TEST_P(ScopeErrorTest, NamesTheOption) {
  const auto result = Plan(kNet, GetParam().options);
  EXPECT_THAT(result, IsInvalid(GetParam().reason, GetParam().message));
  EXPECT_EQ(testing::ErrorDetailOf(result, "option"), GetParam().option);
}

constexpr auto kBad = v1::ERROR_REASON_BAD_OPTION;
constexpr auto kConflict = v1::ERROR_REASON_CONFLICTING_OPTIONS;
constexpr auto kNothing = v1::ERROR_REASON_NAME_MATCHES_NOTHING;
constexpr auto kRegex = v1::ERROR_REASON_BAD_REGEX;

INSTANTIATE_TEST_SUITE_P(
    ScopeStrategy, ScopeErrorTest,
    ::testing::Values(
        ErrorCase{"LbZero", "scope { lb: 0 }", kBad, "lb is 0", "lb"},
        ErrorCase{"LbNegative", "scope { lb: -4 }", kBad, "lb is -4", "lb"},
        ErrorCase{"UbZero", "scope { ub: 0 }", kBad, "ub is 0", "ub"},
        ErrorCase{"LbAboveUb", "scope { lb: 5 ub: 4 }", kConflict, "lb is 5 and ub is 4", "lb"},
        ErrorCase{"LbAboveDefaultUb", "scope { lb: 10001 }", kConflict, "ub is 10000", "lb"},
        ErrorCase{"Threshold", "scope { branch_threshold: -1 }", kBad, "branch_threshold is -1",
                  "branch_threshold"},
        ErrorCase{"BothScopes", "scope { excl_scopes: 'f1' incl_scopes: 'f1' }", kConflict, "'f1'",
                  "excl_scopes"},
        ErrorCase{"BothScopesOneWithSlash", "scope { excl_scopes: 'f1/' incl_scopes: 'f1' }",
                  kConflict, "'f1/'", "excl_scopes"},
        ErrorCase{"BothTypes", "scope { excl_types: 'Relu' incl_types: 'Relu' }", kConflict,
                  "'Relu'", "excl_types"},
        ErrorCase{"OptimizerScope", "scope { optimizer_scopes: 'H' }", kNothing, "'H'",
                  "optimizer_scopes"},
        ErrorCase{"OptimizerRegex", "scope { optimizer_scopes: '(' }", kRegex, "'('",
                  "optimizer_scopes"},
        ErrorCase{"OptimizerEmpty", "scope { optimizer_scopes: '' }", kBad, "empty entry",
                  "optimizer_scopes"},
        ErrorCase{"StartingScope", "scope { starting_scope: 'y' }", kNothing, "'y'",
                  "starting_scope"},
        ErrorCase{"StartingScopeRegex", "scope { starting_scope: '[' }", kRegex, "'['",
                  "starting_scope"},
        ErrorCase{"StartingOp", "scope { starting_op_names: 'f1' starting_op_names: 'f' }",
                  kNothing, "'f'", "starting_op_names"},
        ErrorCase{"ExclScope", "scope { excl_scopes: 'f' }", kNothing, "'f'", "excl_scopes"},
        // x is an op, but cannot be reached from the starting ops.
        ErrorCase{"ExclScopeNotReached", "scope { excl_scopes: 'x' }", kNothing, "'x'",
                  "excl_scopes"},
        ErrorCase{"InclScope", "scope { incl_scopes: 'nope' }", kNothing, "'nope'", "incl_scopes"},
        ErrorCase{"ExclType", "scope { excl_types: 'Conv2D' }", kNothing, "'Conv2D'", "excl_types"},
        // Types are names, not patterns.
        ErrorCase{"ExclTypePattern", "scope { excl_types: 'Rel.' }", kNothing, "'Rel.'",
                  "excl_types"},
        ErrorCase{"InclType", "scope { incl_types: 'Placeholder' }", kNothing, "'Placeholder'",
                  "incl_types"},
        ErrorCase{"DebugLevel", "scope { debug_level: 3 }", kBad, "debug_level is 3",
                  "debug_level"},
        ErrorCase{"AllIsBackward", "scope { optimizer_scopes: '.' }",
                  v1::ERROR_REASON_NO_STARTING_OP, "optimizer_scopes '.' cover",
                  "optimizer_scopes"}),
    testing::CaseName());

TEST(ScopeStrategyTest, TheTwinsOfErrorsPass) {
  for (const char* options :
       {"scope { lb: 4 ub: 4 }", "scope { lb: 10000 }", "scope { excl_scopes: 'f1/' }",
        "scope { excl_scopes: 'f1' incl_scopes: 'f2' }", "scope { branch_threshold: 2147483647 }",
        "scope { lb: 2147483647 ub: 2147483647 }",
        "scope { starting_scope: 'f' starting_op_names: 'x' }"}) {
    EXPECT_THAT(Plan(kNet, options), IsOk()) << options;
  }
}

TEST(ScopeStrategyTest, WithoutOptimizerScopesAGraphWithoutGradientsIsRefused) {
  const TestFacts f(kNet);
  v1::RewriteOptions options;
  options.mutable_scope();
  const auto result = PlanWith(f, options);
  EXPECT_THAT(result, IsInvalid(v1::ERROR_REASON_NO_BACKWARD_PART, "optimizer_scopes"));
  EXPECT_EQ(testing::ErrorDetailOf(result, "option"), "optimizer_scopes");
}

// Names are given by the authors of these graphs; the structure must lead to the same swaps.
TEST(ScopeStrategyTest, WithoutOptimizerScopesRealGraphsHaveTheSwapsThatNamesGive) {
  struct {
    const char* graph;
    const char* named;
    const char* update;  // The optimizer's op.
    int64_t updates;     // One for each weight.
  } const cases[] = {
      {"mnist_deep", "scope { optimizer_scopes: 'adam_optimizer' }", "ApplyAdam", 8},
      {"resnet50_tf1", "scope { optimizer_scopes: 'gradients' optimizer_scopes: 'Momentum' }",
       "ApplyMomentum", 161},
      {"bert_base", "scope { optimizer_scopes: 'gradients' optimizer_scopes: 'Adam' }", "ApplyAdam",
       202}};
  for (const auto& c : cases) {
    const TestFacts f(
        TestGraph::FromBytes(testing::ReadTestGraph(absl::StrCat(c.graph, "/graph_shapes.pb"))));
    const auto named = PlanWith(f, Options(c.named));
    v1::RewriteOptions unnamed;
    unnamed.mutable_scope();
    const auto found = PlanWith(f, unnamed);
    ASSERT_THAT(named, IsOk());
    ASSERT_THAT(found, IsOk());
    EXPECT_GE(named->plan.swaps.size(), 9u);
    EXPECT_EQ(PrintPlan(*f.graph, found->plan), PrintPlan(*f.graph, named->plan)) << c.graph;
    const v1::ScopeReport& report = found->report.scope();
    EXPECT_TRUE(report.backward_part_found());
    ASSERT_GT(report.weight_updates_size(), 0);
    EXPECT_EQ(report.weight_updates(0).name(), c.update);
    EXPECT_EQ(report.weight_updates(0).count(), c.updates);
    EXPECT_GT(report.backward_scopes_size(), 0);
    EXPECT_FALSE(named->report.scope().backward_part_found());
    EXPECT_EQ(named->report.scope().weight_updates_size(), 0);
  }
}

TEST(ScopeStrategyTest, DebugListsTheStartingOpsAndThenTheWalk) {
  const TestFacts f(kNet);
  const auto listed = [&](const std::string& options) {
    const StrategyResult result = testing::ValueOrDie(PlanWith(f, Options(options)), "plan");
    std::vector<std::string> lines;
    for (const v1::DebugOp& op : result.report.scope().debug_ops()) {
      lines.push_back(absl::StrCat(op.name(), " ", op.type(), " ",
                                   op.has_order() ? absl::StrCat(op.order()) : "-"));
    }
    return lines;
  };
  EXPECT_THAT(listed("scope {}"), IsEmpty());
  EXPECT_THAT(listed("scope { debug_level: 2 }"), IsEmpty());
  EXPECT_THAT(listed("scope { debug: true starting_op_names: 'f1' }"), ElementsAre("f1 Relu 0"));
  const auto walk = listed("scope { debug: true debug_level: 2 starting_op_names: 'f1' }");
  ASSERT_GT(walk.size(), 2u);
  EXPECT_EQ(walk[0], "f1 Relu 0");
  EXPECT_EQ(walk[1], "f2 Relu 1");
}

TEST(ScopeStrategyTest, TheParametersInForceAreReported) {
  const auto given = Plan(kNet, "scope { lb: 2 ub: 9 n_tensors: 3 }");
  ASSERT_THAT(given, IsOk());
  EXPECT_EQ(given->report.scope().lb(), 2);
  EXPECT_EQ(given->report.scope().ub(), 9);
  EXPECT_EQ(given->report.scope().n_tensors(), 3);
  const auto defaults = Plan(kNet, "scope {}");
  ASSERT_THAT(defaults, IsOk());
  EXPECT_EQ(defaults->report.scope().lb(), 1);
  EXPECT_EQ(defaults->report.scope().ub(), 10000);
  EXPECT_EQ(defaults->report.scope().n_tensors(), -1);
}

TEST(ScopeStrategyTest, AScopeThatMatchesNothingBesideOneThatDoesIsReported) {
  const auto result = Plan(kNet, "scope { optimizer_scopes: 'G/' optimizer_scopes: 'H' }");
  ASSERT_THAT(result, IsOk());
  ASSERT_EQ(result->report.warnings_size(), 1);
  EXPECT_EQ(result->report.warnings(0).code(), v1::WARNING_CODE_NAME_MATCHES_NOTHING);
  EXPECT_EQ(result->report.warnings(0).message(), "optimizer_scopes that match no op: H");
}

TEST(ScopeStrategyTest, TheSearchLimitIsHeard) {
  const TestFacts f(kNet);
  const v1::RewriteOptions options = Options("");
  v1::Limits limits = DefaultLimits();
  limits.set_max_search_steps(10);
  EXPECT_EQ(GetErrorReason(PlanWith(f, options, nullptr, limits).status()),
            v1::ERROR_REASON_SEARCH_TOO_LONG);
}

// ---- Loops ----

TEST(ScopeStrategyTest, InALoopNothingIsSwappedAndBehindItAllIs) {
  const TestFacts f(R"(
      f1 = Placeholder() {dtype=float32}
      f2 = Relu(f1) {T=float32}
      enter = Enter(f2) {T=float32, frame_name="w"}
      merge = Merge(enter, next) {T=float32, N=2}
      less = Less(merge, merge) {T=float32}
      cond = LoopCond(less)
      switch = Switch(merge, cond) {T=float32}
      body = Tanh(switch:1) {T=float32}
      next = NextIteration(body) {T=float32}
      exit = Exit(switch) {T=float32}
      after = Relu(exit) {T=float32}
      loss = Relu(after) {T=float32}
      G/g3 = Relu(loss) {T=float32}
      G/enter = Enter(G/g3) {T=float32, frame_name="w"}
      G/body = AddV2(G/enter, body) {T=float32}
      G/exit = Exit(G/body) {T=float32}
      G/g2 = AddV2(G/exit, after) {T=float32}
      G/g1 = AddV2(G/g2, f2) {T=float32}
      G/end = Relu(G/g1) {T=float32}
  )");
  const v1::RewriteOptions options = Options("scope { starting_op_names: 'f2' }");
  const auto result = PlanWith(f, options);
  ASSERT_THAT(result, IsOk());
  std::map<std::string, std::string> verdicts;
  for (const TensorDecision& d : result->decisions) {
    verdicts[TensorName(*f.graph, d.tensor)] = v1::Reason_Name(d.reason).substr(7);
  }
  EXPECT_EQ(verdicts.at("body:0"), "IN_LOOP");
  EXPECT_EQ(verdicts.at("f2:0"), "SWAPPED");
  EXPECT_EQ(verdicts.at("after:0"), "SWAPPED");
  for (const PlannedSwap& swap : result->plan.swaps) {
    for (const PlannedSwapIn& in : swap.swap_ins) {
      for (NodeId trigger : in.triggers) {
        EXPECT_EQ(f.facts.control_flow().output_frame(trigger), kRootFrame)
            << f.graph->name(trigger);
      }
    }
  }
}

}  // namespace
}  // namespace spillway::core
