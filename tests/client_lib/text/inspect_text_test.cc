#include "client_lib/text/inspect_text.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client_lib/text/parsed.h"

namespace spillway::text {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string InspectText(const std::string& message, int top = 10) {
  return FormatGraphSummary(Parse<v1::GraphSummary>(message), top);
}

TEST(InspectTextTest, FactsFirst) {
  EXPECT_EQ(InspectText(R"(
      size_bytes: 2048 node_count: 4 data_edge_count: 3 control_edge_count: 1 level_count: 2
      longest_path_begin: "a" longest_path_end: "b" producer_version: 26
      variables { name: "VariableV2" count: 2 } switch_count: 2 merge_count: 1 call_count: 1
      rewritten_by: REWRITTEN_BY_OTHER swap_out_count: 1 swap_in_count: 2
      tensor_count: 3 known_size_count: 1 known_size_bytes: 100
      unknown_sizes { reason: SIZE_UNKNOWN_DIM count: 2 })"),
            R"(  size          2.00 KiB
  nodes         4
  edges         3 data, 1 control
  levels        2, the longest path from a to b
  version       producer 26
  rewritten     by another program (TFLMS): 1 swap-out, 2 swap-ins
  variables     2 VariableV2
  updates       none
  conditionals  2 Switch, 1 Merge, 1 function call
  loop frames   none
  functions     none
  placeholders  none
  tensors       3 read by some node; 1 of known size, 100 B together
                2 of unknown size: with an unknown dimension (give step.batch_size or step.feeds)
)");
}

constexpr char kTables[] = R"(
    devices { name: "" count: 2 } devices { name: "/gpu:0\033[1m" count: 1 }
    scopes { name: "gradients" count: 5 } scopes { name: "" count: 1 }
    frames { name: "inner" parent: "outer" node_count: 3 }
    functions { name: "f" node_count: 7 }
    placeholders { tensor: "x:0" dtype: "float32" shape: "[?,4]" size_unknown: SIZE_UNKNOWN_DIM }
    largest_tensors { tensor: "y:0" size_bytes: 512 }
    largest_tensors { tensor: "z:0" size_bytes: 256 })";

TEST(InspectTextTest, TablesOfWhatThereIs) {
  const std::string text = InspectText(kTables);
  EXPECT_THAT(text,
              AllOf(HasSubstr("  (none given)       2\n"), HasSubstr("  /gpu:0\\x1b[1m      1\n"),
                    HasSubstr("  gradients       5\n  (no scope)      1\n"),
                    HasSubstr("  inner           3      outer\n"), HasSubstr("  f             7\n"),
                    HasSubstr("  x:0          float32  [?,4]     -\n")));
  EXPECT_THAT(text, AllOf(HasSubstr("  y:0                -      -  512 B\n"),
                          Not(HasSubstr("op type")), Not(HasSubstr("more"))));
}

TEST(InspectTextTest, WhatIsLeftOutIsCounted) {
  const std::string text = InspectText(kTables, 1);
  EXPECT_THAT(text, AllOf(HasSubstr("  gradients       5\n  ... 1 more\n"), HasSubstr("512 B\n"),
                          Not(HasSubstr("256 B"))));
  EXPECT_THAT(InspectText(kTables, 0), Not(HasSubstr("gradients")));
}

}  // namespace
}  // namespace spillway::text
