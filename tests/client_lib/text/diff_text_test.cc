#include "client_lib/text/diff_text.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client_lib/text/parsed.h"

namespace spillway::text {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string DiffText(const std::string& message) {
  return FormatGraphDiff(Parse<v1::GraphDiff>(message));
}

TEST(DiffTextTest, ASentencePerSwap) {
  EXPECT_EQ(DiffText(R"(
      node_count_a: 5 node_count_b: 8 graph_bytes_a: 1024 graph_bytes_b: 2048
      added { name: "out" op: "Identity" in_swap: true }
      added { name: "in" op: "Identity" in_swap: true }
      added { name: "in_1" op: "Identity" in_swap: true }
      rewired { node: "g" input_index: 1 tensor_a: "relu:0" tensor_b: "in:0" in_swap: true }
      rewired { node: "h" input_index: 0 tensor_a: "relu:0" tensor_b: "in_1:0" in_swap: true }
      swaps { tensor: "relu:0" size_bytes: 12897485 swap_out: "out" device: "/cpu:0"
        swap_ins { name: "in" triggers: "t" consumers { node: "g" input_index: 1 } }
        swap_ins { name: "in_1" consumers { node: "h" } consumers { node: "i" input_index: 2 } } }
      bookkeeping_count: 1)"),
            R"(  nodes                5 -> 8 (+3)
  size                 1.00 KiB -> 2.00 KiB
  nodes added          3 Identity
  data inputs rewired  2, all by swaps
  records of Spillway  on 1 node of both graphs

swaps
  relu:0 (12.30 MiB) is kept on /cpu:0 from out;
    in brings it back for g (input 1) when t has ended;
    in_1 brings it back for h (input 0), i (input 2) at once: it has no trigger

1 tensor swapped out, 2 swap-ins, 1 without trigger; other differences: none
)");
}

TEST(DiffTextTest, NodesThatRunAgainAreNoOtherDifferences) {
  const std::string text = DiffText(R"(
      added { name: "lms/recompute_a" op: "Relu" runs_again: "a" }
      rewired { node: "b" input_index: 0 tensor_a: "a:0" tensor_b: "lms/recompute_a:0"
                made_again: true }
      controls_added { node: "update" control: "lms/recompute_a" })");
  EXPECT_THAT(text, HasSubstr("recomputed nodes\n"
                              "  lms/recompute_a (Relu on no stated device) recomputes a\n"));
  EXPECT_THAT(text, HasSubstr("data inputs rewired  1, all by recomputation\n"));
  EXPECT_THAT(text, Not(HasSubstr("other nodes added")));
  EXPECT_THAT(text, Not(HasSubstr("other data inputs rewired")));
  EXPECT_THAT(text, HasSubstr("\n1 node recomputed, no swaps; other differences: none\n"));
}

TEST(DiffTextTest, CallsThatWereInlinedComeFirst) {
  EXPECT_EQ(DiffText(R"(
      node_count_a: 3 node_count_b: 23 graph_bytes_a: 1024 graph_bytes_b: 2048
      inlined_calls: "step" inlined_calls: "loss" inlined_node_count: 18
      added { name: "out" op: "Identity" in_swap: true }
      added { name: "in" op: "Identity" in_swap: true }
      swaps { tensor: "step/relu:0" swap_out: "out" swap_ins { name: "in" triggers: "t"
        consumers { node: "g" input_index: 1 } } })"),
            R"(  nodes          3 -> 23 (+20)
  size           1.00 KiB -> 2.00 KiB
  calls inlined  2, with 18 nodes of their functions
  nodes added    2 Identity

calls inlined
  step
  loss

swaps
  step/relu:0 (size unknown) is kept on no stated device from out;
    in brings it back for g (input 1) when t has ended

2 calls inlined, 1 tensor swapped out, 1 swap-in, 0 without trigger; other differences: none
)");
}

TEST(DiffTextTest, EveryOtherDifferenceIsALineAndCounted) {
  EXPECT_EQ(DiffText(R"(
      node_count_a: 3 node_count_b: 3 graph_bytes_a: 9 graph_bytes_b: 9
      added { name: "n" op: "NoOp" device: "/gpu:0\033" }
      removed { name: "r" op: "Relu" }
      changed { name: "c" op_a: "Relu" op_b: "Elu" device_a: "" device_b: "/gpu:0"
        attributes_added: "x" attributes_changed: "y" attributes_changed: "z" }
      rewired { node: "c" input_index: 0 tensor_a: "r:0" tensor_b: "s:1" }
      rewired { node: "c" input_index: 1 tensor_a: "r:0" }
      controls_added { node: "c" control: "n" }
      controls_removed { node: "c" control: "r" }
      versions_changed: true)"),
            R"(  nodes                  3 -> 3 (+0)
  size                   9 B -> 9 B
  nodes added            1 NoOp
  nodes removed          1 Relu
  nodes changed          1
  data inputs rewired    2
  control edges added    1
  control edges removed  1
  versions               different

other nodes added
  n (NoOp on /gpu:0\x1b)

nodes removed
  r (Relu on no stated device)

nodes changed
  c: op Relu -> Elu; from no stated device to /gpu:0; 1 attribute added: x; 2 attributes changed:
    y, z

other data inputs rewired
  c input 0: r:0 -> s:1
  c input 1: r:0 -> (none)

control edges added
  c waits for n

control edges removed
  c waits for r

no swaps; other differences: 8
)");
}

TEST(DiffTextTest, NodesThatChangedInOneWayAreOneLine) {
  std::string message;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    message += std::string("changed { name: '") + name + "' attributes_added: '_output_shapes' }";
  }
  message += "changed { name: 'f' attributes_removed: 'x' }";
  EXPECT_THAT(
      DiffText(message),
      ::testing::HasSubstr("nodes changed\n"
                           "  a, b, c and 2 other nodes: 1 attribute added: _output_shapes\n"
                           "  f: 1 attribute removed: x\n"));
}

TEST(DiffTextTest, NoDifference) {
  EXPECT_EQ(DiffText("identical: true same_graph: true"), "the files are identical\n");
  EXPECT_EQ(DiffText("same_graph: true reencoded_count: 2 node_count_a: 3 node_count_b: 3"),
            R"(the graphs are the same, the files are encoded differently
  nodes                3 -> 3 (+0)
  size                 0 B -> 0 B
  encoded differently  2 nodes
)");
}

}  // namespace
}  // namespace spillway::text
