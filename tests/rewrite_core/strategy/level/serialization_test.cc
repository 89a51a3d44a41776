#include "rewrite_core/strategy/level/serialization.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/text_format.h"
#include "rewrite_core/analysis/machine/device_name.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/random_graph.h"

namespace spillway::core {
namespace {

using testing::ErrorDetailOf;
using testing::IsInvalid;
using testing::TestFacts;
using testing::TestGraph;

v1::RewriteOptions Options(const std::string& text) {
  v1::RewriteOptions options;
  if (!google::protobuf::TextFormat::MergeFromString(text, &options)) std::abort();
  return options;
}

// All GPUs as if they were one, unless `device` names one.
absl::StatusOr<Serialization> Serialize(const TestFacts& f, const v1::RewriteOptions& options,
                                        const std::string& device = "") {
  const StopToken stop;
  auto filters = LevelFilters::Create(f.facts, options.level(), stop);
  if (!filters.ok()) return filters.status();
  auto levels = LevelOrder::Build(*f.graph, f.facts.topology(), f.facts.control_flow(), {}, stop);
  if (!levels.ok()) return levels.status();
  std::vector<bool> devices;
  for (DeviceId i(0); i < f.graph->num_devices(); ++i) {
    const auto name = f.graph->device_name(i);
    devices.push_back(device.empty() ? !IsCpuDevice(name) : name == device);
  }
  return SerializeLevels(f.facts, options, *filters, *levels, devices, stop);
}

// The edges and the number of levels, or the error.
std::string Serialized(const std::string& graph, const std::string& options,
                       const std::string& device = "") {
  const TestFacts f(graph, Options(options).step());
  const auto result = Serialize(f, Options(options), device);
  if (!result.ok()) return result.status().ToString();
  std::string text;
  for (const ControlEdge& edge : result->edges) {
    absl::StrAppend(&text, f.graph->name(edge.from), " => ", f.graph->name(edge.to), ", ");
  }
  return absl::StrCat(text, result->level_count, " levels");
}

std::string Slices(const std::string& slices) {
  return absl::StrCat("level { serialization: [", slices, "] }");
}

// The option is in GiB.
std::string BySize(int bytes, const std::string& more = "") {
  return absl::StrFormat("level { serialization_by_size: %.17g %s }", std::ldexp(bytes, -30), more);
}

// Levels: x 0; a, b, c 1; d 2; e, f 3; out 4.
constexpr char kSerializedNet[] = R"(
    x = Placeholder() {dtype=float32, shape=(8,4)}
    a = Relu(x) {T=float32}
    b = Tanh(x) {T=float32}
    c = Sigmoid(x) {T=float32}
    d = AddN(a, b, c) {T=float32, N=3}
    e = Relu(d) {T=float32}
    f = Tanh(d) {T=float32}
    out = AddV2(e, f) {T=float32}
)";

TEST(SerializationTest, OpsOfALevelMakeAChain) {
  EXPECT_EQ(Serialized(kSerializedNet, Slices("'1'")), "a => b, b => c, 1 levels");
  EXPECT_EQ(Serialized(kSerializedNet, Slices("'3'")), "e => f, 1 levels");
  EXPECT_EQ(Serialized(kSerializedNet, Slices("'-2'")), "e => f, 1 levels");
  EXPECT_EQ(Serialized(kSerializedNet, Slices("'1', '3'")), "a => b, b => c, e => f, 2 levels");
  EXPECT_EQ(Serialized(kSerializedNet, Slices("'1:4:2'")), "a => b, b => c, e => f, 2 levels");
  EXPECT_EQ(Serialized(kSerializedNet, Slices("'2', '4'")), "0 levels");  // One op each.
  EXPECT_EQ(Serialized(kSerializedNet, ""), "0 levels");
}

// Neighbouring levels form one chain; d reads c and e reads d, so these already wait.
TEST(SerializationTest, NeighbouringLevelsAreChained) {
  EXPECT_EQ(Serialized(kSerializedNet, Slices("':'")), "a => b, b => c, e => f, 2 levels");
  EXPECT_EQ(Serialized(R"(
      x = Placeholder() {dtype=float32, shape=(8,4)}
      a = Relu(x) {T=float32}
      b = Tanh(x) {T=float32}
      a2 = Relu(a) {T=float32}
      b2 = Tanh(b) {T=float32}
  )",
                       Slices("'1:3'")),
            "a => b, b => a2, a2 => b2, 2 levels");
}

TEST(SerializationTest, SlicesOutsideTheLevels) {
  for (const char* bad : {"5", "-6", "7:9", "3:3"}) {
    const TestFacts f(kSerializedNet);
    const auto result = Serialize(f, Options(Slices(absl::StrCat("'1', '", bad, "'"))));
    EXPECT_THAT(result, IsInvalid(v1::ERROR_REASON_BAD_OPTION, "levels 0 to 4")) << bad;
    EXPECT_EQ(ErrorDetailOf(result, "option"), "serialization");
    EXPECT_EQ(ErrorDetailOf(result, "value"), bad);
    EXPECT_EQ(ErrorDetailOf(result, "levels"), "0 to 4");
  }
}

TEST(SerializationTest, WhatIsNoSlice) {
  for (const char* bad : {"x", "", "1:2:0", "1,2"}) {
    const v1::RewriteOptions options = Options(Slices(absl::StrCat("'1', '", bad, "'")));
    const absl::Status status = CheckSerialization(options.level());
    EXPECT_THAT(status, IsInvalid(v1::ERROR_REASON_BAD_OPTION, "nor a Python slice")) << bad;
    EXPECT_EQ(ErrorDetailOf(status, "option"), "serialization");
    EXPECT_EQ(ErrorDetailOf(status, "value"), bad);
  }
  EXPECT_THAT(CheckSerialization(Options(Slices("'1', '-3', '::2'")).level()), testing::IsOk());
}

// A tensor has 8 * 4 floats, 128 bytes. Level 1: three ops that read one and make one; level 2
// reads three and makes one; level 3: two ops like those of level 1.
TEST(SerializationTest, LevelsThatReadAndWriteMoreThanThat) {
  const auto by_size = [](int bytes) { return Serialized(kSerializedNet, BySize(bytes)); };
  EXPECT_EQ(by_size(768), "0 levels");  // Not more than 768.
  EXPECT_EQ(by_size(767), "a => b, b => c, 1 levels");
  EXPECT_EQ(by_size(512), "a => b, b => c, 1 levels");
  EXPECT_EQ(by_size(511), "a => b, b => c, e => f, 2 levels");
}

TEST(SerializationTest, SlicesAndSizesAddUp) {
  EXPECT_EQ(Serialized(kSerializedNet, BySize(767, "serialization: '3'")),
            "a => b, b => c, e => f, 2 levels");
}

// ---- Excluded nodes ----

TEST(SerializationTest, BranchesLossesConstantsAndCpus) {
  EXPECT_EQ(Serialized(R"(
      x = Placeholder() {dtype=float32, shape=(8,4)}
      a = Relu(x) {T=float32}
      net/cond/b = Relu(x) {T=float32}
      my_loss = Relu(x) {T=float32}
      i = Identity(x) {T=float32}
      cpu = Relu(x) @/device:CPU:0 {T=float32}
      norm = Relu(x) {T=float32}
      last = Tanh(x) {T=float32}
  )",
                       Slices("'1'")),
            "a => norm, norm => last, 1 levels");
}

TEST(SerializationTest, WhatTheStepDoesNotRun) {
  EXPECT_EQ(Serialized(kSerializedNet, "step { targets: 'd' } " + Slices("'1', '3'")),
            "a => b, b => c, 1 levels");
  EXPECT_EQ(
      Serialized(kSerializedNet, "step { feeds { name: 'b' dims: [8, 4] } } " + Slices("'1', '3'")),
      "a => c, e => f, 2 levels");
}

// Levels: value 0, init 1, x 0, a, b 1, a2, b2 2. The step does not run `init`.
constexpr char kInit[] = R"(
    v = VariableV2() {dtype=float32, shape=(8,4)}
    value = Const() {dtype=float32}
    init = Assign(v, value) {T=float32}
    read = Identity(v) {T=float32}
    x = Placeholder() {dtype=float32, shape=(8,4)}
    a = Relu(x) {T=float32}
    b = Tanh(x) {T=float32}
    a2 = AddV2(a, read) {T=float32}
    b2 = AddV2(b, read) {T=float32}
    update = ApplyGradientDescent(v, x, b2) {T=float32}
    update2 = ApplyGradientDescent(v, x, a2) {T=float32}
)";

TEST(SerializationTest, LevelsUpToTheLastInitializerAreLeftOut) {
  EXPECT_EQ(Serialized(kInit, Slices("'1'")), "0 levels");
  EXPECT_EQ(Serialized(kInit, Slices("'1', '2'")), "a2 => b2, 1 levels");
}

// Otherwise a write in the step would run before the nodes that wait for it.
TEST(SerializationTest, NothingWaitsForAWrite) {
  const std::string text = Serialized(kInit, Slices("'2:'"));
  EXPECT_EQ(text, "a2 => b2, 1 levels");
}

// Passing a gradient to an accumulator is a write. Otherwise, `e` needs everything that `apply`
// needs.
TEST(SerializationTest, NothingWaitsForAnAccumulator) {
  const std::string text = R"(
      x = Placeholder() {dtype=float32, shape=(8,4)}
      sum = ConditionalAccumulator() {dtype=float32, shape=(8,4)}
      step = Const() {dtype=int64}
      a = Relu(x) {T=float32}
      b = Tanh(a) {T=float32}
      count = AccumulatorNumAccumulated(sum)
      c = Cast(count) {SrcT=int32, DstT=float32}
      d = AddV2(b, c) {T=float32}
      apply = AccumulatorApplyGradient(sum, step, b) {dtype=float32}
      e = Sub(b, c) {T=float32}
  )";
  const std::string targets = "step { targets: ['d', 'apply', 'e'] } ";
  EXPECT_EQ(Serialized(text, targets + Slices("'3'")), "d => apply, 1 levels");
}

// ---- Nodes with different needs ----

// `a` may fail without its feed: a node that does not need the feed does not wait for it.
TEST(SerializationTest, NothingWaitsForAnotherFeed) {
  const std::string text = R"(
      images = Placeholder() {dtype=float32, shape=(8,4)}
      labels = Placeholder() {dtype=float32, shape=(8,4)}
      a = Relu(labels) {T=float32}
      b = Tanh(images) {T=float32}
      c = Sigmoid(labels) {T=float32}
      both = AddV2(labels, images) {T=float32}
      d = Relu(both) {T=float32}
      out = AddN(a, b, c, d) {T=float32, N=4}
  )";
  // Level 1. `both` may wait for a node that needs only labels.
  EXPECT_EQ(Serialized(text, Slices("'1'")), "a => c, c => both, 1 levels");
}

// v must be initialized before it is read.
TEST(SerializationTest, NothingWaitsForAVariableThatItDoesNotRead) {
  const std::string text = R"(
      v = VariableV2() {dtype=float32, shape=(8,4)}
      x = Placeholder() {dtype=float32, shape=(8,4)}
      reads = AddV2(v, x) {T=float32}
      plain = Relu(x) {T=float32}
      reads2 = Sub(v, x) {T=float32}
      out = AddN(reads, plain, reads2) {T=float32, N=3}
  )";
  EXPECT_EQ(Serialized(text, Slices("'1'")), "reads => reads2, 1 levels");
}

TEST(SerializationTest, NothingWaitsForAnotherQueueOrGenerator) {
  const std::string text = R"(
      q = FIFOQueueV2() {component_types=[float32]}
      r = FIFOQueueV2() {component_types=[float32]}
      a = Relu(q) {T=float32}
      b = Relu(r) {T=float32}
      a2 = Tanh(q) {T=float32}
      out = AddN(a, b, a2) {T=float32, N=3}
  )";
  EXPECT_EQ(Serialized(text, Slices("'1'")), "a => a2, 1 levels");
}

// A node that may be dead must not hold up one that is alive.
TEST(SerializationTest, BranchesAreNotChainedWithEachOther) {
  const std::string text = R"(
      x = Placeholder() {dtype=float32, shape=(8,4)}
      p = Placeholder() {dtype=bool, shape=()}
      switch = Switch(x, p) {T=float32}
      no = Relu(switch) {T=float32}
      yes = Relu(switch:1) {T=float32}
      no2 = Tanh(switch) {T=float32}
      merge = Merge(no, yes) {T=float32, N=2}
      merge2 = Merge(no2, yes) {T=float32, N=2}
  )";
  EXPECT_EQ(Serialized(text, Slices("'2'")), "no => no2, 1 levels");
}

// ---- Several GPUs ----

constexpr char kTowers[] = R"(
    x = Placeholder() {dtype=float32, shape=(8,4)}
    a0 = Relu(x) @/gpu:0 {T=float32}
    a1 = Relu(x) @/gpu:1 {T=float32}
    b0 = Tanh(x) @/gpu:0 {T=float32}
    b1 = Tanh(x) @/gpu:1 {T=float32}
    sum = AddN(a0, a1, b0, b1) {T=float32, N=4}
)";

TEST(SerializationTest, EachGpuHasItsChain) {
  EXPECT_EQ(Serialized(kTowers, Slices("'1'"), "/gpu:0"), "a0 => b0, 1 levels");
  EXPECT_EQ(Serialized(kTowers, Slices("'1'"), "/gpu:1"), "a1 => b1, 1 levels");
}

// All chains of all GPUs together, on random graphs with conditionals and loops: each edge leads up
// in (topological level, id), so Kahn's algorithm completes.
TEST(SerializationTest, ChainsOfAllGpusCloseNoCycle) {
  int64_t edges = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    testing::RandomGraphOptions shape;
    shape.forward_ops = 5 + static_cast<int>(seed % 40);
    shape.conds = seed % 2 == 0;
    shape.loops = seed % 3 == 0;
    const std::string bytes = testing::WriteProto(testing::MakeRandomGraph(seed, shape));
    const TestFacts f(TestGraph::FromBytes(bytes));
    testing::GraphDef graph = testing::ReadProto(bytes);
    for (DeviceId device(0); device < f.graph->num_devices(); ++device) {
      const std::string name(f.graph->device_name(device));
      if (IsCpuDevice(name)) continue;
      const auto chain = Serialize(f, Options(Slices("':'")), name.empty() ? " " : name);
      ASSERT_TRUE(chain.ok()) << chain.status();
      for (const ControlEdge& edge : chain->edges) {
        EXPECT_TRUE(f.facts.control_flow().MayControl(edge.from, edge.to));
        EXPECT_EQ(f.graph->device_id(edge.from), f.graph->device_id(edge.to));
        // Nodes are numbered in the order of the file.
        graph.mutable_node(edge.to)->add_input(absl::StrCat("^", f.graph->name(edge.from)));
        ++edges;
      }
    }
    EXPECT_TRUE(testing::IsAcyclic(graph)) << "seed " << seed;
  }
  EXPECT_GT(edges, 300);
}

}  // namespace
}  // namespace spillway::core
