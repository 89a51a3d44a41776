// Sizes are known before anything is built, and are never too small.
#include "rewrite_core/inline/function_table.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/capabilities.h"
#include "rewrite_core/inline/inline_calls.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/function_graph.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/random.h"

namespace spillway::core {
namespace {

using ::spillway::testing::Function;
using ::spillway::testing::FunctionDef;
using ::spillway::testing::GraphWithFunctions;
using ::spillway::testing::TestGraph;
using ::spillway::testing::ValueOrDie;

TEST(FunctionTable, Names) {
  const std::string bytes =
      GraphWithFunctions("a = NoOp()", {Function("f", "x:float32", "y:float32", "", {"y=x"})});
  const FunctionTable table = ValueOrDie(FunctionTable::Read(bytes, StopToken()), "table");
  EXPECT_EQ(table.size(), 1);
  EXPECT_EQ(table.Find("f"), 0);
  EXPECT_EQ(table.Find("g"), FunctionTable::kNoFunction);
  EXPECT_EQ(table.KindOf("f"), CallKind::kNative);
  EXPECT_EQ(table.KindOf("PartitionedCall"), CallKind::kPartitioned);
  EXPECT_EQ(table.KindOf("While"), CallKind::kWhile);
  EXPECT_EQ(table.KindOf("RemoteCall"), CallKind::kOther);
  EXPECT_EQ(table.KindOf("Relu"), CallKind::kNone);
}

// A function whose body is an If with another function as both branches.
FunctionDef Fork(const std::string& name, const std::string& callee) {
  return Function(name, "p:bool x:float32", "y:float32",
                  absl::StrCat("n = StatelessIf(p, p, x) {Tcond=bool, Tin=[bool, float32], "
                               "Tout=[float32], _lower_using_switch_merge=true, then_branch=\"",
                               callee, "\", else_branch=\"", callee, "\"}"),
                  {"y=n:output:0"});
}

InlinedCalls Inlined(const std::vector<FunctionDef>& functions) {
  const TestGraph graph = TestGraph::FromBytes(GraphWithFunctions(R"(
p = Placeholder() {dtype=bool, shape=()}
x = Placeholder() {dtype=float32, shape=(10)}
c = PartitionedCall(p, x) {Tin=[bool, float32], Tout=[float32], f="f0"}
e = Neg(c) {T=float32}
)",
                                                                  functions));
  return ValueOrDie(InlineCalls(*graph, {}, DefaultLimits(), StopToken()), "inline");
}

// Both branches of an If count, with the functions that they call; calls may double with each
// level, or be recursive.
TEST(FunctionTable, BranchesCount) {
  std::vector<FunctionDef> functions;
  const auto depth = [&functions](int levels) {
    functions.clear();
    for (int i = 0; i < levels; ++i) {
      functions.push_back(Fork(absl::StrCat("f", i), absl::StrCat("f", i + 1)));
    }
    functions.push_back(Function(absl::StrCat("f", levels), "p:bool x:float32", "y:float32",
                                 "n = Neg(x) {T=float32}", {"y=n:y:0"}));
  };
  for (int levels = 1; levels <= 8; ++levels) {
    depth(levels);
    const InlinedCalls inlined = Inlined(functions);
    EXPECT_EQ(inlined.summary.kept_call_count(), 0);
    const std::string bytes = GraphWithFunctions("a = NoOp()", functions);
    const FunctionTable table = ValueOrDie(FunctionTable::Read(bytes, StopToken()), "table");
    const InlinedSize& told = table[table.Find("f0")].size;
    EXPECT_GE(told.nodes, inlined.summary.added_node_count()) << levels;
    EXPECT_GE(told.BytesAt(1, 1), inlined.summary.added_bytes()) << levels;
  }
  depth(30);
  EXPECT_EQ(Inlined(functions).summary.kept_calls(0).reason(), v1::KEPT_CALL_REASON_TOO_LARGE);
  EXPECT_TRUE(Inlined(functions).graph_def.empty());
  for (const char* callee : {"f0", "f1"}) {
    EXPECT_EQ(Inlined({Fork("f0", callee), Fork("f1", "f0")}).summary.kept_calls(0).reason(),
              v1::KEPT_CALL_REASON_RECURSION);
  }
}

// Functions that call each other at random, with devices and colocation: the announced size is at
// least the size that was built.
TEST(FunctionTable, TheSizeToldIsNeverTooSmall) {
  spillway::testing::Random random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<FunctionDef> functions;
    const int count = 1 + random.Below(6);
    for (int f = 0; f < count; ++f) {
      std::string body = "first = Neg(x) {T=float32}\n";
      std::string last = "first:y:0";
      const int nodes = random.Below(6);
      for (int n = 0; n < nodes; ++n) {
        const std::string name = absl::StrCat("n", std::string(random.Below(40), 'x'), n);
        const std::string device = random.Below(3) == 0 ? " @/job:worker/device:GPU:1" : "";
        if (f > 0 && random.Below(2) == 0) {
          absl::StrAppend(&body, name, " = PartitionedCall(", last,
                          random.Below(2) ? ", ^first" : "", ")", device,
                          " {Tin=[float32], Tout=[float32], f=\"f", random.Below(f), "\"}\n");
          last = name + ":output:0";
        } else {
          absl::StrAppend(&body, name, " = Add(", last, ", x)", device,
                          " {T=float32, _class=[\"loc:@first\", \"loc:@x\"]}\n");
          last = name + ":z:0";
        }
      }
      functions.push_back(
          Function(absl::StrCat("f", f), "x:float32", "y:float32", body, {"y=" + last}, {"first"}));
    }
    const std::string call(1 + random.Below(60), 'c');
    const std::string bytes = GraphWithFunctions(
        absl::StrCat("a = Placeholder() {dtype=float32}\nw = NoOp()\n", call,
                     " = PartitionedCall(a", random.Below(2) ? ", ^w" : "",
                     ") @/gpu:0 {Tin=[float32], Tout=[float32], f=\"f", count - 1, "\"}\nb = Neg(",
                     call, ") {T=float32}\nd = NoOp(^", call, ")"),
        functions);
    const TestGraph graph = TestGraph::FromBytes(bytes);
    const InlinedCalls inlined =
        ValueOrDie(InlineCalls(*graph, {}, DefaultLimits(), StopToken()), "inline");
    ASSERT_EQ(inlined.summary.kept_call_count(), 0);
    const FunctionTable table = ValueOrDie(FunctionTable::Read(bytes, StopToken()), "table");
    const InlinedSize& size = table[count - 1].size;
    const TestGraph after = TestGraph::FromBytes(inlined.graph_def);
    EXPECT_LE(after->num_nodes() - graph->num_nodes(), size.nodes);
    EXPECT_LE(after->num_inputs() - graph->num_inputs(), size.inputs + 4);
    // Limits that allow the announced size also allow the built one.
    v1::Limits limits = DefaultLimits();
    limits.set_max_graph_bytes(static_cast<int64_t>(inlined.graph_def.size()) - 1);
    const InlinedCalls refused = ValueOrDie(InlineCalls(*graph, {}, limits, StopToken()), "inline");
    EXPECT_TRUE(refused.graph_def.empty());
  }
}

}  // namespace
}  // namespace spillway::core
