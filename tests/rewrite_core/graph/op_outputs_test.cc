#include "rewrite_core/graph/op_outputs.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/graph_text.h"

namespace spillway::core {
namespace {

using ::spillway::testing::TestGraph;

// The types of outputs 0 to `count` - 1 as `float32`, `&float32` (a reference), `?` (unknown).
std::string Types(const TestGraph& g, NodeId node, int count) {
  std::vector<int32_t> ports;
  for (int i = 0; i < count; ++i) ports.push_back(i);
  std::vector<std::string> words;
  for (OutputType type : GetOutputTypes(*g, node, ports)) {
    words.push_back(absl::StrCat(type.is_ref ? "&" : "",
                                 type.dtype == kDtInvalid ? "?" : DataTypeName(type.dtype)));
  }
  return absl::StrJoin(words, " ");
}

struct OutputsCase {
  const char* node;   // Op and attributes.
  int count;          // -1: unknown.
  const char* types;  // For all outputs, or for the first two if the count is unknown.
};

// From TensorFlow's op definitions.
constexpr OutputsCase kOutputsCases[] = {
    // Fixed.
    {"NoOp() {}", 0, ""},
    {"Conv2D() {T=float16}", 1, "float16"},
    {"FusedBatchNormV3() {T=float16, U=float32}", 6,
     "float16 float32 float32 float32 float32 float32"},
    {"Merge() {T=float32, N=2}", 2, "float32 int32"},
    {"VarHandleOp() {dtype=float32}", 1, "resource"},
    {"Cast() {SrcT=float32, DstT=int64}", 1, "int64"},
    // References.
    {"VariableV2() {dtype=float32}", 1, "&float32"},
    {"RefSwitch() {T=int64}", 2, "&int64 &int64"},
    {"Identity() {T=0x3065}", 1, "&float32"},  // DT_FLOAT_REF, 101, in the attribute itself.
    // Defaults, with the attribute stripped and with it present.
    {"Shape() {T=float32}", 1, "int32"},
    {"Shape() {T=float32, out_type=int64}", 1, "int64"},
    {"ArgMax() {T=float32}", 1, "int64"},
    {"TopKV2() {T=float32}", 2, "float32 int32"},
    // No default, and the attribute is missing or of another kind.
    {"Conv2D() {}", 1, "?"},
    {"Conv2D() {T=3}", 1, "?"},
    {"Conv2D() {T=\"float\"}", 1, "?"},
    // N*T.
    {"Split() {T=float32, num_split=3}", 3, "float32 float32 float32"},
    {"Split() {T=float32, num_split=0}", 0, ""},
    {"Split() {num_split=2}", 2, "? ?"},
    {"ShapeN() {T=float32, N=2}", 2, "int32 int32"},
    {"Split() {T=float32}", -1, "? ?"},
    {"Split() {T=float32, num_split=-1}", -1, "? ?"},
    {"Split() {T=float32, num_split=float32}", -1, "? ?"},
    {"Split() {T=float32, num_split=99999999999}", -1, "? ?"},
    // Lists.
    {"IdentityN() {T=[float32,int64]}", 2, "float32 int64"},
    {"IdentityN() {T=[]}", 0, ""},
    {"IdentityN() {}", -1, "? ?"},
    {"IdentityN() {T=float32}", -1, "? ?"},
    {"While() {T=[bool,resource,float32]}", 3, "bool resource float32"},
    // Nsparse*int64 []sparse_types Nsparse*int64 []Tdense.
    {"ParseExample() {Nsparse=2, sparse_types=[float32,string], Tdense=[int32]}", 7,
     "int64 int64 float32 string int64 int64 int32"},
    {"ParseExample() {Nsparse=2, Tdense=[int32]}", -1, "int64 int64"},
    // Ops that TensorFlow does not have.
    {"MyOwnOp() {T=float32}", -1, "? ?"},
    {"MyOwnOp() {_output_shapes=[(1),(2),(3)]}", 3, "? ? ?"},
    {"MyOwnOp() {_output_shapes=[]}", 0, ""},
};

TEST(OpOutputsTest, CountAndTypes) {
  for (const OutputsCase& c : kOutputsCases) {
    SCOPED_TRACE(c.node);
    const TestGraph g(absl::StrCat("n = ", c.node));
    EXPECT_EQ(CountOutputs(*g, NodeId(0)), c.count);
    EXPECT_EQ(Types(g, NodeId(0), c.count < 0 ? 2 : c.count), c.types);
  }
}

TEST(OpOutputsTest, PortsBehindTheLastAreUnknown) {
  const TestGraph g("n = Switch() {T=float32}\nm = IdentityN() {T=[int64]}");
  EXPECT_EQ(Types(g, NodeId(0), 4), "float32 float32 ? ?");
  EXPECT_EQ(Types(g, NodeId(1), 3), "int64 ? ?");
}

TEST(OpOutputsTest, PortsMayBeAnySelection) {
  const TestGraph g("n = ParseExample() {Nsparse=2, sparse_types=[float32,string], Tdense=[bool]}");
  const auto types = GetOutputTypes(*g, NodeId(0), {1, 3, 6, 9});
  ASSERT_EQ(types.size(), 4);
  EXPECT_EQ(DataTypeName(types[0].dtype), "int64");
  EXPECT_EQ(DataTypeName(types[1].dtype), "string");
  EXPECT_EQ(DataTypeName(types[2].dtype), "bool");
  EXPECT_EQ(types[3].dtype, kDtInvalid);
  EXPECT_EQ(GetOutputType(*g, {NodeId(0), 2}).dtype, kDtFloat32);
}

// Found by tests/fuzz: swaps were planned for tensors of type -1, which TensorFlow cannot read.
TEST(OpOutputsTest, NegativeTypesAreUnknown) {
  // AttrValue.type = -1, as protobuf writes it: ten bytes.
  const TestGraph g("n = Relu() {T=0x30ffffffffffffffffff01}");
  EXPECT_EQ(GetOutputType(*g, {NodeId(0), 0}).dtype, kDtInvalid);
  EXPECT_FALSE(GetOutputType(*g, {NodeId(0), 0}).is_ref);
}

// However many outputs an attribute claims, only those that are queried cost anything.
TEST(OpOutputsTest, HugeCountsCostNothing) {
  const TestGraph g("n = Split() {T=float32, num_split=2147483647}\nm = MyOwnOp()");
  EXPECT_EQ(CountOutputs(*g, NodeId(0)), 2147483647);
  EXPECT_EQ(GetOutputType(*g, {NodeId(0), 2147483646}).dtype, kDtFloat32);
  EXPECT_EQ(GetOutputType(*g, {NodeId(1), 2147483647}).dtype, kDtInvalid);
}

// Two counts of 31 bits each must not overflow.
TEST(OpOutputsTest, CountsBeyond31BitsCannotBeTold) {
  const TestGraph g(
      "n = ParseExample() {Nsparse=2147483647, sparse_types=[float32], Tdense=[bool]}");
  EXPECT_EQ(CountOutputs(*g, NodeId(0)), -1);
}

}  // namespace
}  // namespace spillway::core
