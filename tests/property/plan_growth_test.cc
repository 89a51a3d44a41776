// Saved plans that multiply their items by the graph: many equal nodes, chains, wide nodes, each
// with many clones or swaps. Every reader of a plan or a rewritten graph counts its steps, and
// these grow about like the bytes: no checker searches the graph for each item of a plan.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "rewrite_core/graph/canonical_form.h"
#include "rewrite_core/inspect/graph_diff.h"
#include "rewrite_core/rewriter.h"
#include "spillway/v1/plan.pb.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/proto_graph.h"

namespace spillway::testing {
namespace {

// Sizes of one family: far enough apart to distinguish quadratic from linear growth.
constexpr int kSmall = 1000, kFactor = 8;
// Steps for a byte may grow by this much: sorting takes a logarithm more, and loops of less than a
// stride of steps are not counted. Quadratic work grows by up to kFactor.
constexpr double kMostGrowth = 2;

constexpr char kType[] = " @/gpu:0 {T=float32, _output_shapes=[(64,64)]}\n";

struct Saved {
  std::string graph;
  v1::Plan plan;
};

// In all families, q1 runs before gradients/q.
std::string Head() {
  return absl::StrCat(
      "x = Placeholder() @/gpu:0 {dtype=float32, shape=(64,64), _output_shapes=[(64,64)]}\n",
      "q0 = Relu(x)", kType, "q1 = Relu(q0)", kType, "gradients/q = ReluGrad(q1, q1)", kType);
}

v1::PlannedClone* AddClone(v1::Plan* plan, const std::string& node, const std::string& trigger,
                           const std::string& consumer, int index) {
  v1::PlannedClone* clone = plan->add_clones();
  clone->set_node(node);
  clone->set_trigger(trigger);
  if (consumer.empty()) return clone;
  v1::InputRef* ref = clone->add_consumers();
  ref->set_node(consumer);
  ref->set_input_index(index);
  return clone;
}

// Equal nodes, a clone of each. `controls`: each waits for one of its own.
Saved EqualNodes(int n, bool controls) {
  Saved made;
  std::string text = Head();
  for (int i = 0; i < n; ++i) {
    if (controls) absl::StrAppend(&text, "p", i, " = Neg(q0)", kType);
    absl::StrAppend(&text, "r", i, " = Relu(x", controls ? absl::StrCat(", ^p", i) : "", ")", kType,
                    "gradients/t", i, " = ReluGrad(gradients/q, r", i, ")", kType);
    AddClone(&made.plan, absl::StrCat("r", i), "q1", absl::StrCat("gradients/t", i), 1);
  }
  made.graph = GraphBytes(text);
  return made;
}

// A chain of nodes that forward memory. `of_variable`: that of a variable, with an update. `each`:
// a clone of each node, which reads the original; otherwise each clone reads the previous one.
Saved Chain(int n, bool of_variable, bool each) {
  Saved made;
  std::string text = Head(), last = "q0", gradient = "gradients/q";
  if (of_variable) {
    absl::StrAppend(&text, "v = VariableV2() @/gpu:0 {dtype=float32, shape=(64,64)}\n");
    last = "v";
  }
  for (int i = 0; i < n; ++i) {
    const std::string name = absl::StrCat("i", i);
    absl::StrAppend(&text, name, " = Identity(", last, ")", kType);
    if (each || i == n - 1) {
      absl::StrAppend(&text, "gradients/o", i, " = ReluGrad(", gradient, ", ", name, ")", kType);
      gradient = absl::StrCat("gradients/o", i);
    }
    last = name;
  }
  if (of_variable) absl::StrAppend(&text, "u = AssignSub(v, gradients/o", n - 1, ")", kType);
  for (int i = of_variable ? 1 : 0; i < n; ++i) {
    const bool is_first = made.plan.clones().empty();
    v1::PlannedClone* clone =
        AddClone(&made.plan, absl::StrCat("i", i), each || is_first ? "gradients/q" : "",
                 each || i == n - 1 ? absl::StrCat("gradients/o", i) : "", 1);
    if (of_variable) clone->add_updates("u");
    if (each || is_first) continue;
    clone->add_inputs()->set_clone(made.plan.clones_size() - 2);
  }
  made.graph = GraphBytes(text);
  return made;
}

// A node with n outputs, each read by a node with a clone of its own.
Saved WideProducer(int n) {
  Saved made;
  const std::vector<std::string> inputs(n, "x"), types(n, "float32");
  std::string text = absl::StrCat(Head(), "wide = IdentityN(", absl::StrJoin(inputs, ", "),
                                  ") @/gpu:0 {T=[", absl::StrJoin(types, ", "), "]}\n");
  for (int i = 0; i < n; ++i) {
    absl::StrAppend(&text, "r", i, " = Relu(wide:", i, ")", kType, "gradients/t", i,
                    " = ReluGrad(gradients/q, r", i, ")", kType);
    AddClone(&made.plan, absl::StrCat("r", i), "q1", absl::StrCat("gradients/t", i), 1);
  }
  made.graph = GraphBytes(text);
  return made;
}

// A node with n inputs, and some clones of it.
Saved WideReader(int n) {
  Saved made;
  std::string text = Head();
  std::vector<std::string> inputs;
  for (int i = 0; i < n; ++i) {
    inputs.push_back(absl::StrCat("r", i));
    absl::StrAppend(&text, "r", i, " = Neg(x)", kType);
  }
  absl::StrAppend(&text, "sum = AddN(", absl::StrJoin(inputs, ", "), ") @/gpu:0 {T=float32, N=", n,
                  ", _output_shapes=[(64,64)]}\n");
  for (int i = 0; i < 10; ++i) {
    absl::StrAppend(&text, "gradients/t", i, " = ReluGrad(gradients/q, sum)", kType);
    AddClone(&made.plan, "sum", "gradients/q", absl::StrCat("gradients/t", i), 1);
  }
  made.graph = GraphBytes(text);
  return made;
}

// One tensor with n readers that each read a swap-in of their own, and wait for it, too.
Saved ManySwapIns(int n) {
  Saved made;
  std::string text = Head();
  v1::PlannedSwap* swap = made.plan.add_swaps();
  swap->set_tensor("q0:0");
  for (int i = 0; i < n; ++i) {
    const std::string name = absl::StrCat("gradients/t", i);
    absl::StrAppend(&text, name, " = ReluGrad(gradients/q, q0)", kType, "n", i, " = Neg(q1)",
                    kType);
    v1::PlannedSwapIn* in = swap->add_swap_ins();
    in->add_triggers("gradients/q");
    v1::InputRef* ref = in->add_consumers();
    ref->set_node(name);
    ref->set_input_index(1);
    swap->add_deadline_nodes(absl::StrCat("n", i));
    v1::AddedControl* control = made.plan.add_controls();
    control->set_source("q1");
    control->set_node(absl::StrCat("n", i));
    control->set_kind(v1::EDGE_KIND_ORDER);
  }
  made.graph = GraphBytes(text);
  return made;
}

struct Family {
  std::string name;
  std::function<Saved(int)> make;
};

const std::vector<Family>& Families() {
  static const auto& families = *new std::vector<Family>{
      {"EqualNodes", [](int n) { return EqualNodes(n, false); }},
      {"EqualNodesThatWait", [](int n) { return EqualNodes(n, true); }},
      {"ChainOfClones", [](int n) { return Chain(n, false, false); }},
      {"ChainAndClones", [](int n) { return Chain(n, false, true); }},
      {"ChainOfClonesOfAVariable", [](int n) { return Chain(n, true, false); }},
      {"ChainOfAVariableAndClones", [](int n) { return Chain(n, true, true); }},
      {"WideProducer", WideProducer},
      {"WideReader", WideReader},
      {"ManySwapIns", ManySwapIns},
  };
  return families;
}

// Steps for a byte of request and response, by operation.
std::vector<std::pair<std::string, double>> StepsPerByte(const Saved& made) {
  v1::Plan plan = made.plan;
  plan.set_format_version(plan.clones().empty() ? 1 : 2);
  plan.set_graph_sha256(ValueOrDie(core::CanonicalSha256(made.graph, {}), "sha256"));
  v1::RewriteOptions apply, strip;
  plan.SerializeToString(apply.mutable_apply()->mutable_plan());
  apply.set_simulation(v1::SIMULATION_OFF);
  strip.mutable_strip();
  std::vector<std::pair<std::string, double>> found;
  const core::StopToken applies, strips, again, compares;
  const v1::RewriteResponse applied =
      ValueOrDie(core::Rewrite(made.graph, apply, core::DefaultLimits(), applies), "apply");
  EXPECT_EQ(applied.report().outcome(), v1::OUTCOME_REWRITTEN);
  const std::string& after = applied.graph_def();
  const auto bytes = static_cast<double>(made.graph.size() + plan.ByteSizeLong() + after.size());
  const auto stripped =
      ValueOrDie(core::Rewrite(after, strip, core::DefaultLimits(), strips), "strip");
  EXPECT_TRUE(stripped.graph_def() == made.graph);
  EXPECT_EQ(ValueOrDie(core::Rewrite(after, apply, core::DefaultLimits(), again), "again")
                .report()
                .outcome(),
            v1::OUTCOME_KEPT);
  ValueOrDie(core::DiffGraphs(made.graph, after, core::DefaultLimits(), compares), "diff");
  found.emplace_back("apply", static_cast<double>(applies.steps()) / bytes);
  found.emplace_back("strip", static_cast<double>(strips.steps()) / bytes);
  found.emplace_back("apply again", static_cast<double>(again.steps()) / bytes);
  found.emplace_back("diff", static_cast<double>(compares.steps()) / bytes);
  return found;
}

class PlanGrowthTest : public ::testing::TestWithParam<Family> {};

TEST_P(PlanGrowthTest, IsAboutLinear) {
  const auto small = StepsPerByte(GetParam().make(kSmall));
  const auto large = StepsPerByte(GetParam().make(kSmall * kFactor));
  for (size_t i = 0; i < small.size(); ++i) {
    EXPECT_LE(large[i].second, kMostGrowth * small[i].second) << small[i].first;
  }
}

INSTANTIATE_TEST_SUITE_P(All, PlanGrowthTest, ::testing::ValuesIn(Families()), CaseName());

}  // namespace
}  // namespace spillway::testing
