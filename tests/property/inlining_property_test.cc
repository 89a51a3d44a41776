// Random graphs with functions: nested calls, by attribute and by name, control edges, updates, If
// and While that are lowered. For each: inlined, a graph is sound and is restored by strip;
// rewritten, too, with swaps in bodies; and no broken bytes cause a crash.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rewrite_core/apply/inlining_verifier.h"
#include "rewrite_core/capabilities.h"
#include "rewrite_core/graph/strip.h"
#include "rewrite_core/graph/topology.h"
#include "rewrite_core/inline/inline_calls.h"
#include "rewrite_core/inline/step_graph.h"
#include "rewrite_core/inspect/graph_diff.h"
#include "rewrite_core/rewriter.h"
#include "tests/testing/function_graph.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random.h"

namespace spillway::testing {
namespace {

using core::Borders;
using core::DefaultLimits;
using core::StopToken;
using ::testing::HasSubstr;
using ::testing::Not;

// Functions f0, f1, ...: each of two tensors and a variable, with two results; each calls only
// those before it.
class RandomLibrary {
 public:
  explicit RandomLibrary(uint64_t seed) : random_(seed) {}

  std::string Graph() {
    std::vector<FunctionDef> functions;
    // A condition for loops: whether the second tensor is below a constant.
    functions.push_back(Function("below", "x:float32 y:float32 v:resource", "z:bool",
                                 "k = Const() {dtype=float32}\nb = Less(y, k:output:0) "
                                 "{T=float32}",
                                 {"z=b:z:0"}));
    const int count = random_.Between(1, 6);
    for (int i = 0; i < count; ++i) functions.push_back(Make(i));
    std::string text =
        "a = Placeholder() {dtype=float32, shape=(100,100)}\np = Placeholder() {dtype=bool}\n"
        "v = VarHandleOp() {dtype=float32, shape=(100,100)}\nw = NoOp()\n"
        "t = Relu(a) {T=float32}\n";
    tensors_ = {"a", "t"};
    ends_.clear();
    const int nodes = random_.Between(1, 8);
    for (int i = 0; i < nodes; ++i) AddNode(i, count, /*in_body=*/false, &text);
    absl::StrAppend(&text, "last = AddN(", tensors_.back(), ", ", tensors_[0], ", t)",
                    " {T=float32, N=3}\ndone = NoOp(^last");
    for (const std::string& end : ends_) absl::StrAppend(&text, ", ^", end);
    return GraphWithFunctions(absl::StrCat(text, ")"), functions);
  }

 private:
  FunctionDef Make(int number) {
    tensors_ = {"x", "y"};
    ends_.clear();
    std::string body;
    const int nodes = random_.Between(1, 10);
    for (int i = 0; i < nodes; ++i) AddNode(i, number, /*in_body=*/true, &body);
    return Function(absl::StrCat("f", number), "x:float32 y:float32 v:resource",
                    "r:float32 s:float32", body,
                    {"r=" + tensors_.back(), "s=" + random_.Pick(tensors_)}, ends_);
  }

  // In the graph tensors are spelled `node:port`, in bodies `node:output:index`.
  void AddNode(int number, int callable, bool in_body, std::string* text) {
    const std::string name = absl::StrCat("n", number);
    const std::string inputs = absl::StrCat(random_.Pick(tensors_), ", ", random_.Pick(tensors_));
    std::string controls;
    if (!ends_.empty() && random_.OneIn(3)) controls = absl::StrCat(", ^", random_.Pick(ends_));
    const std::string device =
        random_.OneIn(4) ? absl::StrCat(" @/device:GPU:", random_.Below(2)) : "";
    const auto call = [&](absl::string_view op, absl::string_view first, absl::string_view attrs) {
      absl::StrAppend(text, name, " = ", op, "(", first, inputs, ", v", controls, ")", device, " {",
                      attrs, "}\n");
    };
    const std::string callee = callable > 0 ? absl::StrCat("f", random_.Below(callable)) : "";
    const std::string types = "Tin=[float32, float32, resource], Tout=[float32, float32], ";
    const int kind = random_.Below(callable > 0 ? 9 : 4);
    std::string output = "z:0";
    if (kind < 3) {
      absl::StrAppend(text, name, " = Mul(", inputs, controls, ")", device, " {T=float32}\n");
    } else if (kind == 3) {
      absl::StrAppend(text, name, " = AssignAddVariableOp(v, ", random_.Pick(tensors_), controls,
                      ")", device, " {dtype=float32}\n");
      ends_.push_back(name);
      return;
    } else if (kind < 6) {
      call("StatefulPartitionedCall", "", absl::StrCat(types, "f=\"", callee, "\""));
      output = absl::StrCat("output:", random_.Below(2));
    } else if (kind == 6) {
      call(callee, "", "");
      output = random_.OneIn(2) ? "r:0" : "s:0";
    } else if (kind == 7 && !in_body) {
      call("If", "p, ",
           absl::StrCat(types, "Tcond=bool, then_branch=\"", callee, "\", else_branch=\"f",
                        random_.Below(callable), "\", _lower_using_switch_merge=true"));
    } else {
      absl::StrAppend(text, name, " = Neg(", random_.Pick(tensors_), ") {T=float32}\n");
      output = "y:0";
    }
    if (kind > 3) ends_.push_back(name);
    if (in_body) {
      tensors_.push_back(absl::StrCat(name, ":", output));
    } else {
      // Of a call by name, `s` is the second output.
      const bool second = output == "output:1" || output == "s:0";
      tensors_.push_back(second ? name + ":1" : name);
    }
  }

  Random random_;
  std::vector<std::string> tensors_, ends_;
};

TEST(InliningProperty, InlinedGraphsAreSoundAndComeBack) {
  int64_t inlined_calls = 0, kept_calls = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const std::string bytes = RandomLibrary(seed).Graph();
    const TestGraph graph = TestGraph::FromBytes(bytes);
    for (const Borders borders : {Borders::kDirect, Borders::kIdentities}) {
      const auto inlined = core::InlineCalls(*graph, {}, DefaultLimits(), StopToken(), borders);
      ASSERT_THAT(inlined, IsOk());
      inlined_calls += inlined->summary.inlined_call_count();
      kept_calls += inlined->summary.kept_call_count();
      if (inlined->graph_def.empty()) continue;
      auto after = ParseGraph(inlined->graph_def);
      ASSERT_THAT(after, IsOk());
      ASSERT_THAT(core::Topology::Build(*after, StopToken()), IsOk());
      const auto stripped = core::Strip(*after, StopToken());
      ASSERT_THAT(stripped, IsOk());
      ASSERT_EQ(*stripped, bytes);
      ASSERT_THAT(core::VerifyInlining(*graph, *after, StopToken()), IsOk());
    }
  }
  // Both happen often.
  EXPECT_GT(inlined_calls, 2000);
  EXPECT_GT(kept_calls, 300);
}

TEST(InliningProperty, RewritesComeBack) {
  int swapped = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const std::string bytes = RandomLibrary(seed).Graph();
    v1::RewriteOptions options;
    options.mutable_level()->set_swapout_threshold(1);
    options.mutable_level()->set_swapin_ahead(1);
    options.mutable_level()->set_swapin_groupby(0);
    const auto response = core::Rewrite(bytes, options, DefaultLimits(), StopToken());
    ASSERT_THAT(response, IsOk());
    const bool inlined = response->report().inlining().inlined_call_count() > 0;
    swapped += inlined && response->report().swaps_size() > 0;
    v1::RewriteOptions strip;
    strip.mutable_strip();
    const auto stripped = core::Rewrite(response->graph_def(), strip, DefaultLimits(), StopToken());
    ASSERT_THAT(stripped, IsOk());
    ASSERT_EQ(stripped->graph_def(), bytes);
    // A diff reports the swaps, and calls that were inlined, and nothing else.
    const auto diff = core::DiffGraphs(bytes, response->graph_def(), DefaultLimits(), StopToken());
    ASSERT_THAT(diff, IsOk());
    ASSERT_EQ(diff->swaps_size(), response->report().swaps_size());
    const bool changed = response->report().outcome() == v1::OUTCOME_REWRITTEN;
    ASSERT_EQ(diff->inlined_calls_size() > 0, inlined && changed);
    ASSERT_EQ(diff->added_size(),
              diff->node_count_b() - diff->node_count_a() - diff->inlined_node_count());
    for (const v1::DiffNode& node : diff->added()) ASSERT_TRUE(node.in_swap()) << node.name();
    for (const v1::InputChange& input : diff->rewired()) ASSERT_TRUE(input.in_swap());
    ASSERT_EQ(diff->removed_size() + diff->changed_size() + diff->controls_removed_size(), 0);
    ASSERT_FALSE(diff->reordered() || diff->library_changed() || diff->other_fields_changed());
    // The same options change nothing.
    const auto again = core::Rewrite(response->graph_def(), options, DefaultLimits(), StopToken());
    ASSERT_THAT(again, IsOk());
    ASSERT_EQ(again->graph_def(), response->graph_def());
  }
  EXPECT_GT(swapped, 50);
}

TEST(InliningProperty, BrokenBytesCrashNothing) {
  Random random(11);
  int parsed = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    std::string bytes = RandomLibrary(seed % 40).Graph();
    const int edits = random.Between(1, 6);
    for (int i = 0; i < edits; ++i) {
      const int at = random.Below(static_cast<int>(bytes.size()));
      switch (random.Below(3)) {
        case 0:
          bytes[at] = static_cast<char>(random.Below(256));
          break;
        case 1:  // One name becomes another.
          bytes[at] = "fnrsxy0123456789"[random.Below(16)];
          break;
        default:
          bytes.erase(at, random.Between(1, 4));
      }
    }
    const auto step_graph = core::StepGraph::Parse(bytes, {}, DefaultLimits(), StopToken());
    parsed += step_graph.ok();
    v1::RewriteOptions options;
    options.mutable_level()->set_swapout_threshold(1);
    options.mutable_level()->set_swapin_ahead(1);
    options.mutable_level()->set_swapin_groupby(0);
    const auto response = core::Rewrite(bytes, options, DefaultLimits(), StopToken());
    EXPECT_THAT(response.status().message(), Not(HasSubstr("the inlined graph"))) << seed;
  }
  EXPECT_GT(parsed, 50);
}

// In any stage, little more is done after the token fires.
TEST(InliningProperty, AStopIsNoticed) {
  std::string body, last = "x";
  for (int i = 0; i < 5000; ++i) {
    absl::StrAppend(&body, "n", i, " = Neg(", last, ") {T=float32}\n");
    last = absl::StrCat("n", i, ":y:0");
  }
  const std::string bytes = GraphWithFunctions(
      "a = Placeholder() {dtype=float32}\n"
      "c = PartitionedCall(a) {Tin=[float32], Tout=[float32], f=\"f\"}\n"
      "d = PartitionedCall(c) {Tin=[float32], Tout=[float32], f=\"f\"}",
      {Function("f", "x:float32", "y:float32", body, {"y=" + last})});
  const TestGraph graph = TestGraph::FromBytes(bytes);
  const StopToken whole;
  ASSERT_THAT(core::InlineCalls(*graph, {}, DefaultLimits(), whole), IsOk());
  ASSERT_GT(whole.steps(), 20'000);
  for (int64_t steps = 0; steps < whole.steps() - 1024; steps += 997) {
    const StopToken stop = StopToken::AfterStepsForTest(steps);
    const auto inlined = core::InlineCalls(*graph, {}, DefaultLimits(), stop);
    EXPECT_FALSE(inlined.ok()) << steps;
    EXPECT_LE(stop.steps_after_stop(), 8 * core::StopPoller::kStride) << steps;
  }
}

}  // namespace
}  // namespace spillway::testing
