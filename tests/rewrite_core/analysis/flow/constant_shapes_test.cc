#include "rewrite_core/analysis/flow/constant_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rewrite_core/analysis/flow/active_nodes.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TestStep;

// The names of the nodes that become constants, and of NoOps behind them, with `end` or other
// fetches.
std::vector<std::string> Found(const std::string& text, v1::Step step = {}) {
  if (step.targets().empty()) step.add_targets("end");
  const TestStep test(text, step);
  test.Compute({Fact::kActiveNodes});
  const ActiveNodes& active = test.facts.active_nodes();
  const Graph& graph = *test.graph;
  std::vector<std::string> names;
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    if (active.constants[id]) names.emplace_back(graph.name(id));
    if (active.only_orders[id]) names.push_back(std::string(graph.name(id)) + " is a NoOp");
  }
  return names;
}

// Of an iterator's output with this shape: all four operations, and one that computes.
std::string Reading(const std::string& shape) {
  return "it = OneShotIterator() {}\n"
         "x = IteratorGetNext(it) {output_types=[float32], output_shapes=[" +
         shape +
         "]}\n"
         "y = Relu(x) {T=float32}\n"
         "one = Shape(y) {T=float32, out_type=int32}\n"
         "two = ShapeN(y, y) {T=float32, N=2, out_type=int32}\n"
         "size = Size(y) {T=float32, out_type=int32}\n"
         "rank = Rank(y) {T=float32}\n"
         "lists = AddN(one, two, two:1) {T=int32, N=3}\n"
         "numbers = AddN(size, rank) {T=int32, N=2}\n"
         "end = Mul(lists, numbers) {T=int32}\n";
}

// `y` was computed only for its shape.
TEST(ConstantShapesTest, AreThoseThatTheGraphStates) {
  EXPECT_THAT(Found(Reading("(4,3)")), ElementsAre("y is a NoOp", "one", "two", "size", "rank"));
  EXPECT_THAT(Found(Reading("(?,3)")), IsEmpty());
}

// TensorFlow's passes do not know the first, and do not trust the others.
TEST(ConstantShapesTest, NotThoseOfTheRequestOrOfWhatIsFed) {
  v1::Step batch;
  batch.set_batch_size(4);
  EXPECT_THAT(Found(Reading("(?,3)"), batch), IsEmpty());
  v1::Step fed;
  v1::Feed& feed = *fed.add_feeds();
  feed.set_name("x");
  for (int64_t dim : {4, 3}) feed.add_dims(dim);
  EXPECT_THAT(Found(Reading("(4,3)"), fed), IsEmpty());
  EXPECT_THAT(Found("x = Placeholder() {dtype=float32, shape=(4,3)}\n"
                    "end = Shape(x) {T=float32, out_type=int32}\n"),
              IsEmpty());
}

TEST(ConstantShapesTest, NotWithoutGrapplerAndNotIfFed) {
  v1::Step step;
  step.set_grappler(v1::GRAPPLER_AS_IS);
  EXPECT_THAT(Found(Reading("(4,3)"), step), IsEmpty());
  v1::Step fed;
  for (const char* name : {"size", "rank"}) fed.add_feeds()->set_name(name);
  EXPECT_THAT(Found(Reading("(4,3)"), fed), ElementsAre("one", "two"));
}

// A fetched node is computed, even if others read only its shape.
TEST(ConstantShapesTest, WhatIsFetchedIsComputed) {
  v1::Step step;
  for (const char* name : {"end", "y"}) step.add_targets(name);
  EXPECT_THAT(Found(Reading("(4,3)"), step), ElementsAre("one", "two", "size", "rank"));
}

}  // namespace
}  // namespace spillway::core
