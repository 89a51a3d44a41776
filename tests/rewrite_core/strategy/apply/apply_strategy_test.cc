// Plans that are not applied, each with its error: files changed by hand, by accident or by an
// attacker.
#include "rewrite_core/strategy/apply/apply_strategy.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "rewrite_core/graph/canonical_form.h"
#include "rewrite_core/rewriter.h"
#include "spillway/v1/plan.pb.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using testing::FailsWith;
using testing::GraphBytes;
using testing::IsInvalid;
using testing::IsOk;
using testing::ValueOrDie;

// d reads a, with b and c in between; `init` overwrites the variable; on/off are the sides of a
// Switch; l_* is a loop.
constexpr char kGraph[] =
    "x = Placeholder() @/gpu:0 {dtype=float32, shape=(4,4)}\n"
    "a = Relu(x) @/gpu:0 {T=float32}\n"
    "b = Relu(a) @/gpu:0 {T=float32}\n"
    "c = Mul(b, a) @/gpu:0 {T=float32}\n"
    "d = Mul(c, a, ^b) @/gpu:0 {T=float32}\n"
    "v = VariableV2() @/gpu:0 {dtype=float32, shape=(4,4)}\n"
    "r = Identity(v) @/gpu:0 {T=float32}\n"
    "e = Mul(r, d) @/gpu:0 {T=float32}\n"
    "init = Assign(v, x) @/gpu:0 {T=float32}\n"
    "h = Relu(x) @/cpu:0 {T=float32}\n"
    "k = Relu(h) @/gpu:0 {T=float32}\n"
    "p = Placeholder() @/gpu:0 {dtype=bool, shape=()}\n"
    "s = Switch(a, p) @/gpu:0 {T=float32}\n"
    "on = Relu(s:1) @/gpu:0 {T=float32}\n"
    "off = Relu(s) @/gpu:0 {T=float32}\n"
    "m = Merge(off, on) @/gpu:0 {T=float32, N=2}\n"
    "o = Mul(m, e) @/gpu:0 {T=float32}\n";

// A valid swap of a for d.
constexpr char kSwap[] =
    "swaps { tensor: 'a:0' dtype: 'float32' swap_ins { consumers { node: 'd' input_index: 1 } "
    "triggers: 'b' } } ";

class ApplyStrategyTest : public ::testing::Test {
 protected:
  v1::Plan PlanOf(const std::string& text) const {
    v1::Plan plan;
    plan.set_format_version(1);
    plan.set_graph_sha256(ValueOrDie(CanonicalSha256(bytes_, {}), "hash"));
    plan.mutable_step()->add_targets("o");
    if (!google::protobuf::TextFormat::MergeFromString(text, &plan)) {
      ADD_FAILURE() << "not a plan: " << text;
    }
    return plan;
  }

  // Applies a plan to another graph, without a step.
  absl::StatusOr<v1::RewriteResponse> ApplyTo(const std::string& bytes,
                                              const std::string& text) const {
    v1::Plan plan = PlanOf(text);
    plan.clear_step();
    plan.set_graph_sha256(ValueOrDie(CanonicalSha256(bytes, {}), "hash"));
    v1::RewriteOptions options;
    plan.SerializeToString(options.mutable_apply()->mutable_plan());
    return Rewrite(bytes, options, DefaultLimits(), StopToken());
  }

  absl::StatusOr<v1::RewriteResponse> Apply(const v1::Plan& plan, const std::string& options = "",
                                            const v1::Limits& limits = DefaultLimits()) const {
    v1::RewriteOptions all;
    plan.SerializeToString(all.mutable_apply()->mutable_plan());
    EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(options, &all)) << options;
    return Rewrite(bytes_, all, limits, StopToken());
  }
  absl::StatusOr<v1::RewriteResponse> Apply(const std::string& plan,
                                            const std::string& options = "") const {
    return Apply(PlanOf(plan), options);
  }

  void ExpectBad(const std::string& plan, const std::string& says) const {
    EXPECT_THAT(Apply(plan), IsInvalid(v1::ERROR_REASON_BAD_PLAN, says)) << plan;
  }

  const std::string bytes_ = GraphBytes(kGraph);
};

TEST_F(ApplyStrategyTest, WritesTheSwap) {
  const auto answer = Apply(kSwap);
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->report().outcome(), v1::OUTCOME_REWRITTEN);
  EXPECT_EQ(answer->report().strategy(), v1::STRATEGY_APPLY);
  ASSERT_EQ(answer->report().swaps_size(), 1);
  const v1::TensorSwap& swap = answer->report().swaps(0);
  EXPECT_EQ(swap.tensor(), "a:0");
  EXPECT_EQ(swap.size_bytes(), 4 * 4 * 4);  // From the graph: the plan has no sizes.
  EXPECT_EQ(swap.swap_ins(0).consumers(0).node(), "d");
  EXPECT_EQ(swap.swap_ins(0).triggers(0), "b");
  ASSERT_EQ(answer->report().decisions_size(), 1);
  EXPECT_EQ(answer->report().decisions(0).reason(), v1::REASON_SWAPPED);
}

TEST_F(ApplyStrategyTest, EveryKindOfEdge) {
  const auto answer = Apply(
      "swaps { tensor: 'a:0' swap_ins { consumers { node: 'd' input_index: 1 } triggers: 'b' "
      "pace_nodes: 'e' } deadline_nodes: 'c' } "
      "controls { source: 'c' node: 'e' kind: EDGE_KIND_ORDER }");
  ASSERT_THAT(answer, IsOk());
  std::string told;
  for (const v1::EdgeCount& edge : answer->report().added_control_edges()) {
    absl::StrAppend(&told, v1::EdgeKind_Name(edge.kind()), " ", edge.count(), "\n");
  }
  EXPECT_EQ(told,
            "EDGE_KIND_TRIGGER 1\nEDGE_KIND_DEADLINE 1\nEDGE_KIND_PACE 1\nEDGE_KIND_ORDER 1\n");
}

TEST_F(ApplyStrategyTest, AControlEdgeIsWrittenOnce) {
  const std::string edge = "controls { source: 'c' node: 'e' kind: EDGE_KIND_ORDER }";
  const auto once = Apply(edge);
  ASSERT_THAT(once, IsOk());
  std::string often;
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&often, edge);
  // The same edge with another reason is the same input of the node.
  absl::StrAppend(&often, "controls { source: 'c' node: 'e' kind: EDGE_KIND_SERIALIZATION }");
  const auto answer = Apply(often);
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->graph_def(), once->graph_def());
}

TEST_F(ApplyStrategyTest, AnEmptyPlanChangesNothing) {
  const auto answer = Apply("");
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->report().outcome(), v1::OUTCOME_NOTHING_TO_DO);
  EXPECT_EQ(answer->graph_def(), bytes_);
}

// ---- Clones.

// a is recomputed for d, once c has run.
constexpr char kClone[] =
    "clones { node: 'a' trigger: 'c' consumers { node: 'd' input_index: 1 } } ";

std::string WithClones(const std::string& text) { return "format_version: 2 " + text; }

TEST_F(ApplyStrategyTest, WritesTheClone) {
  const auto answer = Apply(WithClones(kClone));
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->report().outcome(), v1::OUTCOME_REWRITTEN);
  EXPECT_EQ(answer->report().recomputation().node_count(), 1);
  EXPECT_EQ(answer->report().recomputation().bytes(), 4 * 4 * 4);
  EXPECT_GT(answer->report().recomputation().time_ns(), 0);
}

// Swaps and edges may name clones, by their names in the graph.
TEST_F(ApplyStrategyTest, SwapsOfClones) {
  const auto answer = Apply(WithClones(absl::StrCat(
      "clones { node: 'a' trigger: 'b' consumers { node: 'c' input_index: 1 } "
      "consumers { node: 'd' input_index: 1 } } "
      "swaps { tensor: 'lms/recompute_a:0' swap_ins { consumers { node: 'd' input_index: 1 } "
      "triggers: 'c' } }")));
  ASSERT_THAT(answer, IsOk());
  ASSERT_EQ(answer->report().swaps_size(), 1);
  EXPECT_EQ(answer->report().swaps(0).tensor(), "lms/recompute_a:0");
}

TEST_F(ApplyStrategyTest, ClonesThatAreRefused) {
  const auto bad = [&](const std::string& clones, const std::string& says) {
    ExpectBad(WithClones(clones), says);
  };
  const std::string for_d = "consumers { node: 'd' input_index: 1 } } ";
  bad("clones { node: 'nobody' trigger: 'c' " + for_d, "the graph has no node 'nobody'");
  bad("clones { node: 'v' trigger: 'c' " + for_d, "node 'v' may not be recomputed");
  bad("clones { node: 'x' trigger: 'c' " + for_d, "node 'x' may not be recomputed");
  bad("clones { node: 'k' trigger: 'c' }", "node 'k' is not run by the step");
  bad("clones { node: 'a' " + for_d, "node 'a' would be recomputed at once");
  bad("clones { node: 'a' trigger: 'nobody' " + for_d, "the graph has no node 'nobody'");
  bad("clones { node: 'd' trigger: 'b' consumers { node: 'e' input_index: 1 } }",
      "node 'd' waits for 'b' anyway");
  bad("clones { node: 'a' trigger: 'c' consumers { node: 'e' input_index: 1 } }",
      "input 1 of node 'e' does not read 'a'");
  bad("clones { node: 'a' trigger: 'c' consumers { node: 'd' input_index: 7 } }",
      "input 7 of node 'd' does not read 'a'");
  bad("clones { node: 'a' trigger: 'c' consumers { node: 'd' input_index: 1 } " + for_d,
      "input 1 of node 'd' is served twice");
  bad("clones { node: 'b' trigger: 'c' inputs { input_index: 0 clone: 0 } }",
      "node 'b' has no input 0 that clone 0");
  bad(kClone + std::string("clones { node: 'e' trigger: 'd' inputs { input_index: 1 clone: 0 } }"),
      "node 'e' has no input 1 that clone 0");
  bad("clones { node: 'a' trigger: 'e' " + for_d, "with its clones");
  bad("clones { node: 'a' trigger: 'on' " + for_d, "may not wait for 'on'");
  bad("clones { node: 'a' trigger: 'init' " + for_d, "would make it run the other, too");
}

// A value read by reference would differ after the update.
TEST_F(ApplyStrategyTest, ACloneThatReadsAVariableRunsBeforeItsUpdate) {
  const std::string bytes =
      GraphBytes(absl::StrCat(kGraph, "u = AssignSub(v, o) @/gpu:0 {T=float32}\n"));
  const std::string clone =
      "clones { node: 'e' trigger: 'm' consumers { node: 'o' input_index: 1 } ";
  EXPECT_THAT(ApplyTo(bytes, WithClones(clone + "}")),
              IsInvalid(v1::ERROR_REASON_BAD_PLAN, "writes a variable that 'e' reads"));
  EXPECT_THAT(ApplyTo(bytes, WithClones(clone + "updates: 'u' updates: 'init' }")), IsOk());
  EXPECT_THAT(ApplyTo(bytes, WithClones(clone + "updates: 'u' updates: 'init' updates: 'u' }")),
              IsInvalid(v1::ERROR_REASON_BAD_PLAN, "'u' is in one list of updates twice"));
}

// An original whose readers all moved to clones runs only for a node that waits for it.
TEST_F(ApplyStrategyTest, NothingWaitsForWhatOnlyClonesOriginalsRead) {
  const std::string bytes = GraphBytes(absl::StrCat(kGraph,
                                                    "t = Tanh(x) @/gpu:0 {T=float32}\n"
                                                    "y = Exp(t) @/gpu:0 {T=float32}\n"
                                                    "z = Mul(y, o) @/gpu:0 {T=float32}\n"
                                                    "u = AssignSub(v, z) @/gpu:0 {T=float32}\n"));
  const std::string of_a =
      "clones { node: 'a' trigger: 't' consumers { node: 'd' input_index: 1 } } ";
  const std::string for_z = "consumers { node: 'z' input_index: 0 } } ";
  EXPECT_THAT(ApplyTo(bytes, WithClones(of_a)), IsOk());
  EXPECT_THAT(ApplyTo(bytes, WithClones(of_a + "clones { node: 'y' trigger: 'c' " + for_z)),
              IsOk());
  const std::string both = "clones { node: 't' trigger: 'c' } clones { node: 'y' inputs { clone: ";
  EXPECT_THAT(ApplyTo(bytes, WithClones(of_a + both + "1 } " + for_z)),
              IsInvalid(v1::ERROR_REASON_BAD_PLAN, "node 'a' may not wait for 't'"));
  // So does an edge of the plan.
  v1::Plan plan = PlanOf(WithClones(both + "0 } " + for_z +
                                    "controls { source: 't' node: 'b' kind: EDGE_KIND_ORDER }"));
  plan.mutable_step()->set_targets(0, "u");
  plan.set_graph_sha256(ValueOrDie(CanonicalSha256(bytes, {}), "hash"));
  v1::RewriteOptions options;
  plan.SerializeToString(options.mutable_apply()->mutable_plan());
  EXPECT_THAT(Rewrite(bytes, options, DefaultLimits(), StopToken()),
              IsInvalid(v1::ERROR_REASON_BAD_PLAN, "node 'b' may not wait for 't'"));
  // An update may wait for a clone that the step needs.
  EXPECT_THAT(ApplyTo(bytes, WithClones("clones { node: 'e' trigger: 'm' updates: 'u' "
                                        "updates: 'init' }")),
              IsInvalid(v1::ERROR_REASON_BAD_PLAN, "node 'u' may not wait for 'e'"));
}

// It waits for a node of a side that may not be taken: then the original does not run either, and a
// Merge takes its other input. Any other reader would no longer run.
TEST_F(ApplyStrategyTest, AMergeMayReadACloneOfASide) {
  const std::string bytes =
      GraphBytes(absl::StrCat(kGraph, "late = Relu(on) @/gpu:0 {T=float32}\n"));
  EXPECT_THAT(ApplyTo(bytes, WithClones("clones { node: 'on' trigger: 'late' consumers { node: 'm' "
                                        "input_index: 1 } }")),
              IsOk());
  EXPECT_THAT(ApplyTo(bytes, WithClones("clones { node: 'a' trigger: 'late' consumers { node: 'd' "
                                        "input_index: 1 } }")),
              IsInvalid(v1::ERROR_REASON_BAD_PLAN, "'late'"));
}

TEST_F(ApplyStrategyTest, MoreClonesThanNodesAreAllowed) {
  v1::Limits limits = DefaultLimits();
  limits.set_max_node_count(17);  // As many as there are.
  EXPECT_THAT(Apply(PlanOf(WithClones(kClone)), "", limits),
              IsInvalid(v1::ERROR_REASON_BAD_PLAN, "with its 1 clones the graph would have 18"));
}

// ---- Not plans.

TEST_F(ApplyStrategyTest, BytesThatAreNoPlan) {
  for (const std::string& plan :
       {std::string(), std::string("\x0a\xff", 2), std::string("{\"format_version\": 1}")}) {
    v1::RewriteOptions options;
    options.mutable_apply()->set_plan(plan);
    EXPECT_THAT(Rewrite(bytes_, options, DefaultLimits(), StopToken()),
                IsInvalid(v1::ERROR_REASON_BAD_PLAN, "the plan cannot be applied"))
        << plan;
  }
}

TEST_F(ApplyStrategyTest, ANewerPlan) {
  v1::Plan plan = PlanOf(kSwap);
  plan.set_format_version(4);
  EXPECT_THAT(Apply(plan), IsInvalid(v1::ERROR_REASON_UNKNOWN_OPTION, "format_version"));
  plan.set_format_version(1);
  plan.add_clones();  // Since version 2.
  EXPECT_THAT(
      Apply(plan),
      IsInvalid(v1::ERROR_REASON_UNKNOWN_OPTION,
                "format_version of the plan is 1, and it has 1 clone, which version 2 brought"));
  plan = PlanOf(kSwap);
  plan.mutable_swaps(0)
      ->GetReflection()
      ->MutableUnknownFields(plan.mutable_swaps(0))
      ->AddVarint(4000, 1);
  EXPECT_THAT(Apply(plan),
              IsInvalid(v1::ERROR_REASON_UNKNOWN_OPTION, "PlannedSwap has field 4000"));
}

TEST_F(ApplyStrategyTest, AHeadThatIsWrong) {
  ExpectBad("graph_sha256: 'abc'", "'abc'");
  ExpectBad(absl::StrCat("graph_sha256: '", std::string(64, 'g'), "'"), "64 hexadecimal digits");
  for (const char* device : {"/cpu:\303\244", "nonsense", "/cpu:0\\n", "/gpu:0", "/job:w"}) {
    ExpectBad(absl::StrCat("cpu_device: '", device, "'"), "cpu_device");
  }
  EXPECT_THAT(Apply("step { hardware { preset: 'abacus' } }"),
              IsInvalid(v1::ERROR_REASON_BAD_OPTION, "'abacus'"));
  EXPECT_THAT(Apply("step { convolution_workspace_bytes: -1 }"),
              IsInvalid(v1::ERROR_REASON_BAD_OPTION, "convolution_workspace_bytes is -1"));
}

// Of two options that exclude each other, the one given takes the place of the plan's.
TEST_F(ApplyStrategyTest, TheWorkspacesGivenReplaceThoseOfThePlan) {
  v1::Plan plan = PlanOf(kSwap);
  v1::RewriteOptions options;
  plan.mutable_step()->set_convolution_workspace_limit_bytes(1 << 20);
  plan.SerializeToString(options.mutable_apply()->mutable_plan());
  EXPECT_EQ(ApplyStep(options).convolution_workspace_limit_bytes(), 1 << 20);
  options.mutable_step()->set_convolution_workspace_bytes(1);
  EXPECT_FALSE(ApplyStep(options).has_convolution_workspace_limit_bytes());
  EXPECT_EQ(ApplyStep(options).convolution_workspace_bytes(), 1);
  plan.mutable_step()->clear_convolution_workspace_limit_bytes();
  plan.mutable_step()->set_convolution_workspace_bytes(1);
  plan.SerializeToString(options.mutable_apply()->mutable_plan());
  options.mutable_step()->Clear();
  options.mutable_step()->set_convolution_workspace_limit_bytes(0);
  EXPECT_EQ(ApplyStep(options).convolution_workspace_bytes(), 0);
}

TEST_F(ApplyStrategyTest, APlanForAnotherGraph) {
  v1::Plan plan = PlanOf(kSwap);
  const std::string other(64, '0');
  const std::string own = plan.graph_sha256();
  plan.set_graph_sha256(other);
  const auto answer = Apply(plan);
  EXPECT_THAT(answer, IsInvalid(v1::ERROR_REASON_OTHER_GRAPH, own));
  EXPECT_THAT(answer, IsInvalid(v1::ERROR_REASON_OTHER_GRAPH, other));
}

TEST_F(ApplyStrategyTest, OptionsThatThePlanSettles) {
  for (const char* option : {"cpu_device: '/cpu:1'", "min_tensor_bytes: 5"}) {
    const std::string name(option, std::string(option).find(':'));
    EXPECT_THAT(Apply(kSwap, option), IsInvalid(v1::ERROR_REASON_CONFLICTING_OPTIONS, name));
  }
}

TEST_F(ApplyStrategyTest, AMessageThatTakesTooMuchMemory) {
  // Two bytes each.
  std::string bytes = PlanOf("").SerializeAsString();
  constexpr int kEmptySwaps = 6'000'000;
  bytes.reserve(bytes.size() + 2 * kEmptySwaps);
  for (int i = 0; i < kEmptySwaps; ++i) bytes.append("\x2a\x00", 2);
  v1::RewriteOptions options;
  options.mutable_apply()->set_plan(bytes);
  EXPECT_THAT(Rewrite(bytes_, options, DefaultLimits(), StopToken()),
              IsInvalid(v1::ERROR_REASON_BAD_PLAN, " of memory, and a plan may take "));
}

// ---- Names and numbers.

TEST_F(ApplyStrategyTest, NamesThatTheGraphDoesNotHave) {
  ExpectBad("swaps { tensor: 'zz:0' }", "no node 'zz'");
  ExpectBad("swaps { tensor: 'a' }", "'a' is not of the form node:port");
  ExpectBad("swaps { tensor: 'a:x' }", "'a:x' is not of the form node:port");
  ExpectBad("swaps { tensor: 'a:-1' }", "'a:-1' is not of the form node:port");
  ExpectBad("swaps { tensor: 'a:99999999999' }", "is not of the form node:port");
  const std::string a = "swaps { tensor: 'a:0' ";
  const std::string to_d = a + "swap_ins { consumers { node: 'd' input_index: 1 } ";
  ExpectBad(a + "swap_ins { consumers { node: 'zz' } } }", "no node 'zz'");
  ExpectBad(to_d + "triggers: 'zz' } }", "no node 'zz'");
  ExpectBad(to_d + "pace_nodes: 'zz' } }", "no node 'zz'");
  ExpectBad(to_d + "} deadline_nodes: 'zz' }", "no node 'zz'");
  ExpectBad("controls { source: 'zz' node: 'd' kind: EDGE_KIND_ORDER }", "no node 'zz'");
  ExpectBad("controls { source: 'a' node: '' kind: EDGE_KIND_ORDER }", "no node ''");
}

TEST_F(ApplyStrategyTest, InputsThatDoNotReadTheTensor) {
  for (const std::string& consumer :
       {std::string("node: 'd' input_index: 0"), std::string("node: 'd' input_index: 2"),
        std::string("node: 'd' input_index: 3"), std::string("node: 'd' input_index: -1"),
        std::string("node: 'd' input_index: 2147483647"), std::string("node: 'x'")}) {
    ExpectBad(absl::StrCat("swaps { tensor: 'a:0' swap_ins { consumers { ", consumer, " } } }"),
              "does not read 'a:0'");
  }
  // Nothing reads a port that the node does not have.
  ExpectBad("swaps { tensor: 'a:2147483647' swap_ins { consumers { node: 'd' input_index: 1 } } }",
            "does not read 'a:2147483647'");
}

TEST_F(ApplyStrategyTest, WhatIsNamedTwice) {
  const std::string to_d = "swap_ins { consumers { node: 'd' input_index: 1 } ";
  ExpectBad(absl::StrCat(kSwap, kSwap), "swaps tensor 'a:0' twice");
  // The same tensor, in a different spelling.
  ExpectBad(absl::StrCat(kSwap, "swaps { tensor: 'a:00' }"), "swaps tensor 'a:00' twice");
  ExpectBad("swaps { tensor: 'a:0' " + to_d + "} " + to_d + "} }",
            "input 1 of node 'd' is served twice");
  ExpectBad("swaps { tensor: 'a:0' " + to_d + "triggers: 'b' triggers: 'b' } }",
            "names node 'b' twice");
  ExpectBad("swaps { tensor: 'a:0' " + to_d + "pace_nodes: 'e' pace_nodes: 'e' } }",
            "names node 'e' twice");
  ExpectBad("swaps { tensor: 'a:0' " + to_d + "} deadline_nodes: 'c' deadline_nodes: 'c' }",
            "names node 'c' twice");
}

TEST_F(ApplyStrategyTest, SwapsWithoutAWayBack) {
  ExpectBad("swaps { tensor: 'a:0' }", "has no swap-in");
  ExpectBad("swaps { tensor: 'a:0' swap_ins { triggers: 'b' } }", "has no consumer");
}

TEST_F(ApplyStrategyTest, AnotherType) {
  ExpectBad(
      "swaps { tensor: 'a:0' dtype: 'float16' swap_ins { consumers { node: 'd' input_index: 1 } } "
      "}",
      "'float16'");
}

// ---- Tensors that may not be swapped.

TEST_F(ApplyStrategyTest, WhatMayNotBeSwapped) {
  const auto swap = [](const char* tensor, const char* consumer) {
    return absl::StrCat("swaps { tensor: '", tensor, "' swap_ins { consumers { ", consumer,
                        " } } }");
  };
  ExpectBad(swap("v:0", "node: 'r'"), "REFERENCE");
  ExpectBad(swap("r:0", "node: 'e'"), "VARIABLE_ALIAS");
  EXPECT_THAT(Apply("step { feeds { name: 'a' dims: 4 dims: 4 } } " + std::string(kSwap)),
              IsInvalid(v1::ERROR_REASON_BAD_PLAN, "FED"));
  EXPECT_THAT(Apply("step { feeds { name: 'd' dims: 4 dims: 4 } } " + std::string(kSwap)),
              IsInvalid(v1::ERROR_REASON_BAD_PLAN, "the node is fed"));
}

// A GPU may read a CPU's tensor through a swap-in, as long as no update comes first.
TEST_F(ApplyStrategyTest, ATensorOnACpu) {
  EXPECT_THAT(Apply("swaps { tensor: 'h:0' swap_ins { consumers { node: 'k' } } }"), IsOk());
  EXPECT_THAT(ApplyTo(GraphBytes(std::string(kGraph) + "q = Relu(h) @/cpu:0 {T=float32}\n"),
                      "swaps { tensor: 'h:0' swap_ins { consumers { node: 'q' } } }"),
              IsInvalid(v1::ERROR_REASON_BAD_PLAN, "CPU_PRODUCER"));
  const std::string bytes = GraphBytes(
      "x = Placeholder() @/gpu:0 {dtype=float32, shape=(4,4)}\n"
      "v = VariableV2() @/cpu:0 {dtype=float32, shape=(4,4)}\n"
      "r = Identity(v) @/cpu:0 {T=float32}\n"
      "a = Mul(x, r) @/gpu:0 {T=float32}\n"
      "b = Mul(a, r) @/gpu:0 {T=float32}\n"
      "u = AssignSub(v, a) @/cpu:0 {T=float32}\n");
  const std::string late =
      "swaps { tensor: 'r:0' swap_ins { consumers { node: 'b' input_index: 1 } triggers: 'a' } } ";
  EXPECT_THAT(ApplyTo(bytes, late),
              IsInvalid(v1::ERROR_REASON_BAD_PLAN, "node 'u' may change the variable"));
  EXPECT_THAT(ApplyTo(bytes, late + "controls { source: 'b' node: 'u' kind: EDGE_KIND_ORDER }"),
              IsOk());
}

TEST_F(ApplyStrategyTest, ATensorOfAnotherDevice) {
  EXPECT_THAT(Apply(kSwap, "devices: '/gpu:0'"), IsOk());
  const std::string two = GraphBytes(std::string(kGraph) + "z = Relu(x) @/gpu:1 {T=float32}\n");
  v1::Plan plan = PlanOf(kSwap);
  plan.set_graph_sha256(ValueOrDie(CanonicalSha256(two, {}), "hash"));
  v1::RewriteOptions options;
  plan.SerializeToString(options.mutable_apply()->mutable_plan());
  options.add_devices("/gpu:1");
  EXPECT_THAT(Rewrite(two, options, DefaultLimits(), StopToken()),
              IsInvalid(v1::ERROR_REASON_BAD_PLAN, "OTHER_DEVICE"));
}

// ---- Edges.

TEST_F(ApplyStrategyTest, Cycles) {
  const std::string a = "swaps { tensor: 'a:0' swap_ins { consumers { node: 'd' input_index: 1 } ";
  for (const std::string& plan :
       {a + "triggers: 'e' } }", a + "triggers: 'd' } }", a + "triggers: 'c' pace_nodes: 'b' } }",
        a + "triggers: 'b' pace_nodes: 'b' } }", a + "} deadline_nodes: 'a' }",
        a + "pace_nodes: 'a' } }",
        std::string("controls { source: 'e' node: 'b' kind: EDGE_KIND_ORDER }"),
        std::string("controls { source: 'd' node: 'd' kind: EDGE_KIND_SERIALIZATION }"),
        // Each is sound on its own.
        std::string("controls { source: 'k' node: 'b' kind: EDGE_KIND_ORDER } "
                    "controls { source: 'c' node: 'k' kind: EDGE_KIND_ORDER }"),
        // Through a swap-in.
        a + "triggers: 'k' } } controls { source: 'd' node: 'k' kind: EDGE_KIND_ORDER }"}) {
    // k is not in the step unless it is named.
    ExpectBad("step { targets: 'k' } " + plan, "close a cycle through node '");
  }
}

TEST_F(ApplyStrategyTest, EdgesThatKillANode) {
  ExpectBad(
      "swaps { tensor: 'a:0' swap_ins { consumers { node: 'd' input_index: 1 } triggers: "
      "'on' } }",
      "may not wait for 'on': the node waited for may be dead");
  ExpectBad("controls { source: 'on' node: 'd' kind: EDGE_KIND_ORDER }", "may be dead");
  ExpectBad("controls { source: 's' node: 'on' kind: EDGE_KIND_ORDER }", "one side of a Switch");
  ExpectBad(
      "swaps { tensor: 'a:0' swap_ins { consumers { node: 'd' input_index: 1 } triggers: "
      "'off' pace_nodes: 'on' } }",
      "may be dead");
}

TEST_F(ApplyStrategyTest, EdgesOfFedNodes) {
  ExpectBad("step { feeds { name: 'b' dims: 4 dims: 4 } } " + std::string(kSwap), "is fed");
}

TEST_F(ApplyStrategyTest, AnEdgeThatMakesTheStepRunMore) {
  // Every step would reset the variable.
  ExpectBad("controls { source: 'init' node: 'd' kind: EDGE_KIND_ORDER }",
            "may not wait for 'init': the step runs only");
  ExpectBad(
      "swaps { tensor: 'a:0' swap_ins { consumers { node: 'd' input_index: 1 } triggers: "
      "'init' } }",
      "may not wait for 'init'");
}

TEST_F(ApplyStrategyTest, AnEdgeOfAKindThatIsNone) {
  ExpectBad("controls { source: 'b' node: 'd' }", "is of kind 0");
  ExpectBad("controls { source: 'b' node: 'd' kind: EDGE_KIND_PACE }", "is of kind 3");
  ExpectBad("controls { source: 'b' node: 'd' kind: 99 }", "is of kind 99");
}

TEST_F(ApplyStrategyTest, LoopFrames) {
  const std::string bytes = GraphBytes(
      "x = Placeholder() @/gpu:0 {dtype=float32, shape=(4,4)}\n"
      "n = Enter(x) @/gpu:0 {T=float32, frame_name=\"f\"}\n"
      "m = Merge(n, t) @/gpu:0 {T=float32, N=2}\n"
      "q = Relu(m) @/gpu:0 {T=float32}\n"
      "w = Relu(q) @/gpu:0 {T=float32}\n"
      "t = NextIteration(w) @/gpu:0 {T=float32}\n"
      "e = Exit(m) @/gpu:0 {T=float32}\n"
      "y = Relu(x) @/gpu:0 {T=float32}\n"
      "z = Mul(y, x) @/gpu:0 {T=float32}\n");
  const auto apply = [&](const std::string& text) { return ApplyTo(bytes, text); };
  EXPECT_THAT(apply("swaps { tensor: 'q:0' swap_ins { consumers { node: 'w' } } }"),
              IsInvalid(v1::ERROR_REASON_BAD_PLAN, "IN_LOOP"));
  EXPECT_THAT(apply("controls { source: 'q' node: 'z' kind: EDGE_KIND_ORDER }"),
              IsInvalid(v1::ERROR_REASON_BAD_PLAN, "different loop frames"));
  // The loop's own back edge closes no cycle.
  EXPECT_THAT(apply("swaps { tensor: 'y:0' swap_ins { consumers { node: 'z' } } }"), IsOk());
}

// The second variable would enter when the first has left; the body needs it before.
TEST_F(ApplyStrategyTest, ALoopDoesNotWaitForWhatItLeaves) {
  const std::string bytes = GraphBytes(R"(
      x = Placeholder() {dtype=float32, shape=(8)}
      y = Relu(x) @/gpu:0 {T=float32}
      y2 = Relu(y) @/gpu:0 {T=float32}
      enter = Enter(x) @/gpu:0 {T=float32, frame_name="w"}
      merge = Merge(enter, next) @/gpu:0 {T=float32, N=2}
      less = Less(merge, merge) @/gpu:0 {T=float32}
      cond = LoopCond(less)
      switch = Switch(merge, cond) @/gpu:0 {T=float32}
      other = Enter(y2) @/gpu:0 {T=float32, frame_name="w"}
      other_merge = Merge(other, other_next) @/gpu:0 {T=float32, N=2}
      other_switch = Switch(other_merge, cond) @/gpu:0 {T=float32}
      b = AddV2(switch:1, other_switch:1) @/gpu:0 {T=float32}
      next = NextIteration(b) @/gpu:0 {T=float32}
      other_next = NextIteration(other_switch:1) @/gpu:0 {T=float32}
      exit = Exit(switch) @/gpu:0 {T=float32}
      z = Relu(exit) @/gpu:0 {T=float32}
  )");
  const auto apply = [&](const std::string& text) { return ApplyTo(bytes, text); };
  EXPECT_THAT(apply("controls { source: 'x' node: 'y2' kind: EDGE_KIND_ORDER }"), IsOk());
  EXPECT_THAT(apply("controls { source: 'z' node: 'y2' kind: EDGE_KIND_ORDER }"),
              IsInvalid(v1::ERROR_REASON_BAD_PLAN, "close a cycle"));
}

// ---- Work.

TEST_F(ApplyStrategyTest, TriggersTimesConsumersAreLimited) {
  std::string text =
      "x = Placeholder() @/gpu:0 {dtype=float32, shape=(4,4)}\n"
      "a = Relu(x) @/gpu:0 {T=float32}\n";
  std::string swap_in;
  constexpr int kEach = 300;
  for (int i = 0; i < kEach; ++i) {
    absl::StrAppend(&text, "t", i, " = Relu(x) @/gpu:0 {T=float32}\n", "c", i,
                    " = Relu(a) @/gpu:0 {T=float32}\n");
    absl::StrAppend(&swap_in, "triggers: 't", i, "' consumers { node: 'c", i, "' } ");
  }
  const std::string bytes = GraphBytes(text);
  v1::Plan plan = PlanOf(absl::StrCat("swaps { tensor: 'a:0' swap_ins { ", swap_in, " } }"));
  plan.clear_step();
  plan.set_graph_sha256(ValueOrDie(CanonicalSha256(bytes, {}), "hash"));
  v1::RewriteOptions options;
  plan.SerializeToString(options.mutable_apply()->mutable_plan());
  v1::Limits limits = DefaultLimits();
  limits.set_max_search_steps(kEach * kEach + 10 * kEach);
  EXPECT_THAT(Rewrite(bytes, options, limits, StopToken()), IsOk());
  limits.set_max_search_steps(kEach * kEach / 2);
  EXPECT_THAT(Rewrite(bytes, options, limits, StopToken()),
              FailsWith(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_SEARCH_TOO_LONG,
                        "max_search_steps"));
}

}  // namespace
}  // namespace spillway::core
