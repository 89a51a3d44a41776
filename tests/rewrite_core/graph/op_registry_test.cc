#include "rewrite_core/graph/op_registry.h"

#include <string>

#include "gtest/gtest.h"

namespace spillway::core {
namespace {

TEST(OpRegistryTest, KnowsOpsByTheirExactName) {
  EXPECT_TRUE(FindOp("Conv2D").known);
  EXPECT_EQ(FindOp("Conv2D").name, "Conv2D");
  for (const char* name : {"", "conv2d", "Conv2", "Conv2DX", "MyOwnOp", "\xff"}) {
    EXPECT_FALSE(FindOp(name).known) << name;
    EXPECT_EQ(FindOp(name).name, "");
    EXPECT_EQ(FindOp(name).fixed_output_count, -1);
  }
}

// TensorFlow's op definitions (array_ops.cc, nn_ops.cc, control_flow_ops.cc, ...), read by hand.
TEST(OpRegistryTest, OutputsOfWellKnownOps) {
  struct Case {
    const char* op;
    const char* outputs;
    int fixed_count;
  };
  constexpr Case kCases[] = {
      {"NoOp", "", 0},
      {"Conv2D", "T", 1},
      {"Const", "dtype", 1},
      {"VariableV2", "&dtype", 1},
      {"Assign", "&T", 1},
      {"ReadVariableOp", "dtype", 1},
      {"VarHandleOp", "resource", 1},
      {"FusedBatchNormV3", "T U U U U U", 6},
      {"Switch", "T T", 2},
      {"Merge", "T int32", 2},
      {"Shape", "out_type=int32", 1},
      {"ArgMax", "output_type=int64", 1},
      {"Cast", "DstT", 1},
      {"TopKV2", "T index_type=int32", 2},
      {"Split", "num_split*T", -1},
      {"Unpack", "num*T", -1},
      {"ShapeN", "N*out_type=int32", -1},
      {"IdentityN", "[]T", -1},
      {"While", "[]T", -1},
      {"ParseExample", "Nsparse*int64 []sparse_types Nsparse*int64 []Tdense", -1},
      // Swap nodes of the encoding COPY; registered only by GPU builds of TensorFlow.
      {"_CopyFromGpuToHost", "T", 1},
      {"_CopyFromHostToGpu", "T", 1},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(FindOp(c.op).outputs, c.outputs) << c.op;
    EXPECT_EQ(FindOp(c.op).fixed_output_count, c.fixed_count) << c.op;
  }
}

TEST(OpRegistryTest, ControlFlow) {
  struct Case {
    const char* op;
    ControlFlow kind;
  };
  constexpr Case kCases[] = {
      {"Switch", ControlFlow::kSwitch},     {"RefSwitch", ControlFlow::kSwitch},
      {"_SwitchN", ControlFlow::kSwitch},   {"Merge", ControlFlow::kMerge},
      {"RefMerge", ControlFlow::kMerge},    {"Enter", ControlFlow::kEnter},
      {"RefEnter", ControlFlow::kEnter},    {"Exit", ControlFlow::kExit},
      {"RefExit", ControlFlow::kExit},      {"NextIteration", ControlFlow::kNextIteration},
      {"LoopCond", ControlFlow::kLoopCond}, {"RefNextIteration", ControlFlow::kNextIteration},
      {"If", ControlFlow::kNone},           {"While", ControlFlow::kNone},
      {"Identity", ControlFlow::kNone},     {"MyOwnSwitch", ControlFlow::kNone},
  };
  for (const Case& c : kCases) EXPECT_EQ(FindOp(c.op).control_flow, c.kind) << c.op;
}

TEST(OpRegistryTest, WhichOpsMayHandTheirInputsBufferOn) {
  for (const char* op : {"Identity", "Reshape", "Switch", "Merge", "Squeeze", "StopGradient",
                         "Enter", "Exit", "ReadVariableOp", "_SwitchN"}) {
    EXPECT_NE(FindOp(op).forwards, Forwards::kNo) << op;
  }
  for (const char* op : {"Conv2D", "MatMul", "Relu", "Const", "MyOwnOp"}) {
    EXPECT_EQ(FindOp(op).forwards, Forwards::kNo) << op;
  }
  for (const char* op : {"Pad", "PadV2", "Transpose", "ConjugateTranspose"}) {
    EXPECT_EQ(FindOp(op).forwards, Forwards::kByInput1) << op;
  }
  for (const char* op : {"Slice", "Sum", "Cast", "Concat"}) {
    EXPECT_EQ(FindOp(op).forwards, Forwards::kMaybe) << op;
  }
  for (const char* op : {"Identity", "Reshape", "Switch", "Merge", "Bitcast"}) {
    EXPECT_EQ(FindOp(op).forwards, Forwards::kAlways) << op;
  }
}

// From TensorFlow's documentation of the ops.
TEST(OpRegistryTest, WhichOpsMayBeRecomputed) {
  for (const char* op :
       {"Relu", "AddV2", "FusedBatchNormV3", "MaxPool", "Softmax", "Cast", "Mean", "ConcatV2",
        "Reshape", "Identity", "SelectV2", "GreaterEqual", "Switch", "Merge"}) {
    EXPECT_EQ(FindOp(op).run_again, RunAgain::kSameBits) << op;
  }
  for (const char* op : {"Conv2D", "MatMul", "BatchMatMulV2", "Einsum", "Conv2DBackpropInput",
                         "ReluGrad", "StatelessRandomUniform"}) {
    EXPECT_EQ(FindOp(op).run_again, RunAgain::kSameValue) << op;
  }
  for (const char* op : {"RandomUniform",
                         "VariableV2",
                         "ReadVariableOp",
                         "AssignSub",
                         "ApplyMomentum",
                         "IteratorGetNext",
                         "Placeholder",
                         "PlaceholderWithDefault",
                         "InplaceAdd",
                         "If",
                         "StatelessIf",
                         "PartitionedCall",
                         "RefSwitch",
                         "RefMerge",
                         "Enter",
                         "NextIteration",
                         "PyFunc",
                         "PyFuncStateless",
                         "Print",
                         "Assert",
                         "UnsortedSegmentSum",
                         "Conv2DBackpropFilter",
                         "_Send",
                         "NoOp",
                         "HorovodAllreduce",
                         "MyOwnOp"}) {
    EXPECT_EQ(FindOp(op).run_again, RunAgain::kNever) << op;
  }
}

TEST(OpRegistryTest, WhichOpsLeaveTheirOutputsOnTheHost) {
  for (const char* op : {"Shape", "ShapeN", "Size", "Rank", "BroadcastGradientArgs"}) {
    EXPECT_TRUE(FindOp(op).host_outputs) << op;
  }
  for (const char* op : {"Conv2D", "Reshape", "ArgMax", "MyOwnOp"}) {
    EXPECT_FALSE(FindOp(op).host_outputs) << op;
  }
}

TEST(OpRegistryTest, WhatOpsWithSeveralOutputsCallThem) {
  EXPECT_EQ(FindOp("TopKV2").output_names, "values indices");
  EXPECT_EQ(FindOp("Relu").output_names, "");
  EXPECT_EQ(FindOp("MyOwnOp").output_names, "");
}

TEST(OpRegistryTest, WhichOpsHaveStateOrAnEffect) {
  for (const char* op : {"AssignAddVariableOp", "RandomUniform", "Assert", "VarHandleOp"}) {
    EXPECT_TRUE(FindOp(op).is_stateful) << op;
  }
  for (const char* op : {"Relu", "Const", "Identity", "MyOwnOp"}) {
    EXPECT_FALSE(FindOp(op).is_stateful) << op;
  }
}

// The table is searched by bisection, so every row must be in order: each is found.
TEST(OpRegistryTest, EveryRowIsFound) {
  constexpr struct {
    const char* name;
    const char* outputs;
    const char* output_names;
    bool is_stateful;
    Forwards forwards;
    RunAgain run_again;
  } kRows[] = {
#define SPILLWAY_OP(name, outputs, output_names, is_stateful, forwards, run_again) \
  {name, outputs, output_names, is_stateful, Forwards::forwards, RunAgain::run_again},
#include "rewrite_core/graph/op_table.inc"
#undef SPILLWAY_OP
  };
  int rows = 0;
  for (const auto& row : kRows) {
    ++rows;
    EXPECT_TRUE(FindOp(row.name).known) << row.name;
    EXPECT_EQ(FindOp(row.name).outputs, row.outputs) << row.name;
    EXPECT_EQ(FindOp(row.name).output_names, row.output_names) << row.name;
    EXPECT_EQ(FindOp(row.name).is_stateful, row.is_stateful) << row.name;
    EXPECT_EQ(FindOp(row.name).forwards, row.forwards) << row.name;
    EXPECT_EQ(FindOp(row.name).run_again, row.run_again) << row.name;
  }
  EXPECT_GT(rows, 1500);  // TensorFlow 2.15 has about 1,850.
}

}  // namespace
}  // namespace spillway::core
