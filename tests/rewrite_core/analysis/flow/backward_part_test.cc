#include "rewrite_core/analysis/flow/backward_part.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/function_graph.h"
#include "tests/testing/training_graph.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TestGraph;

BackwardPart Find(const Graph& graph) {
  const Topology topology = testing::ValueOrDie(Topology::Build(graph, StopToken()), "topology");
  return testing::ValueOrDie(FindBackwardPart(graph, topology, StopToken()), "backward part");
}

std::vector<std::string> Names(const Graph& graph, const std::vector<NodeId>& ids) {
  std::vector<std::string> names;
  for (NodeId id : ids) names.emplace_back(graph.name(id));
  return names;
}

// In each case exactly the nodes of the backward part have names that start with `b_`. The analysis
// ignores names, so they can state the expected result.
struct PartCase {
  std::string name;
  std::string text;
};

void ExpectByName(const Graph& graph, const BackwardPart& part) {
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    EXPECT_EQ(part.ops[id], absl::StartsWith(graph.name(id), "b_")) << graph.name(id);
  }
}

class BackwardPartTest : public ::testing::TestWithParam<PartCase> {};

TEST_P(BackwardPartTest, IsFoundFromTheStructure) {
  const TestGraph graph(GetParam().text);
  ExpectByName(*graph, Find(*graph));
}

// Two layers with ref variables. The loss is xent; gradients start at the constant b_ones.
constexpr char kForward[] = R"(
    x = Placeholder()
    labels = Placeholder()
    w1 = VariableV2()
    w2 = VariableV2()
    read1 = Identity(w1)
    read2 = Identity(w2)
    m1 = MatMul(x, read1)
    r1 = Relu(m1)
    logits = MatMul(r1, read2)
    xent = SoftmaxCrossEntropyWithLogits(logits, labels)
    axes = Const()
    loss = Mean(xent, axes)
)";
constexpr char kGradients[] = R"(
    b_ones = Const()
    b_dlogits = Mul(b_ones, xent:1)
    b_dw2 = MatMul(r1, b_dlogits)
    b_dr1 = MatMul(b_dlogits, read2)
    b_dm1 = ReluGrad(b_dr1, r1)
    b_dw1 = MatMul(x, b_dm1)
)";
constexpr char kUpdates[] = R"(
    b_lr = Const()
    b_update1 = ApplyGradientDescent(w1, b_lr, b_dw1)
    b_update2 = ApplyGradientDescent(w2, b_lr, b_dw2)
    step = NoOp(^b_update1, ^b_update2)
)";

INSTANTIATE_TEST_SUITE_P(
    BackwardPart, BackwardPartTest,
    ::testing::Values(
        PartCase{"Plain", absl::StrCat(kForward, kGradients, kUpdates)},
        // Ops that initialize, count, average or measure are not updates.
        PartCase{"OtherWrites", absl::StrCat(kForward, kGradients, kUpdates, R"(
            start = Const()
            init1 = Assign(w1, start)
            global_step = VariableV2()
            one = Const()
            count = AssignAdd(global_step, one, ^b_update1, ^b_update2)
            average = VariableV2()
            batch_mean = Mean(r1, axes)
            averaged = AssignSub(average, batch_mean)
            total = VariableV2()
            correct = Equal(logits, labels)
            counted = AssignAdd(total, correct)
        )")},
        // The moving average is read on the way to the gradients, as in Keras.
        PartCase{"AverageThatIsRead", R"(
            x = Placeholder()
            average = VariableV2()
            w = VariableV2()
            centered = Sub(x, average)
            m = MatMul(centered, w)
            r = Relu(m)
            axes = Const()
            batch_mean = Mean(x, axes)
            change = Sub(average, batch_mean)
            averaged = AssignSub(average, change)
            v = VariableV2()
            logits = MatMul(r, v)
            labels = Placeholder()
            xent = SoftmaxCrossEntropyWithLogits(logits, labels)
            loss = Mean(xent, axes)
            b_ones = Const()
            b_dlogits = Mul(b_ones, xent:1)
            b_dr = MatMul(b_dlogits, v)
            b_dv = MatMul(r, b_dlogits)
            b_dm = ReluGrad(b_dr, r)
            b_dw = MatMul(centered, b_dm)
            b_lr = Const()
            b_update_w = ApplyGradientDescent(w, b_lr, b_dw)
            b_update_v = ApplyGradientDescent(v, b_lr, b_dv)
        )"},
        // An optimizer made of Assign ops with momentum, like BERT's.
        PartCase{"HandMadeOptimizer", absl::StrCat(kForward, kGradients, R"(
            slot1 = VariableV2()
            slot2 = VariableV2()
            b_keep = Const()
            b_old1 = Mul(slot1, b_keep)
            b_new1 = AddV2(b_old1, b_dw1)
            b_value1 = Sub(read1, b_new1)
            b_write1 = Assign(w1, b_value1)
            b_write_slot1 = Assign(slot1, b_new1)
            b_old2 = Mul(slot2, b_keep)
            b_new2 = AddV2(b_old2, b_dw2)
            b_value2 = Sub(read2, b_new2)
            b_write2 = Assign(w2, b_value2)
            b_write_slot2 = Assign(slot2, b_new2)
            start = Const()
            init2 = Assign(slot2, start)
        )")},
        // Gradients that are monitored, clipped by their global norm, and summed over two steps.
        PartCase{"SummariesClippingAndAccumulation", absl::StrCat(kForward, kGradients, R"(
            b_norm1 = L2Loss(b_dw1)
            b_norm2 = L2Loss(b_dw2)
            b_norm = AddN(b_norm1, b_norm2)
            b_clip1 = Mul(b_dw1, b_norm)
            b_clip2 = Mul(b_dw2, b_norm)
            sum1 = VariableV2()
            sum2 = VariableV2()
            b_add1 = AssignAdd(sum1, b_clip1)
            b_add2 = AssignAdd(sum2, b_clip2)
            b_lr = Const()
            b_update1 = ApplyGradientDescent(w1, b_lr, sum1)
            b_update2 = ApplyGradientDescent(w2, b_lr, sum2)
            b_tag = Const()
            b_watch = HistogramSummary(b_tag, b_dw1)
            b_watch2 = HistogramSummary(b_tag, b_clip2)
            loss_tag = Const()
            loss_watch = ScalarSummary(loss_tag, loss)
        )")},
        // Transposed convolutions are forward here; weight decay is not.
        PartCase{"TransposedConvolution", R"(
            x = Placeholder()
            size = Const()
            w = VariableV2()
            v = VariableV2()
            read = Identity(w)
            up = Conv2DBackpropInput(size, read, x)
            out = Relu(up)
            top = MatMul(out, v)
            loss = L2Loss(top)
            b_scale = Const()
            b_dtop = Mul(top, b_scale)
            b_dout = MatMul(b_dtop, v)
            b_dv = MatMul(out, b_dtop)
            b_dup = ReluGrad(b_dout, out)
            b_shape = Shape(read)
            b_dw = Conv2DBackpropFilter(b_dup, b_shape, x)
            b_rate = Const()
            b_decay = Mul(read, b_rate)
            b_sum = AddN(b_dw, b_decay)
            b_lr = Const()
            b_update_w = ApplyMomentum(w, slot_w, b_lr, b_sum, b_rate)
            b_update_v = ApplyMomentum(v, slot_v, b_lr, b_dv, b_rate)
            slot_w = VariableV2()
            slot_v = VariableV2()
        )"},
        // Two losses, two optimizers, resource variables: a generator g and a discriminator d.
        PartCase{"Adversaries", R"(
            noise = Placeholder()
            images = Placeholder()
            g = VarHandleOp()
            d = VarHandleOp()
            read_g = ReadVariableOp(g)
            read_d = ReadVariableOp(d)
            made = MatMul(noise, read_g)
            fake = Tanh(made)
            judged_fake = MatMul(fake, read_d)
            judged_real = MatMul(images, read_d)
            says_fake = Sigmoid(judged_fake)
            says_real = Sigmoid(judged_real)
            loss_d = Sub(says_fake, says_real)
            loss_g = Neg(says_fake)
            b_one = Const()
            b_d1 = SigmoidGrad(says_fake, b_one)
            b_d2 = SigmoidGrad(says_real, b_one)
            b_dd1 = MatMul(fake, b_d1)
            b_dd2 = MatMul(images, b_d2)
            b_dd = AddN(b_dd1, b_dd2)
            b_minus = Const()
            b_g1 = SigmoidGrad(says_fake, b_minus)
            b_g2 = MatMul(b_g1, read_d)
            b_g3 = TanhGrad(fake, b_g2)
            b_dg = MatMul(noise, b_g3)
            b_lr = Const()
            b_update_d = ResourceApplyGradientDescent(d, b_lr, b_dd)
            b_update_g = ResourceApplyGradientDescent(g, b_lr, b_dg)
        )"},
        // The second gradient of the product is for the mask and is unused.
        PartCase{"UnneededGradients", absl::StrCat(kForward, R"(
            b_ones = Const()
            b_dlogits = Mul(b_ones, xent:1)
            b_gate = NoOp(^b_dlogits, ^b_dlabels)
            b_dlabels = Mul(b_ones, logits)
            b_kept = Identity(b_dlogits, ^b_gate)
            b_unread = Identity(b_dlabels, ^b_gate)
            b_dw2 = MatMul(r1, b_kept)
            b_dr1 = MatMul(b_kept, read2)
            b_dm1 = ReluGrad(b_dr1, r1)
            b_dw1 = MatMul(x, b_dm1)
        )",
                                                   kUpdates)},
        // The same without gates: the gradient of the input, and one that is only monitored.
        PartCase{"UngatedGradients", absl::StrCat(kForward, R"(
            b_ones = Const()
            b_dlogits = Mul(b_ones, xent:1)
            b_dw2 = MatMul(r1, b_dlogits)
            b_dr1 = MatMul(b_dlogits, read2)
            b_dm1 = Mul(b_dr1, m1)
            b_dx = MatMul(b_dm1, read1)
            b_dw1 = MatMul(x, b_dm1)
            tag = Const()
            b_watch = HistogramSummary(tag, b_dm1)
        )",
                                                  kUpdates)},
        // Pruned to the updates: nodes that only the loss kept out (xent) are in the backward part;
        // the last use of a variable is not.
        PartCase{"WithoutLoss",
                 absl::StrReplaceAll(absl::StrCat(kForward, kGradients, kUpdates),
                                     {{"    axes = Const()\n    loss = Mean(xent, axes)\n", ""},
                                      {"xent", "b_xent"}})},
        // No op of a gradient type: a linear model.
        PartCase{"Linear", R"(
            x = Placeholder()
            y = Placeholder()
            w = VariableV2()
            p = MatMul(x, w)
            e = Sub(p, y)
            loss = L2Loss(e)
            b_scale = Const()
            b_de = Mul(e, b_scale)
            b_dw = MatMul(x, b_de)
            b_lr = Const()
            b_update = ApplyGradientDescent(w, b_lr, b_dw)
        )"},
        PartCase{"NotForTraining",
                 "x = Placeholder()\nw = VariableV2()\ny = MatMul(x, w)\n"
                 "start = Const()\ninit = Assign(w, start)"}),
    testing::CaseName());

// Captured variables, as in the graph of a tf.function: handles that come from outside.
INSTANTIATE_TEST_SUITE_P(
    Captured, BackwardPartTest,
    ::testing::Values(PartCase{
        "PlainWrites",
        absl::StrCat(absl::StrReplaceAll(kForward,
                                         {{"VariableV2()", "Placeholder() {dtype=resource}"},
                                          {"Placeholder()", "Placeholder() {dtype=float32}"},
                                          {"Identity(", "ReadVariableOp("}}),
                     kGradients, R"(
            b_update1 = AssignSubVariableOp(w1, b_dw1)
            b_update2 = AssignSubVariableOp(w2, b_dw2)
            average = Placeholder() {dtype=resource}
            mean = Mean(r1, axes)
            averaged = AssignSubVariableOp(average, mean)
        )")}),
    testing::CaseName());

// Updates in a branch of an If, as in loss scaling: both branches write, whether the gradients are
// finite or not.
TEST(BackwardPartTest, UpdatesInFunctions) {
  for (const char* update : {"ResourceApplyGradientDescent(v, rate, g) {T=float32}",
                             "AssignSubVariableOp(v, g) {dtype=float32}"}) {
    const std::string arguments = "v:resource rate:float32 g:float32";
    const TestGraph graph = TestGraph::FromBytes(testing::GraphWithFunctions(
        R"(
        x = Placeholder() {dtype=float32}
        w = VarHandleOp() {dtype=float32, shape=(3)}
        average = VarHandleOp() {dtype=float32, shape=(3)}
        read = ReadVariableOp(w)
        m = Mul(x, read)
        r = Relu(m)
        counted = PartitionedCall(average, r) {f="average"}
        b_g = ReluGrad(x, r)
        b_gw = Mul(b_g, x)
        b_finite = IsFinite(b_gw)
        b_all = All(b_finite, b_all_axes)
        b_all_axes = Const()
        b_rate = Const()
        b_up = If(b_all, w, b_rate, b_gw) {then_branch="apply", else_branch="skip"}
        )",
        {testing::Function("apply", arguments, "", absl::StrCat("up = ", update), {}),
         testing::Function("skip", arguments, "", "nothing = NoOp()", {}),
         testing::Function("average", "v:resource x:float32", "",
                           "up = AssignSubVariableOp(v, x) {dtype=float32}", {})}));
    const BackwardPart part = Find(*graph);
    EXPECT_THAT(Names(*graph, part.updates), ElementsAre("b_up")) << update;
    ExpectByName(*graph, part);
  }
}

TEST(BackwardPartTest, NamesTheUpdates) {
  const TestGraph graph(absl::StrCat(kForward, kGradients, kUpdates));
  EXPECT_THAT(Names(*graph, Find(*graph).updates), ElementsAre("b_update1", "b_update2"));
  const TestGraph none(kForward);
  EXPECT_THAT(Find(*none).updates, IsEmpty());
}

TEST(BackwardPartTest, OfAGeneratedGraphIsWhatItsScopesSay) {
  testing::TrainingGraphOptions options;
  options.nodes = 3000;
  options.gradients_scope = "down";
  options.optimizer_scope = "move";
  const TestGraph graph = TestGraph::FromBytes(testing::MakeTrainingGraph(options));
  ASSERT_EQ(graph->num_nodes(), options.nodes);
  const BackwardPart part = Find(*graph);
  for (NodeId id(0); id < graph->num_nodes(); ++id) {
    const absl::string_view name = graph->name(id);
    if (name == "move/train_op") continue;  // Has only control inputs, so it is in no data flow.
    EXPECT_EQ(part.ops[id], absl::StartsWith(name, "down/") || absl::StartsWith(name, "move/"))
        << name;
  }
}

}  // namespace
}  // namespace spillway::core
