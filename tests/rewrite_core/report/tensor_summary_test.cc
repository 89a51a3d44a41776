// Tensors as text.
#include "rewrite_core/report/tensor_summary.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using ::spillway::testing::TestFacts;

TEST(TensorSummaryTest, Shapes) {
  const std::vector<int64_t> dims = {2, kUnknownDim, 3};
  EXPECT_EQ(ShapeText({true, dims}), "[2,?,3]");
  EXPECT_EQ(ShapeText({true, {}}), "[]");
  EXPECT_EQ(ShapeText({false, {}}), "?");
}

TEST(TensorSummaryTest, Types) {
  EXPECT_EQ(TypeText({kDtFloat32, false}, "?"), "float32");
  EXPECT_EQ(TypeText({kDtFloat32, true}, "?"), "float32_ref");
  EXPECT_EQ(TypeText({}, "a type"), "a type");
}

TEST(TensorSummaryTest, KnownAndUnknownSizes) {
  const TestFacts f(R"(
    known = Placeholder() {dtype=float32, shape=(8,4)}
    open = Placeholder() {dtype=float32, shape=(?,4)}
  )");
  const v1::TensorSummary known = Summarize(*f.graph, f.facts.shapes(), f.graph.Output("known"));
  EXPECT_EQ(known.tensor(), "known:0");
  EXPECT_EQ(known.dtype(), "float32");
  EXPECT_EQ(known.shape(), "[8,4]");
  EXPECT_EQ(known.size_bytes(), 8 * 4 * 4);
  const v1::TensorSummary open = Summarize(*f.graph, f.facts.shapes(), f.graph.Output("open"));
  EXPECT_EQ(open.shape(), "[?,4]");
  EXPECT_FALSE(open.has_size_bytes());
  EXPECT_NE(open.size_unknown(), v1::SIZE_UNKNOWN_UNSPECIFIED);
}

// Sixteen dimensions are shown, and long names are truncated.
TEST(TensorSummaryTest, CutsWhatIsLong) {
  for (const int rank : {16, 17}) {
    std::string shape = "1";
    for (int i = 1; i < rank; ++i) shape += ",1";
    const std::string name(300, 'n');
    const TestFacts f(absl::StrCat(name, " = Placeholder() {dtype=float32, shape=(", shape, ")}"));
    const v1::TensorSummary summary = Summarize(*f.graph, f.facts.shapes(), f.graph.Output(name));
    EXPECT_LT(summary.tensor().size(), name.size());
    EXPECT_EQ(summary.shape(), rank == 16 ? absl::StrCat("[", shape, "]")
                                          : absl::StrCat("[", shape.substr(0, 2 * 16 - 1), "]..."));
  }
}

}  // namespace
}  // namespace spillway::core
