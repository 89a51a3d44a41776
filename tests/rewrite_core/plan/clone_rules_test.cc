#include "rewrite_core/plan/clone_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/flow/training_ops.h"
#include "rewrite_core/graph/op_registry.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TestStep;
using ::testing::UnorderedElementsAre;
using testing::ValueOrDie;

struct CloneRulesTest : ::testing::Test {
  static CloneRules Find(const TestStep& step) {
    return ValueOrDie(CloneRules::Find(step.facts, {}), "rules");
  }
  static std::vector<std::string> Updates(const TestStep& step, const std::string& node) {
    std::vector<std::string> names;
    for (NodeId update : Find(step).UpdatesOf(step.graph[node])) {
      names.emplace_back(step.graph->name(update));
    }
    return names;
  }
};

// The column of the op table agrees with the other tables of ops. Updates of reference variables
// count as stateless in TensorFlow's registry.
TEST_F(CloneRulesTest, TheTableExcludesStateAndWritesAndLoops) {
  constexpr absl::string_view kOps[] = {
#define SPILLWAY_OP(name, outputs, output_names, is_stateful, forwards, run_again) name,
#include "rewrite_core/graph/op_table.inc"
#undef SPILLWAY_OP
  };
  for (absl::string_view name : kOps) {
    const OpInfo op = FindOp(name);
    const bool has_effect = op.is_stateful || absl::StartsWith(name, "_") ||
                            absl::StrContains(op.outputs, '&') || WriteOf(name) != Write::kNone;
    const bool is_in_loop = op.control_flow != ControlFlow::kNone &&
                            op.control_flow != ControlFlow::kSwitch &&
                            op.control_flow != ControlFlow::kMerge;
    if (!has_effect && !is_in_loop) continue;
    EXPECT_EQ(op.run_again, RunAgain::kNever) << name;
  }
}

TEST_F(CloneRulesTest, ByPlaceInTheGraph) {
  v1::Step fed;
  v1::Feed* feed = fed.add_feeds();
  feed->set_name("fed");
  feed->add_dims(4);
  const TestStep step(R"(
    x = Placeholder() {dtype=float32, shape=(4)}
    a = Relu(x) {T=float32}
    fed = Relu(x) {T=float32}
    enter = Enter(a) {T=float32, frame_name="w"}
    inside = Relu(enter) {T=float32}
    list = TensorListReserve(x, x) {element_dtype=float32, shape_type=int32}
    of_a_list = Identity(list) {T=variant}
    w = VariableV2() {dtype=float32, shape=(4)}
    of_a_reference = Assign(w, x) {T=float32}
    read = Identity(w) {T=float32}
    value = Relu(read) {T=float32}
    custom = Custom(x)
    after = Relu(of_a_list) {T=variant}
)",
                      fed);
  const CloneRules rules = Find(step);
  const auto of = [&](const char* name) { return rules.Of(step.graph[name]); };
  EXPECT_EQ(of("a"), RunAgain::kSameBits);
  EXPECT_EQ(of("value"), RunAgain::kSameBits);
  for (const char* name : {"fed", "enter", "inside", "list", "of_a_list", "of_a_reference", "read",
                           "custom", "after"}) {
    EXPECT_EQ(of(name), RunAgain::kNever) << name;
  }
}

constexpr char kVariable[] = R"(
    x = Placeholder() {dtype=float32, shape=(4,4), _output_shapes=[(4,4)]}
    w = VariableV2() {dtype=float32, shape=(4,4), _output_shapes=[(4,4)]}
    read = Identity(w) {T=float32, _output_shapes=[(4,4)]}
    handed_on = StopGradient(read) {T=float32, _output_shapes=[(4,4)]}
    a = MatMul(x, handed_on) {T=float32, _output_shapes=[(4,4)]}
    b = Relu(a) {T=float32, _output_shapes=[(4,4)]}
    init = Assign(w, x) {T=float32}
    u1 = AssignSub(w, b) {T=float32}
    u2 = AssignAdd(u1, b) {T=float32}
)";

v1::Step Targets(const std::vector<std::string>& names) {
  v1::Step step;
  for (const std::string& name : names) step.add_targets(name);
  return step;
}

// In this step or in another one; an initial value depends on no recomputed node.
TEST_F(CloneRulesTest, UpdatesOfAReference) {
  const TestStep step(kVariable, Targets({"u2"}));
  EXPECT_THAT(Updates(step, "a"), UnorderedElementsAre("u1", "u2"));
  EXPECT_THAT(Updates(step, "b"), IsEmpty());
  EXPECT_THAT(Updates(TestStep(kVariable, Targets({"b"})), "a"), UnorderedElementsAre("u1", "u2"));
}

// Sizes say that these do not share the variable's memory; the verifier does not know them.
TEST_F(CloneRulesTest, UpdatesOfWhatMayShareItsMemory) {
  const TestStep step(R"(
    x = Placeholder() {dtype=float32, shape=(4,4), _output_shapes=[(4,4)]}
    w = VariableV2() {dtype=float32, shape=(1,4), _output_shapes=[(1,4)]}
    read = Identity(w) {T=float32, _output_shapes=[(1,4)]}
    times = Const() {dtype=int32, value=0x420c08031204120208023a020401, _output_shapes=[(2)]}
    tile = Tile(read, times) {T=float32, Tmultiples=int32, _output_shapes=[(4,4)]}
    twice = AddV2(tile, x) {T=float32, _output_shapes=[(4,4)]}
    square = Mul(twice, twice) {T=float32, _output_shapes=[(4,4)]}
    u = AssignSub(w, square) {T=float32, _output_shapes=[(1,4)]}
)");
  EXPECT_THAT(Updates(step, "tile"), ElementsAre("u"));
  EXPECT_THAT(Updates(step, "twice"), ElementsAre("u"));
  EXPECT_THAT(Updates(step, "square"), IsEmpty()) << "a sum is new memory";
}

// A tower's variable is set to that of another one, or of another process: no updates.
TEST_F(CloneRulesTest, CopiesBetweenTowersAreInitializers) {
  const std::string graph = absl::StrCat(kVariable, R"(
    w2 = VariableV2() {dtype=float32, shape=(4,4), _output_shapes=[(4,4)]}
    read2 = Identity(w2) {T=float32, _output_shapes=[(4,4)]}
    a2 = MatMul(x, read2) {T=float32, _output_shapes=[(4,4)]}
    copy = Assign(w2, read, ^init) {T=float32}
    sent = HorovodBroadcast(read2) {T=float32}
    received = Assign(w2, sent) {T=float32}
)");
  EXPECT_THAT(Updates(TestStep(graph, Targets({"b", "a2"})), "a2"), IsEmpty());
}

// Batch normalization in training receives the moving average without reading it.
TEST_F(CloneRulesTest, AnInputThatIsNotRead) {
  const auto updates = [](const std::string& attrs) {
    return Updates(
        TestStep(absl::StrCat("x = Placeholder() {dtype=float32, shape=(2,2,2,2)}\n"
                              "s = Const() {dtype=float32}\n"
                              "w = VariableV2() {dtype=float32, shape=(2), _output_shapes=[(2)]}\n"
                              "read = Identity(w) {T=float32, _output_shapes=[(2)]}\n"
                              "bn = FusedBatchNorm(x, s, s, read, read) {T=float32",
                              attrs, "}\nu = AssignSub(w, bn:1) {T=float32}\n"),
                 Targets({"u"})),
        "bn");
  };
  EXPECT_THAT(updates(""), IsEmpty());
  EXPECT_THAT(updates(", is_training=true"), IsEmpty());
  EXPECT_THAT(updates(", is_training=false"), UnorderedElementsAre("u"));
}

TEST_F(CloneRulesTest, TooManyUpdates) {
  std::string graph = kVariable;
  std::vector<std::string> names = {"b"};
  for (size_t i = 0; i <= CloneRules::kMaxUpdates; ++i) {
    names.push_back(absl::StrCat("more", i));
    absl::StrAppend(&graph, names.back(), " = AssignSub(w, x) {T=float32}\n");
  }
  const TestStep step(graph, Targets(names));
  EXPECT_EQ(Find(step).Of(step.graph["a"]), RunAgain::kNever);
  EXPECT_EQ(Find(step).Of(step.graph["b"]), RunAgain::kSameBits);
}

// A value that was read from a resource stays unchanged; and a value from a host is a copy.
TEST_F(CloneRulesTest, NoUpdatesOfOtherVariables) {
  EXPECT_THAT(Updates(TestStep(R"(
    x = Placeholder() {dtype=float32, shape=(4,4), _output_shapes=[(4,4)]}
    w = VarHandleOp() {dtype=float32, shape=(4,4)}
    read = ReadVariableOp(w) {dtype=float32, _output_shapes=[(4,4)]}
    a = MatMul(x, read) {T=float32, _output_shapes=[(4,4)]}
    u = AssignSubVariableOp(w, a) {dtype=float32}
)"),
                      "a"),
              IsEmpty());
  EXPECT_THAT(Updates(TestStep(R"(
    x = Placeholder() {dtype=float32, shape=(4,4), _output_shapes=[(4,4)]}
    w = VariableV2() @/cpu:0 {dtype=float32, shape=(4,4), _output_shapes=[(4,4)]}
    read = Identity(w) @/cpu:0 {T=float32, _output_shapes=[(4,4)]}
    a = MatMul(x, read) @/gpu:0 {T=float32, _output_shapes=[(4,4)]}
    u = AssignSub(w, a) @/cpu:0 {T=float32}
)"),
                      "a"),
              IsEmpty());
}

}  // namespace
}  // namespace spillway::core
