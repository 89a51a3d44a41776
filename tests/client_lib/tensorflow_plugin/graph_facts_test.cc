#include "client_lib/tensorflow_plugin/graph_facts.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client_lib/tensorflow_plugin/placed_graph.h"

namespace spillway::tensorflow_plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kGpuName[] = "/job:localhost/replica:0/task:0/device:GPU:0";

std::string Node(const std::string& name, const std::string& op, const std::string& device = "") {
  std::string node, graph;
  AppendBytesField(1, name, &node);
  AppendBytesField(2, op, &node);
  if (!device.empty()) AppendBytesField(4, device, &node);
  AppendBytesField(1, node, &graph);
  return graph;
}

TEST(GraphFactsTest, ARealGraph) {
  const GraphFacts facts = ReadGraph(Placed(ReadTestGraph("cond_v1/graph.pb"), "GPU:0"), {}, {});
  EXPECT_TRUE(facts.ok);
  EXPECT_TRUE(facts.trains);
  EXPECT_FALSE(facts.has_swaps);
  EXPECT_FALSE(facts.is_function);
  EXPECT_THAT(facts.devices, ElementsAre(kGpuName));
  EXPECT_THAT(facts.targets, IsEmpty());
}

TEST(GraphFactsTest, WhatTrains) {
  for (const char* op : {"ReluGrad", "Conv2DBackpropInput", "ApplyMomentum", "ResourceApplyAdam",
                         "AssignSubVariableOp", "_FusedBatchNormGradEx"}) {
    EXPECT_TRUE(ReadGraph(Node("n", op), {}, {}).trains) << op;
  }
  for (const char* op : {"MatMul", "AssignVariableOp", "Assign", "AssignAddVariableOp", "Relu"}) {
    EXPECT_FALSE(ReadGraph(Node("n", op), {}, {}).trains) << op;
  }
}

// A call of a function in the library, as Grappler shows those that XLA compiles: no body.
std::string XlaCall(const std::string& effect, const std::string& value = "\x28\x01",
                    const std::string& attribute = "_XlaMustCompile") {
  std::string signature, entry, function, library, graph = Node("call", "StatefulPartitionedCall");
  AppendBytesField(1, "step", &signature);
  AppendBytesField(20, "loss/ReadVariableOp", &signature);
  AppendBytesField(20, effect, &signature);
  AppendBytesField(1, attribute, &entry);
  AppendBytesField(2, value, &entry);
  AppendBytesField(1, signature, &function);
  AppendBytesField(5, entry, &function);
  AppendBytesField(1, function, &library);
  AppendBytesField(2, library, &graph);
  return graph;
}

TEST(GraphFactsTest, WhatTrainsByXla) {
  // As Keras 2.15, 3.3 and 3.15 name them; then those of a validation.
  for (const char* effect :
       {"SGD_1/AssignSubVariableOp_3", "SGD/AssignAddVariableOp", "adam/AssignAddVariableOp_12",
        "AssignSubVariableOp", "Adam/Adam/update/ResourceApplyAdam"}) {
    const GraphFacts facts = ReadGraph(XlaCall(effect), {}, {});
    EXPECT_TRUE(facts.ok && facts.xla_trains && !facts.trains) << effect;
  }
  for (const char* effect : {"AssignAddVariableOp_2", "AssignVariableOp_3",
                             "dropout/ReadVariableOp", "SGD/AssignVariableOp"}) {
    EXPECT_FALSE(ReadGraph(XlaCall(effect), {}, {}).xla_trains) << effect;
  }
  const std::string off("\x28\x00", 2);
  EXPECT_FALSE(ReadGraph(XlaCall("AssignSubVariableOp", off), {}, {}).xla_trains);
  EXPECT_FALSE(
      ReadGraph(XlaCall("AssignSubVariableOp", "\x28\x01", "_noinline"), {}, {}).xla_trains);
}

TEST(GraphFactsTest, SwapsByTheirNames) {
  EXPECT_TRUE(ReadGraph(Node("lms/swapin_x_0", "Identity"), {}, {}).has_swaps);
  EXPECT_FALSE(ReadGraph(Node("swap", "Identity"), {}, {}).has_swaps);
}

TEST(GraphFactsTest, FedNodesAreThoseOfSessions) {
  const std::string session = Node("x", "Placeholder") + Node("h", "Relu") + Node("l", "Mean");
  const GraphFacts facts = ReadGraph(session, {"x", "h", "l"}, {"l:0"});
  EXPECT_THAT(facts.targets, ElementsAre("h", "l"));
  EXPECT_THAT(facts.fed_ops, ElementsAre("h"));
  const GraphFacts function = ReadGraph(session + Node("a", "_Arg"), {"x", "h", "l", "a"}, {"l"});
  EXPECT_TRUE(function.is_function);
  EXPECT_THAT(function.targets, ElementsAre("h", "l"));
  EXPECT_THAT(function.fed_ops, IsEmpty());
}

TEST(GraphFactsTest, Devices) {
  EXPECT_TRUE(IsOfType(kGpuName, "GPU"));
  EXPECT_FALSE(IsOfType(kGpuName, "CPU"));
  EXPECT_TRUE(IsOfType("/gpu:3", "GPU"));
  EXPECT_FALSE(IsOfType("", "CPU"));
  for (const char* name : {"GPU:0", "/device:GPU:0", "gpu:0", kGpuName}) {
    EXPECT_TRUE(IsDevice(kGpuName, name)) << name;
  }
  EXPECT_FALSE(IsDevice(kGpuName, "GPU:1"));
  EXPECT_FALSE(IsDevice(kGpuName, ""));
  EXPECT_EQ(TaskOf(kGpuName), kTask);
}

TEST(GraphFactsTest, NodesMoveThereAndBack) {
  const std::string graph = Placed(ReadTestGraph("cond_v1/graph.pb"), "CPU:0");
  const std::string moved = MoveNodes(graph, "CPU:0", "GPU:0");
  EXPECT_THAT(ReadGraph(moved, {}, {}).devices, ElementsAre(kGpuName));
  EXPECT_TRUE(MoveNodes(moved, "GPU:0", "CPU:0") == graph);  // Too long to print.
  EXPECT_TRUE(MoveNodes(graph, "CPU:1", "GPU:0") == graph);
}

TEST(GraphFactsTest, DamagedBytes) {
  const std::string graph = Node("a", "ReluGrad", kGpuName) + Node("b", "Relu", kGpuName);
  const size_t boundary = Node("a", "ReluGrad", kGpuName).size();
  for (size_t size = 1; size < graph.size(); ++size) {
    EXPECT_EQ(ReadGraph(graph.substr(0, size), {}, {}).ok, size == boundary) << size;
  }
  // A length that no bytes follow, also where the sum would wrap around.
  EXPECT_FALSE(
      ReadGraph(std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11), {}, {}).ok);
  EXPECT_FALSE(ReadGraph(std::string(20, '\xff'), {}, {}).ok);
}

}  // namespace
}  // namespace spillway::tensorflow_plugin
