#include "rewrite_core/analysis/memory/variable_aliases.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/const_text.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using testing::TestGraph;

// Every case reads `v`, a variable, or `r`, a value read from a resource.
constexpr char kSources[] = R"(
    v = VariableV2() {dtype=float32, shape=(3)}
    h = VarHandleOp() {dtype=float32, shape=(3)}
    r = ReadVariableOp(h) {dtype=float32}
    x = Placeholder() {dtype=float32}
    i = Placeholder() {dtype=int32}
    b = Placeholder() {dtype=bool}
)";

struct AliasCase {
  std::string name;
  std::string nodes;  // The last one, named `n`, is checked.
  bool alias;
};

// A variable of some dimensions, a constant of integers, and an op on both.
std::string OpOnConstant(const std::string& shape, const std::vector<int64_t>& dims,
                         const std::vector<int>& values, const std::string& op) {
  return absl::StrCat("m = VarHandleOp() {dtype=float32, shape=", shape,
                      "}\nw = ReadVariableOp(m) {dtype=float32}\n",
                      testing::ConstText("c", dims, values), "n = ", op, "(w, c) {T=float32}");
}

class VariableAliasesTest : public ::testing::TestWithParam<AliasCase> {};

TEST_P(VariableAliasesTest, Judges) {
  const TestGraph graph(kSources + GetParam().nodes);
  const auto topology = testing::ValueOrDie(Topology::Build(*graph, {}), "topology");
  const auto shapes = testing::ValueOrDie(Shapes::Infer(*graph, topology, {}, {}), "shapes");
  const auto aliases = FindVariableAliases(*graph, shapes, StopToken());
  ASSERT_THAT(aliases, testing::IsOk());
  EXPECT_EQ((*aliases)[graph.Node("n")], GetParam().alias);
  EXPECT_FALSE((*aliases)[graph.Node("x")]);
}

INSTANTIATE_TEST_SUITE_P(
    VariableAliases, VariableAliasesTest,
    ::testing::Values(
        AliasCase{"Variable", "n = VariableV2() {dtype=float32}", true},
        AliasCase{"OldVariable", "n = Variable() {dtype=float32}", true},
        AliasCase{"ReadOfResource", "n = ReadVariableOp(h) {dtype=float32}", true},
        AliasCase{"AssignGivesAReference", "n = Assign(v, x) {T=float32}", true},
        AliasCase{"Placeholder", "n = Placeholder() {dtype=float32}", false},
        // Ops that forward their input's buffer, and the same ops on other data.
        AliasCase{"Identity", "n = Identity(v) {T=float32}", true},
        AliasCase{"IdentityOfData", "n = Identity(x) {T=float32}", false},
        AliasCase{"IdentityOfRead", "n = Identity(r) {T=float32}", true},
        AliasCase{"Reshape", "n = Reshape(v, i) {T=float32}", true},
        AliasCase{"ReshapeOfData", "n = Reshape(x, i) {T=float32}", false},
        AliasCase{"Switch", "n = Switch(v, b) {T=float32}", true},
        AliasCase{"Enter", "n = Enter(r) {T=float32, frame_name=\"f\"}", true},
        AliasCase{"Merge", "n = Merge(x, r) {T=float32, N=2}", true},
        AliasCase{"MergeOfData", "n = Merge(x, x) {T=float32, N=2}", false},
        AliasCase{"Slice", "n = StridedSlice(r, i, i, i) {T=float32}", true},
        AliasCase{"Chain",
                  "c1 = Identity(v) {T=float32}\nc2 = Squeeze(c1) {T=float32}\n"
                  "n = StopGradient(c2) {T=float32}",
                  true},
        // Ops that compute, and their readers.
        AliasCase{"Relu", "n = Relu(r) {T=float32}", false},
        AliasCase{"Mul", "n = Mul(v, x) {T=float32}", false},
        AliasCase{"BehindACompute", "c = Relu(r) {T=float32}\nn = Identity(c) {T=float32}", false},
        // A cast to the same type forwards; one that converts copies.
        AliasCase{"CastToTheSame", "n = Cast(r) {SrcT=float32, DstT=float32}", true},
        AliasCase{"CastThatConverts", "n = Cast(r) {SrcT=float32, DstT=float16}", false},
        AliasCase{"CastOfUnknownTypes", "n = Cast(r)", true},
        // A sum of a single tensor is that tensor.
        AliasCase{"AddNOfOne", "n = AddN(r) {T=float32, N=1}", true},
        AliasCase{"AddNOfOneAndAControl", "n = AddN(r, ^x) {T=float32, N=1}", true},
        AliasCase{"AddNOfTwo", "n = AddN(r, x) {T=float32, N=2}", false},
        AliasCase{"AddNOfTwoReferences", "n = AddN(v, v) {T=float32, N=2}", false},
        AliasCase{"CastOfAReferenceThatConverts", "n = Cast(v) {SrcT=float32, DstT=float16}",
                  false},
        // Padding by zero and swapping dimensions of size 1 forward; otherwise these ops write a
        // new buffer.
        AliasCase{"PadOfNothing", OpOnConstant("(2,3)", {2, 2}, {0, 0, 0, 0}, "Pad"), true},
        AliasCase{"Pad", OpOnConstant("(2,3)", {2, 2}, {0, 0, 0, 1}, "Pad"), false},
        AliasCase{"PadV2", OpOnConstant("(2,3)", {2, 2}, {1, 0, 0, 0}, "PadV2"), false},
        AliasCase{"PadByWhatIsComputed", "n = Pad(r, i) {T=float32}", true},
        AliasCase{"Transpose", OpOnConstant("(2,3)", {2}, {1, 0}, "Transpose"), false},
        AliasCase{"TransposeOfAsItIs", OpOnConstant("(2,3)", {2}, {0, 1}, "Transpose"), true},
        AliasCase{"TransposeOfOnes", OpOnConstant("(1,3)", {2}, {1, 0}, "Transpose"), true},
        AliasCase{"TransposeOfWhatMayBeOne", OpOnConstant("(?,3)", {2}, {1, 0}, "Transpose"), true},
        AliasCase{"TransposeOfTwoOfThree", OpOnConstant("(?,3,4)", {3}, {2, 0, 1}, "Transpose"),
                  false},
        AliasCase{"TransposeByWhatIsComputed", "n = Transpose(r, i) {T=float32}", true},
        // A custom op may do anything; without variables as inputs it has none to forward.
        AliasCase{"CustomOp", "n = MyOwnOp(r)", true},
        AliasCase{"CustomOpOfData", "n = MyOwnOp(x)", false},
        // Waiting for a variable does not read it.
        AliasCase{"Control", "n = Identity(x, ^v) {T=float32}", false}),
    testing::CaseName());

}  // namespace
}  // namespace spillway::core
