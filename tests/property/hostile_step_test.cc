// Graphs made to be expensive or to confuse for shape inference and the simulation: slow ones are
// compared with the floor (protobuf's own parsing and serializing of the same bytes), large ones
// with a memory limit, and odd ones with TensorFlow's documentation.
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/protobuf/arena.h"
#include "gtest/gtest.h"
#include "rewrite_core/analysis/shapes/shapes.h"
#include "rewrite_core/graph/attr_entry.h"
#include "rewrite_core/inspect/explore.h"
#include "rewrite_core/inspect/inspect.h"
#include "rewrite_core/inspect/simulate_graph.h"
#include "rewrite_core/rewriter.h"
#include "tests/testing/matchers.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/sanitizers.h"

namespace spillway::testing {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int kDtFloat = 1, kDtInt32 = 3, kDtResource = 20;
// Linear work takes 5 to 60 floors, under sanitizers too; quadratic work thousands.
constexpr double kFloors = 300;

int64_t PeakMemory() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

// A little longer than protobuf takes, so that tiny graphs do not divide by nothing.
absl::Duration Floor(const std::string& bytes) {
  const absl::Time begin = absl::Now();
  google::protobuf::Arena arena;
  auto* graph = google::protobuf::Arena::CreateMessage<GraphDef>(&arena);
  EXPECT_TRUE(graph->ParseFromString(bytes));
  std::string copy;
  graph->SerializeToString(&copy);
  return absl::Now() - begin + absl::Milliseconds(5);
}

v1::SimulateOptions WithMemory() {
  v1::SimulateOptions options;
  options.set_memory(true);
  return options;
}

absl::StatusOr<v1::SimulateReport> Simulate(const std::string& bytes,
                                            const v1::SimulateOptions& options = WithMemory()) {
  return core::SimulateGraph(bytes, options, core::DefaultLimits(), core::StopToken());
}

// Runs `work` and holds it to a time and to memory.
template <typename Work>
auto Bounded(const std::string& bytes, int64_t most_memory, const Work& work) {
  const absl::Duration floor = Floor(bytes);
  const int64_t before = PeakMemory();
  const absl::Time begin = absl::Now();
  auto result = work();
  EXPECT_LT((absl::Now() - begin) / floor, kFloors);
  // It keeps freed memory for a while (quarantine_size_mb, 256 MiB by default), and has redzones
  // around the rest.
  if (kAddressSanitizer) most_memory = most_memory * 3 / 2 + 256 * kMiB;
  EXPECT_LT((PeakMemory() - before) / kMiB, most_memory / kMiB);
  return result;
}

// ---- Making graphs ----

NodeDef* Add(GraphDef* graph, const std::string& name, const std::string& op,
             const std::vector<std::string>& inputs = {}, const std::string& device = "/gpu:0") {
  NodeDef* node = graph->add_node();
  node->set_name(name);
  node->set_op(op);
  for (const std::string& input : inputs) node->add_input(input);
  node->set_device(device);
  return node;
}

void SetType(NodeDef* node, const std::string& attr, int dtype) {
  (*node->mutable_attr())[attr].set_type(dtype);
}

void SetShape(NodeDef* node, const std::vector<int64_t>& dims) {
  TensorShapeProto* shape = (*node->mutable_attr())["shape"].mutable_shape();
  for (int64_t dim : dims) shape->add_dim()->set_size(dim);
}

NodeDef* AddPlaceholder(GraphDef* graph, const std::string& name, int dtype,
                        const std::vector<int64_t>& dims) {
  NodeDef* node = Add(graph, name, "Placeholder");
  SetType(node, "dtype", dtype);
  SetShape(node, dims);
  return node;
}

template <typename Int>
void AddConst(GraphDef* graph, const std::string& name, int dtype, const std::vector<int64_t>& dims,
              const std::vector<Int>& items) {
  NodeDef* node = Add(graph, name, "Const");
  SetType(node, "dtype", dtype);
  TensorProto* tensor = (*node->mutable_attr())["value"].mutable_tensor();
  tensor->set_dtype(dtype);
  for (int64_t dim : dims) tensor->mutable_tensor_shape()->add_dim()->set_size(dim);
  tensor->set_tensor_content(
      std::string(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(Int)));
}

void AddInts(GraphDef* graph, const std::string& name, const std::vector<int32_t>& items) {
  AddConst<int32_t>(graph, name, kDtInt32, {static_cast<int64_t>(items.size())}, items);
}

void AddInt(GraphDef* graph, const std::string& name, int32_t item) {
  AddConst<int32_t>(graph, name, kDtInt32, {}, {item});
}

// A megabyte or so of unused attributes. As many as a node may have beside a dozen of its own, or
// `count`.
void AddManyAttrs(NodeDef* node, int count) {
  for (int i = 0; i < std::min(count, core::kMaxAttributes - 12); ++i) {
    (*node->mutable_attr())[absl::StrCat("attribute_", i)].set_i(i);
  }
}

// The shape of `tensor` as it is listed.
std::string ShapeOf(const GraphDef& graph, const std::string& tensor) {
  std::string shape = "(absent)";
  v1::InspectOptions options;
  options.set_tensors(true);
  const absl::Status status =
      core::Inspect(WriteProto(graph), options, core::DefaultLimits(), core::StopToken(),
                    [&](v1::InspectResponse&& part) {
                      for (const v1::TensorSummary& summary : part.tensors().tensors()) {
                        if (summary.tensor() == tensor)
                          shape = summary.has_shape() ? summary.shape() : "?";
                      }
                      return true;
                    });
  return status.ok() ? shape : status.ToString();
}

// ---- Odd values ----

// A dimension of 0 makes the number of elements known, though that of a part is not.
TEST(OddValues, PartsOfUnknownSizeOfNothing) {
  GraphDef graph;
  AddPlaceholder(&graph, "a", kDtInt32, {-1, 0});
  SetType(Add(&graph, "b", "Placeholder"), "dtype", kDtInt32);
  AddInt(&graph, "axis", 0);
  NodeDef* n = Add(&graph, "n", "ConcatV2", {"a", "b", "axis"});
  SetType(n, "T", kDtInt32);
  (*n->mutable_attr())["N"].set_i(2);
  EXPECT_EQ(ShapeOf(graph, "n:0"), "[?,0]");
}

// An index that fits in no tensor.
TEST(OddValues, LargestIndexOfDynamicStitch) {
  GraphDef graph;
  AddInt(&graph, "indices", std::numeric_limits<int32_t>::max());
  AddInt(&graph, "data", 7);
  NodeDef* n = Add(&graph, "n", "DynamicStitch", {"indices", "data"});
  SetType(n, "T", kDtInt32);
  (*n->mutable_attr())["N"].set_i(1);
  EXPECT_EQ(ShapeOf(graph, "n:0"), "[?]");
}

// Nodes whose lists of outputs are empty, or are said to be: they have no last element.
TEST(OddValues, NodesWithoutOutputs) {
  for (const char* op : {"RaggedGather", "RaggedTensorFromVariant", "Split", "Unpack",
                         "DecodeProtoV2", "ParseExample", "Batch", "ShapeN", "IdentityN"}) {
    GraphDef graph;
    AddPlaceholder(&graph, "x", kDtFloat, {3});
    Add(&graph, "n", op, {"x", "x", "x"});
    EXPECT_EQ(ShapeOf(graph, "x:0"), "[3]") << op;
  }
}

TEST(OddValues, SlicesWithHugeStrides) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  GraphDef graph;
  AddPlaceholder(&graph, "x", 10 /* bool */, {0, most});
  AddConst<int64_t>(&graph, "begin", 9, {2}, {0, 0});
  AddConst<int64_t>(&graph, "end", 9, {2}, {0, most});
  AddConst<int64_t>(&graph, "strides", 9, {2}, {1, most - 1});
  SetType(Add(&graph, "n", "StridedSlice", {"x", "begin", "end", "strides"}), "Index", 9);
  EXPECT_EQ(ShapeOf(graph, "n:0"), "[0,2]");
}

TEST(OddValues, PoolingOfNearlyTwoToThe63) {
  GraphDef graph;
  AddPlaceholder(&graph, "x", kDtFloat, {0, std::numeric_limits<int64_t>::max(), 4, 1});
  NodeDef* n = Add(&graph, "n", "FractionalMaxPool", {"x"});
  SetType(n, "T", kDtFloat);
  for (float ratio : {1.0f, 1.0f, 2.0f, 1.0f}) {
    (*n->mutable_attr())["pooling_ratio"].mutable_list()->add_f(ratio);
  }
  EXPECT_EQ(ShapeOf(graph, "n:0"), "[0,?,2,1]");
}

// Three times this, and one, is 2^64: no outputs, in 64 bits.
TEST(OddValues, PathsThatWrapAround) {
  GraphDef graph;
  AddPlaceholder(&graph, "x", kDtFloat, {5, 2, 9});
  AddPlaceholder(&graph, "lengths", kDtInt32, {2});
  NodeDef* n = Add(&graph, "n", "CTCBeamSearchDecoder", {"x", "lengths"});
  (*n->mutable_attr())["top_paths"].set_i(6148914691236517205);
  EXPECT_EQ(ShapeOf(graph, "x:0"), "[5,2,9]");
}

TEST(OddValues, BatchDimensionsOfAGather) {
  for (int64_t dims : {int64_t{1} << 31, (int64_t{1} << 31) - 1, int64_t{1} << 32, int64_t{-1}}) {
    GraphDef graph;
    NodeDef* variable = Add(&graph, "v", "VarHandleOp");
    SetType(variable, "dtype", kDtFloat);
    SetShape(variable, {8, 4});
    AddPlaceholder(&graph, "i", kDtInt32, {3});
    NodeDef* n = Add(&graph, "n", "ResourceGather", {"v", "i"});
    SetType(n, "dtype", kDtFloat);
    (*n->mutable_attr())["batch_dims"].set_i(dims);
    EXPECT_EQ(ShapeOf(graph, "n:0"), "?") << dims;
  }
}

// ---- Attributes that many nodes read ----

constexpr int kMany = 30'000;

TEST(LongAttributes, OfAQueueWithManyReaders) {
  GraphDef graph;
  for (const char* name : {"queue", "other"}) {
    NodeDef* queue = Add(&graph, name, "FIFOQueueV2", {}, "");
    AddManyAttrs(queue, kMany);
    (*queue->mutable_attr())["shapes"].mutable_list()->add_shape()->add_dim()->set_size(4);
  }
  for (int i = 0; i < kMany; ++i) {
    NodeDef* node =
        Add(&graph, absl::StrCat("d", i), "QueueDequeueV2", {i % 2 == 0 ? "queue" : "other"}, "");
    (*node->mutable_attr())["component_types"].mutable_list()->add_type(kDtFloat);
  }
  const std::string bytes = WriteProto(graph);
  EXPECT_THAT(Bounded(bytes, 400 * kMiB, [&] { return Simulate(bytes); }), IsOk());
  EXPECT_EQ(ShapeOf(graph, "d9:0"), "[4]");
}

TEST(LongAttributes, OfANodeThatManyFeedsAndTargetsName) {
  GraphDef graph;
  NodeDef* node = Add(&graph, "n", "IdentityN", {"x"});
  AddManyAttrs(node, kMany);
  SetType(Add(&graph, "x", "Placeholder"), "dtype", kDtFloat);
  for (int i = 0; i < kMany; ++i) {
    (*node->mutable_attr())["T"].mutable_list()->add_type(kDtFloat);
  }
  v1::SimulateOptions options;
  for (int i = 0; i < kMany; ++i) {
    options.mutable_step()->add_targets(absl::StrCat("n:", i));
    options.mutable_step()->add_feeds()->set_name(absl::StrCat("n:", i));
  }
  const std::string bytes = WriteProto(graph);
  EXPECT_THAT(Bounded(bytes, 400 * kMiB, [&] { return Simulate(bytes, options); }), IsOk());
}

// ---- Functions ----

FunctionDef* AddFunction(GraphDef* graph, const std::string& name,
                         const std::vector<std::string>& arguments) {
  FunctionDef* function = graph->mutable_library()->add_function();
  function->mutable_signature()->set_name(name);
  for (const std::string& argument : arguments) {
    OpDef::ArgDef* arg = function->mutable_signature()->add_input_arg();
    arg->set_name(argument);
    arg->set_type(kDtFloat);
  }
  return function;
}

void AddResult(FunctionDef* function, const std::string& name, const std::string& of) {
  OpDef::ArgDef* arg = function->mutable_signature()->add_output_arg();
  arg->set_name(name);
  arg->set_type(kDtFloat);
  (*function->mutable_ret())[name] = of;
}

void SetFunction(NodeDef* node, const std::string& attr, const std::string& name) {
  (*node->mutable_attr())[attr].mutable_func()->set_name(name);
}

// Calls of `function` with as many different shapes.
void AddCalls(GraphDef* graph, const std::string& function, int count) {
  for (int i = 0; i < count; ++i) {
    AddPlaceholder(graph, absl::StrCat("x", i), kDtFloat, {i + 1});
    NodeDef* call =
        Add(graph, absl::StrCat("call", i), "PartitionedCall", {absl::StrCat("x", i)}, "");
    SetFunction(call, "f", function);
    (*call->mutable_attr())["Tout"].mutable_list()->add_type(kDtFloat);
  }
}

// A name of a megabyte costs the graph a megabyte once; it must not be kept for every call.
TEST(Functions, OfLongNamesCalledOften) {
  GraphDef graph;
  const std::string name(kMiB, 'g');
  FunctionDef* inner = AddFunction(&graph, name, {"a"});
  AddResult(inner, "r", "a");
  FunctionDef* outer = AddFunction(&graph, "f", {"a"});
  NodeDef* call = outer->add_node_def();
  call->set_name("call");
  call->set_op("PartitionedCall");
  call->add_input("a");
  SetFunction(call, "f", name);
  (*call->mutable_attr())["Tout"].mutable_list()->add_type(kDtFloat);
  AddResult(outer, "r", "call:output:0");
  AddCalls(&graph, "f", 1000);
  const std::string bytes = WriteProto(graph);
  EXPECT_THAT(Bounded(bytes, 200 * kMiB, [&] { return Simulate(bytes); }), IsOk());
  EXPECT_EQ(ShapeOf(graph, "call41:0"), "[42]");
}

TEST(Functions, OfManyResultsCalledOften) {
  GraphDef graph;
  FunctionDef* function = AddFunction(&graph, "f", {"a"});
  for (int i = 0; i < 10'000; ++i) AddResult(function, absl::StrCat("r", i), "a");
  AddCalls(&graph, "f", 10'000);
  const std::string bytes = WriteProto(graph);
  EXPECT_THAT(Bounded(bytes, 400 * kMiB, [&] { return Simulate(bytes); }), IsOk());
}

// Each branch is the same call, known already: looking that up takes time all the same.
TEST(Functions, OfManyArgumentsInManyBranches) {
  GraphDef graph;
  constexpr int kArguments = 60'000;
  std::vector<std::string> arguments, inputs = {"index"};
  AddInt(&graph, "index", 0);
  AddPlaceholder(&graph, "x", kDtFloat, {4});
  for (int i = 0; i < kArguments; ++i) {
    arguments.push_back(absl::StrCat("a", i));
    inputs.push_back("x");
  }
  FunctionDef* function = AddFunction(&graph, "f", arguments);
  for (int i = 0; i < kArguments; ++i) AddResult(function, absl::StrCat("r", i), arguments[i]);
  NodeDef* node = Add(&graph, "case", "Case", inputs, "");
  for (int i = 0; i < kArguments; ++i) {
    (*node->mutable_attr())["branches"].mutable_list()->add_func()->set_name("f");
    (*node->mutable_attr())["Tout"].mutable_list()->add_type(kDtFloat);
  }
  const std::string bytes = WriteProto(graph);
  EXPECT_THAT(Bounded(bytes, 400 * kMiB, [&] { return Simulate(bytes); }), IsOk());
}

// In a body, of as many functions that take next to nothing.
TEST(Functions, OfManyInputsAndManyBranches) {
  GraphDef graph;
  constexpr int kBranches = 30'000;
  FunctionDef* function = AddFunction(&graph, "f", {"a"});
  NodeDef* node = function->add_node_def();
  node->set_name("case");
  node->set_op("Case");
  node->add_input("a");
  for (int i = 0; i < kBranches; ++i) {
    const std::string name = absl::StrCat("b", i);
    AddResult(AddFunction(&graph, name, {"x"}), "y", "x");
    node->add_input("a");
    (*node->mutable_attr())["branches"].mutable_list()->add_func()->set_name(name);
  }
  (*node->mutable_attr())["Tout"].mutable_list()->add_type(kDtFloat);
  AddResult(function, "r", "case:output:0");
  AddCalls(&graph, "f", 1);
  const std::string bytes = WriteProto(graph);
  EXPECT_THAT(Bounded(bytes, 400 * kMiB, [&] { return Simulate(bytes); }), IsOk());
}

// A body of few nodes that are long, for as many shapes as there are calls.
TEST(Functions, OfLongNodesCalledOften) {
  GraphDef graph;
  FunctionDef* function = AddFunction(&graph, "f", {"a"});
  NodeDef* node = function->add_node_def();
  node->set_name("n");
  node->set_op("AddN");
  for (int i = 0; i < kMany; ++i) node->add_input("a");
  SetType(node, "T", kDtFloat);
  (*node->mutable_attr())["N"].set_i(kMany);
  AddManyAttrs(node, kMany);
  AddResult(function, "r", "n:sum:0");
  AddCalls(&graph, "f", kMany);
  const std::string bytes = WriteProto(graph);
  EXPECT_THAT(Bounded(bytes, 400 * kMiB, [&] { return Simulate(bytes); }), IsOk());
}

// The second list of outputs begins where the first one's length says, an attribute of a long node.
TEST(Functions, ThatReadAListAtManyPlaces) {
  GraphDef graph;
  FunctionDef* function = AddFunction(&graph, "f", {"a"});
  NodeDef* parse = function->add_node_def();
  parse->set_name("p");
  parse->set_op("ParseExample");
  (*parse->mutable_attr())["Nsparse"].set_i(2);
  AddManyAttrs(parse, kMany);
  NodeDef* node = function->add_node_def();
  node->set_name("n");
  node->set_op("AddN");
  for (int i = 0; i < kMany; ++i) {
    node->add_input(i % 2 == 0 ? "p:sparse_values:0" : "p:sparse_shapes:1");
  }
  AddResult(function, "r", "n:sum:0");
  AddCalls(&graph, "f", 1);
  const std::string bytes = WriteProto(graph);
  EXPECT_THAT(Bounded(bytes, 400 * kMiB, [&] { return Simulate(bytes); }), IsOk());
}

// f0 calls f1 with [2n] and with [2n + 1], f1 calls f2 likewise, ...: 2^40 different calls.
TEST(Functions, ThatCallEachOtherTwice) {
  GraphDef graph;
  constexpr int kDepth = 40;
  AddInt(&graph, "axis", 0);
  AddConst<float>(&graph, "one", kDtFloat, {1}, {0});
  const NodeDef axis = graph.node(0), one = graph.node(1);
  for (int i = 0; i < kDepth; ++i) {
    FunctionDef* function = AddFunction(&graph, absl::StrCat("f", i), {"a"});
    *function->add_node_def() = axis;
    *function->add_node_def() = one;
    std::string last = "a";
    for (int k = 0; k < 2; ++k) {
      NodeDef* concat = function->add_node_def();
      concat->set_name(absl::StrCat("c", k));
      concat->set_op("ConcatV2");
      for (int part = 0; part < k + 2; ++part) concat->add_input(part < 2 ? "a" : "one:output:0");
      concat->add_input("axis:output:0");
      SetType(concat, "T", kDtFloat);
      (*concat->mutable_attr())["N"].set_i(k + 2);
      NodeDef* call = function->add_node_def();
      call->set_name(absl::StrCat("call", k));
      call->set_op("PartitionedCall");
      call->add_input(absl::StrCat("c", k, ":output:0"));
      SetFunction(call, "f", absl::StrCat("f", i + 1));
      (*call->mutable_attr())["Tout"].mutable_list()->add_type(kDtFloat);
      last = absl::StrCat("call", k, ":output:0");
    }
    AddResult(function, "r", last);
  }
  AddResult(AddFunction(&graph, absl::StrCat("f", kDepth), {"a"}), "r", "a");
  AddCalls(&graph, "f0", 1);
  const std::string bytes = WriteProto(graph);
  // Bounded by the steps that calls may take in all, not by the graph.
  const absl::Time begin = absl::Now();
  EXPECT_THAT(Simulate(bytes), IsOk());
  EXPECT_LT(absl::Now() - begin, absl::Seconds(60));
}

// ---- Shapes ----

TEST(ManyShapes, OffsetsOfManyParts) {
  GraphDef graph;
  AddInt(&graph, "axis", 0);
  std::vector<std::string> inputs = {"axis"};
  AddInts(&graph, "s", std::vector<int32_t>(250, 3));
  for (int i = 0; i < 200'000; ++i) inputs.push_back("s");
  NodeDef* n = Add(&graph, "n", "ConcatOffset", inputs);
  (*n->mutable_attr())["N"].set_i(200'000);
  const std::string bytes = WriteProto(graph);
  EXPECT_THAT(Bounded(bytes, 200 * kMiB, [&] { return Simulate(bytes); }), IsOk());
}

// Each equation of 300 bytes makes 254 shapes of up to 254 dimensions.
TEST(ManyShapes, OfEquationsAreRefused) {
  GraphDef graph;
  for (int i = 0; i < 4000; ++i) {
    AddPlaceholder(&graph, absl::StrCat("x", i), kDtFloat, {i + 2, -1});
    NodeDef* n = Add(&graph, absl::StrCat("n", i), "Einsum", {absl::StrCat("x", i)});
    (*n->mutable_attr())["equation"].set_s(absl::StrCat("ab->a", std::string(253, 'b')));
  }
  const std::string bytes = WriteProto(graph);
  const int64_t before = PeakMemory();
  EXPECT_THAT(Simulate(bytes), IsInvalid(v1::ERROR_REASON_LIMIT_EXCEEDED, "different shapes"));
  EXPECT_LT((PeakMemory() - before) / kMiB, 900);
}

// ---- Many of everything ----

TEST(ManyGpus, ThatReadOneTensor) {
  GraphDef graph;
  AddPlaceholder(&graph, "x", kDtFloat, {64});
  for (int i = 0; i < 60'000; ++i) {
    SetType(Add(&graph, absl::StrCat("n", i), "Neg", {"x"}, absl::StrCat("/gpu:", i)), "T",
            kDtFloat);
  }
  const std::string bytes = WriteProto(graph);
  const auto report = Bounded(bytes, 600 * kMiB, [&] { return Simulate(bytes); });
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->forecast().devices_size(), 60'000);
}

TEST(ManyInputs, OfOneNodeAndReadersOfOne) {
  const int count = kAddressSanitizer ? 20'000 : 100'000;
  for (const char* op : {"AddN", "ConcatV2", "IdentityN", "Pack", "Merge", "DynamicStitch"}) {
    GraphDef graph;
    AddInt(&graph, "axis", 0);
    std::vector<std::string> inputs;
    AddPlaceholder(&graph, "x", kDtFloat, {16, 16});
    for (int i = 0; i < count; ++i) {
      inputs.push_back(absl::StrCat("n", i));
      SetType(Add(&graph, inputs.back(), "Neg", {"x"}), "T", kDtFloat);
    }
    if (op == absl::string_view("ConcatV2")) inputs.push_back("axis");
    NodeDef* wide = Add(&graph, "wide", op, inputs);
    SetType(wide, "T", kDtFloat);
    (*wide->mutable_attr())["N"].set_i(count);
    const std::string bytes = WriteProto(graph);
    EXPECT_THAT(Bounded(bytes, 800 * kMiB, [&] { return Simulate(bytes); }), IsOk()) << op;
  }
}

// Sums of these do not fit 63 bits: an error that says so, or a figure that is not negative.
TEST(HugeTensors, DoNotOverflow) {
  for (int exponent : {40, 54, 55, 61}) {
    GraphDef graph;
    AddPlaceholder(&graph, "x", kDtFloat, {int64_t{1} << (exponent - 2)});
    for (int i = 0; i < 100; ++i) {
      SetType(Add(&graph, absl::StrCat("n", i), "Neg", {"x"}), "T", kDtFloat);
    }
    const auto report = Simulate(WriteProto(graph));
    if (exponent >= 55) {
      EXPECT_THAT(report, IsInvalid(v1::ERROR_REASON_LIMIT_EXCEEDED, "add up")) << exponent;
      continue;
    }
    ASSERT_THAT(report, IsOk()) << exponent;
    EXPECT_EQ(report->forecast().fit(), v1::FIT_DOES_NOT_FIT);
    EXPECT_GE(report->forecast().devices(0).peak_bytes(), int64_t{1} << exponent);
    EXPECT_GT(report->forecast().devices(0).compute_ns(), 0);
  }
}

}  // namespace
}  // namespace spillway::testing
