#include "rewrite_core/plan/eligibility.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using testing::IsInvalid;
using testing::TestFacts;

v1::RewriteOptions Feed(const std::string& name) {
  v1::RewriteOptions options;
  options.mutable_step()->add_feeds()->set_name(name);
  return options;
}

v1::RewriteOptions Devices(const std::vector<std::string>& devices) {
  v1::RewriteOptions options;
  for (const std::string& device : devices) options.add_devices(device);
  return options;
}

v1::RewriteOptions MinBytes(int64_t bytes) {
  v1::RewriteOptions options;
  options.set_min_tensor_bytes(bytes);
  return options;
}

// Nodes that rows may read.
constexpr char kContext[] = R"(
    x = Placeholder() @/gpu:0 {dtype=float32}
    i = Placeholder() @/gpu:0 {dtype=int32}
    v = VariableV2() @/gpu:0 {dtype=float32, shape=(3)}
    h = VarHandleOp() @/gpu:0 {dtype=float32, shape=(3)}
    other = Relu(x) @/gpu:1 {T=float32}
    enter = Enter(x) {T=float32, frame_name="f"}
    merge = Merge(enter, next) {T=float32, N=2}
    less = Less(merge, merge) {T=float32}
    cond = LoopCond(less)
    switch = Switch(merge, cond) {T=float32}
    next = NextIteration(switch:1) {T=float32}
)";

struct RuleCase {
  std::string name;
  std::string line;  // One node, whose output 0 is checked.
  v1::Reason reason;
  v1::RewriteOptions options = {};
};

class EligibilityTest : public ::testing::TestWithParam<RuleCase> {};

TEST_P(EligibilityTest, Judges) {
  const TestFacts f(kContext + GetParam().line, GetParam().options.step());
  const auto eligibility = Eligibility::Create(f.facts, GetParam().options, {});
  ASSERT_THAT(eligibility, testing::IsOk());
  const Tensor tensor = f.graph.Output(GetParam().line.substr(0, GetParam().line.find(' ')));
  EXPECT_EQ(v1::Reason_Name(eligibility->ReasonFor(tensor)), v1::Reason_Name(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, EligibilityTest,
    ::testing::Values(
        // Each rule, and below it the most similar tensors that it does not forbid.
        RuleCase{"SwapNode", "lms/swapin_a = Identity(x) {T=float32}", v1::REASON_SWAP_NODE},
        RuleCase{"SwapNodeInAScope", "import/lms/swapout_a = Identity(x) {T=float32}",
                 v1::REASON_SWAP_NODE},
        RuleCase{"SwapNodeOfTheOtherEncoding",
                 "lms/swapin_a = _CopyFromHostToGpu(x) @/gpu:0 {T=float32}", v1::REASON_SWAP_NODE},
        RuleCase{"IdentityOfAnotherName", "a = Identity(x) {T=float32}", v1::REASON_SWAPPED},
        RuleCase{"AnotherOpOfThatName", "lms/swap = Relu(x) {T=float32}", v1::REASON_SWAPPED},

        RuleCase{"Fed", "n = Relu(x) {T=float32}", v1::REASON_FED, Feed("n")},
        RuleCase{"FedByTensor", "n = Relu(x) {T=float32}", v1::REASON_FED, Feed("n:0")},
        RuleCase{"AnotherIsFed", "n = Relu(x) {T=float32}", v1::REASON_SWAPPED, Feed("x")},

        RuleCase{"Reference", "n = VariableV2() {dtype=float32}", v1::REASON_REFERENCE},
        RuleCase{"ReferenceFromAnUpdate", "n = AssignAdd(v, x) {T=float32}", v1::REASON_REFERENCE},
        // A type of 101: a reference to a float32.
        RuleCase{"ReferenceByAttribute", "n = Relu(x) {T=0x3065}", v1::REASON_REFERENCE},

        RuleCase{"NoType", "n = Relu(x)", v1::REASON_UNKNOWN_DTYPE},
        RuleCase{"CustomOp", "n = MyOwnOp(x) {T=float32}", v1::REASON_UNKNOWN_DTYPE},
        RuleCase{"Typed", "n = Relu(x) {T=float32}", v1::REASON_SWAPPED},
        RuleCase{"TypedAsHalf", "n = Relu(x) {T=float16}", v1::REASON_SWAPPED},

        RuleCase{"Resource", "n = VarHandleOp() {dtype=float32}", v1::REASON_RESOURCE},
        RuleCase{"Variant", "n = EmptyTensorList(i, i)", v1::REASON_RESOURCE},

        RuleCase{"Int32", "n = Relu(x) {T=int32}", v1::REASON_HOST_MEMORY},
        // Its kernel has the tensor in GPU memory; a swap-in's kernel would have it in host memory.
        RuleCase{"Int32OnTheGpu", "n = Cast(x) {SrcT=float32, DstT=int32}", v1::REASON_HOST_MEMORY},
        RuleCase{"String", "n = AsString(x) {T=float32}", v1::REASON_HOST_MEMORY},
        RuleCase{"ShapeAsInt64", "n = Shape(x) {T=float32, out_type=int64}",
                 v1::REASON_HOST_MEMORY},
        RuleCase{"Int64", "n = Relu(x) {T=int64}", v1::REASON_SWAPPED},
        RuleCase{"Bool", "n = LogicalNot(x)", v1::REASON_SWAPPED},

        RuleCase{"ReadOfAVariable", "n = Identity(v) {T=float32}", v1::REASON_VARIABLE_ALIAS},
        RuleCase{"ReadOfAResource", "n = ReadVariableOp(h) {dtype=float32}",
                 v1::REASON_VARIABLE_ALIAS},
        RuleCase{"ComputedFromAVariable", "n = Relu(v) {T=float32}", v1::REASON_SWAPPED},

        RuleCase{"InLoop", "n = Relu(switch:1) {T=float32}", v1::REASON_IN_LOOP},
        RuleCase{"IntoLoop", "n = Enter(x) {T=float32, frame_name=\"f\"}", v1::REASON_IN_LOOP},
        RuleCase{"UnknownFrame", "n = AddV2(switch:1, x) {T=float32}", v1::REASON_IN_LOOP},
        RuleCase{"OutOfLoop", "n = Exit(switch) {T=float32}", v1::REASON_SWAPPED},

        RuleCase{"OnCpu", "n = Relu(x) @/cpu:0 {T=float32}", v1::REASON_CPU_PRODUCER},
        RuleCase{"OnCpuOfATask", "n = Relu(x) @/job:w/task:0/device:CPU:0 {T=float32}",
                 v1::REASON_CPU_PRODUCER},
        RuleCase{"OnCpuThoughAskedFor", "n = Relu(x) @/cpu:0 {T=float32}", v1::REASON_CPU_PRODUCER,
                 Devices({"/cpu:0"})},
        RuleCase{"OnGpu", "n = Relu(x) @/gpu:0 {T=float32}", v1::REASON_SWAPPED},
        RuleCase{"OnNoDevice", "n = Relu(x) {T=float32}", v1::REASON_SWAPPED},

        RuleCase{"OnAnother", "n = Relu(x) @/gpu:0 {T=float32}", v1::REASON_OTHER_DEVICE,
                 Devices({"/gpu:1"})},
        RuleCase{"OnNoDeviceThoughOneIsAskedFor", "n = Relu(x) {T=float32}",
                 v1::REASON_OTHER_DEVICE, Devices({"/gpu:1"})},
        RuleCase{"OnTheOneAskedFor", "n = Relu(x) @/gpu:1 {T=float32}", v1::REASON_SWAPPED,
                 Devices({"/gpu:1"})},
        RuleCase{"OnTheOneAskedForInAnotherSpelling",
                 "n = Relu(x) @/job:w/task:0/device:GPU:1 {T=float32}", v1::REASON_SWAPPED,
                 Devices({"/gpu:1"})},
        RuleCase{"OnOneOfTwoAskedFor", "n = Relu(x) @/gpu:0 {T=float32}", v1::REASON_SWAPPED,
                 Devices({"/gpu:1", "/gpu:0"})},

        RuleCase{"TooSmall",  // 24 floats are 96 bytes.
                 "n = Relu(x) {T=float32, _output_shapes=[(24)]}", v1::REASON_TOO_SMALL,
                 MinBytes(97)},
        RuleCase{"JustLargeEnough", "n = Relu(x) {T=float32, _output_shapes=[(24)]}",
                 v1::REASON_SWAPPED, MinBytes(96)},
        RuleCase{"EmptyIsTooSmall", "n = Relu(x) {T=float32, _output_shapes=[(0)]}",
                 v1::REASON_TOO_SMALL, MinBytes(1)},
        RuleCase{"UnknownSizeIsNotJudged", "n = Relu(x) {T=float32}", v1::REASON_SWAPPED,
                 MinBytes(1 << 30)}),
    testing::CaseName());

TEST(EligibilityCreateTest, RefusesADeviceOnWhichNothingIs) {
  const TestFacts f(kContext);
  EXPECT_THAT(Eligibility::Create(f.facts, Devices({"/gpu:0"}), {}), testing::IsOk());
  const auto missing = Eligibility::Create(f.facts, Devices({"/gpu:0", "/gpu:7"}), {});
  EXPECT_THAT(missing, IsInvalid(v1::ERROR_REASON_NAME_MATCHES_NOTHING, "'/gpu:7'"));
  EXPECT_EQ(testing::ErrorDetailOf(missing, "option"), "devices");
  EXPECT_EQ(testing::ErrorDetailOf(missing, "value"), "/gpu:7");
}

TEST(EligibilityCreateTest, TellsTheDevicesWanted) {
  const TestFacts f("a = Const() @/gpu:0\nb = Const() @/gpu:1\nc = Const() @/cpu:0\nd = Const()");
  const auto wanted = [&f](const std::vector<std::string>& devices) {
    const auto e = Eligibility::Create(f.facts, Devices(devices), {});
    std::string names;
    for (const char* node : {"a", "b", "c", "d"}) {
      if (e->IsDeviceWanted(f.graph->device_id(f.graph.Node(node)))) names += node;
    }
    return names;
  };
  EXPECT_EQ(wanted({}), "abd");
  EXPECT_EQ(wanted({"/gpu:0"}), "a");
  EXPECT_EQ(wanted({"/gpu:1", "/device:GPU:0"}), "ab");
  EXPECT_EQ(wanted({""}), "d");
}

}  // namespace
}  // namespace spillway::core
