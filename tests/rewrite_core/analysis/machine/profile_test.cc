#include "rewrite_core/analysis/machine/profile.h"

#include <gtest/gtest.h>

#include <string>

#include "rewrite_core/analysis/cost.h"
#include "rewrite_core/analysis/memory/buffers.h"
#include "rewrite_core/analysis/step_facts.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"
#include "tests/testing/raw_bytes.h"

namespace spillway::core {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::RawField;
using testing::RawNumber;
using testing::TestGraph;
using testing::ValueOrDie;

// Messages of step_stats.proto, by their field numbers there.
std::string Output(int slot, int requested, int allocated) {
  const std::string allocation = RawNumber(1, requested) + RawNumber(2, allocated);
  return RawField(7, RawNumber(1, slot) + RawField(3, RawField(4, allocation)));
}
std::string Node(const std::string& name, int start_us, int end_us, const std::string& more = "") {
  return RawField(2, RawField(1, name) + RawNumber(2, 1234567) + RawNumber(3, start_us) +
                         RawNumber(4, end_us) + RawNumber(5, end_us + 7) + more);
}
std::string Device(const std::string& name, const std::string& nodes) {
  return RawField(1, RawField(1, name) + nodes);
}
std::string RunMetadata(const std::string& step_stats) { return RawField(1, step_stats); }

constexpr char kCpu[] = "/job:localhost/replica:0/task:0/device:CPU:0";
constexpr char kGpu[] = "/job:localhost/replica:0/task:0/device:GPU:0";
constexpr char kStream[] = "/job:localhost/replica:0/task:0/device:GPU:0/stream:all";
constexpr char kOneStream[] = "/job:localhost/replica:0/task:0/device:GPU:0/stream:14";

int CountMeasured(const Profile& profile, const Graph& graph) {
  int measured = 0;
  for (NodeId id(0); id < graph.num_nodes(); ++id) {
    measured += profile.duration_ns(id) != kNotMeasured;
  }
  return measured;
}

constexpr char kGraph[] =
    "a = Abs() {T=float32}\nb = Relu(a) {T=float32}\n"
    "c = Split(b, b) {T=float32, num_split=2}\nscope/d = Relu(a) {T=float32}";

TEST(ProfileTest, ReadsBothMessages) {
  const TestGraph graph(kGraph);
  const std::string stats = Device(kCpu, Node("a", 3, 10) + Node("scope/d", 0, 5));
  for (const std::string& bytes :
       {stats, RunMetadata(stats), RunMetadata(stats) + RawField(3, "")}) {
    const auto profile = Profile::Read(bytes, *graph, {});
    ASSERT_THAT(profile, IsOk());
    EXPECT_EQ(profile->duration_ns(graph["a"]), 7000);
    EXPECT_EQ(profile->duration_ns(graph["scope/d"]), 5000);
    EXPECT_EQ(profile->duration_ns(graph["b"]), kNotMeasured);
    EXPECT_EQ(CountMeasured(*profile, *graph), 2);
  }
}

TEST(ProfileTest, NanosecondsGoBeforeMicroseconds) {
  const TestGraph graph(kGraph);
  const std::string nanos = RawNumber(14, 100) + RawNumber(15, 1600) + RawNumber(16, 1700);
  const auto profile = Profile::Read(Device(kCpu, Node("a", 0, 2, nanos)), *graph, {});
  ASSERT_THAT(profile, IsOk());
  EXPECT_EQ(profile->duration_ns(graph["a"]), 1500);
}

TEST(ProfileTest, KernelsOfTheStreamGoBeforeLaunches) {
  const TestGraph graph(kGraph);
  const std::string launches = Device(kGpu, Node("a", 0, 1) + Node("b", 0, 2));
  // Two kernels of one op add up. The single streams repeat them.
  const std::string kernels =
      Device(kStream, Node("a:Abs", 0, 30) + Node("a:Abs", 0, 12) + Node("MEMCPYHtoD", 0, 9));
  const std::string again = Device(kOneStream, Node("a:Abs", 0, 30));
  for (const std::string& bytes : {launches + kernels + again, again + kernels + launches}) {
    const auto profile = Profile::Read(bytes, *graph, {});
    ASSERT_THAT(profile, IsOk());
    EXPECT_EQ(profile->duration_ns(graph["a"]), 42000);
    EXPECT_EQ(profile->duration_ns(graph["b"]), 2000);
  }
  EXPECT_EQ(Profile::Read(again + launches, *graph, {})->duration_ns(graph["a"]), 30000);
}

// Names as in TensorFlow 2: xplane_to_step_stats.cc.
TEST(ProfileTest, CopiesAndWaitsAreNoTimesOfNodes) {
  const TestGraph graph(kGraph);
  const std::string launches = Device(kGpu, Node("a", 0, 1) + Node("b", 0, 2));
  const std::string copies = Device("/device:GPU:0/stream:15<MemcpyD2H>", Node("b:_Send", 0, 70)) +
                             Device("/device:GPU:0/memcpy", Node("b:_Send", 0, 70));
  std::string waits;
  for (int i = 0; i < 9; ++i) waits += Node("cuStreamSynchronize", i, 5);
  const auto profile =
      Profile::Read(launches + copies + Device("/device:GPU:0/sync", waits), *graph, {});
  ASSERT_THAT(profile, IsOk());
  EXPECT_EQ(profile->duration_ns(graph["a"]), 1000);
  EXPECT_EQ(profile->duration_ns(graph["b"]), 2000);
}

TEST(ProfileTest, BytesAreThoseAllocatedBySlot) {
  const TestGraph graph(kGraph);
  const auto profile =
      Profile::Read(Device(kGpu, Node("a", 0, 1, Output(0, 0, 0)) +
                                     Node("c", 0, 1, Output(1, 300, 512) + Output(0, 300, 0))),
                    *graph, {});
  ASSERT_THAT(profile, IsOk());
  EXPECT_EQ(profile->allocated_bytes(graph.Output("c:1")), 512);
  EXPECT_EQ(profile->allocated_bytes(graph.Output("c:0")), 300);  // Requested, if that is all.
  EXPECT_EQ(profile->allocated_bytes(graph.Output("a")), kUnknownSize);
  EXPECT_EQ(profile->allocated_bytes(graph.Output("b")), kUnknownSize);
}

TEST(ProfileTest, WorkspaceIsWhatWasThereBesidesWhatIsLeft) {
  const TestGraph graph(kGraph);
  const auto memory = [](const std::string& allocator, int peak, int live) {
    return RawField(6, RawField(1, allocator) + RawNumber(3, peak) + RawNumber(4, live));
  };
  const std::string nodes = Node("a", 0, 1, memory("GPU_0_bfc", 700, 300)) +
                            Node("a", 1, 2, memory("GPU_0_bfc", 500, 300)) +
                            // Not GPU memory; and impossible figures.
                            Node("b", 0, 1, memory("gpu_host_bfc", 700, 300)) +
                            Node("c", 0, 1, memory("GPU_0_bfc", 300, 700));
  const auto profile = Profile::Read(RunMetadata(Device(kGpu, nodes)), *graph, {});
  ASSERT_THAT(profile, IsOk());
  EXPECT_EQ(profile->workspace_bytes(graph["a"]), 400);
  EXPECT_EQ(profile->workspace_bytes(graph["b"]), kNotMeasured);
  EXPECT_EQ(profile->workspace_bytes(graph["c"]), kNotMeasured);
  // On a CPU, every allocator belongs to the device.
  const std::string on_cpu = Device(kCpu, Node("a", 0, 1, memory("cpu", 9, 9)));
  EXPECT_EQ(Profile::Read(RunMetadata(on_cpu), *graph, {})->workspace_bytes(graph["a"]), 0);
}

TEST(ProfileTest, OfAnotherGraphIsRefusedByName) {
  const TestGraph graph(kGraph);
  // Half of the nodes known is enough; nodes added by partitioning do not count.
  const std::string added = Node("_SOURCE", 0, 1) + Node("a/_7", 0, 1) + Node("edge_3_a", 0, 1);
  EXPECT_THAT(Profile::Read(Device(kGpu, Node("a", 0, 1) + Node("z", 0, 1) + added), *graph, {}),
              IsOk());
  const absl::Status status =
      Profile::Read(Device(kGpu, Node("a", 0, 1) + Node("y", 0, 1) + Node("z", 0, 1)), *graph, {})
          .status();
  EXPECT_EQ(GetErrorReason(status), v1::ERROR_REASON_BAD_OPTION);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("another graph"), HasSubstr("'y'")));
}

TEST(ProfileTest, BadBytesAreRefused) {
  const TestGraph graph(kGraph);
  const std::string good = RunMetadata(Device(kGpu, Node("a", 0, 1, Output(0, 1, 1))));
  ASSERT_THAT(Profile::Read(good, *graph, {}), IsOk());
  for (const std::string& bytes :
       {std::string(), std::string("no profile"), Device(kGpu, ""), Device("", Node("a", 0, 1)),
        RunMetadata(""), Device(kGpu, RawField(2, "\xff\xff")),
        Device(kGpu, Node("a", 0, 1, RawField(7, "\xff")))}) {
    EXPECT_EQ(GetErrorReason(Profile::Read(bytes, *graph, {}).status()),
              v1::ERROR_REASON_BAD_OPTION);
  }
  // Truncated anywhere, it still gives an answer.
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(Profile::Read(good.substr(0, size), *graph, {}).ok()) << size;
  }
}

TEST(ProfileTest, NonsenseNumbersAreClamped) {
  const TestGraph graph(kGraph);
  std::string nodes;
  for (int i = 0; i < 3; ++i) {
    nodes += RawField(2, RawField(1, "a") + RawNumber(3, 0) + RawNumber(4, ~uint64_t{0} >> 1));
  }
  nodes += RawField(2, RawField(1, "b") + RawNumber(3, 10) + RawNumber(4, 5));
  nodes += Node("c", 0, 1,
                RawField(7, RawNumber(1, ~uint64_t{0}) +
                                RawField(3, RawField(4, RawNumber(2, ~uint64_t{0})))));
  const auto profile = Profile::Read(Device(kGpu, nodes), *graph, {});
  ASSERT_THAT(profile, IsOk());
  EXPECT_EQ(profile->duration_ns(graph["a"]), kMaxDurationNs);
  EXPECT_EQ(profile->duration_ns(graph["b"]), 0);  // Ends before it starts.
  for (const char* tensor : {"a", "b", "c:0", "c:1", "scope/d"}) {
    EXPECT_EQ(profile->allocated_bytes(graph.Output(tensor)), kUnknownSize) << tensor;
  }
}

// -1 is not a time, and must not be read as the longest time possible.
TEST(ProfileTest, NegativeTimesAreNone) {
  const TestGraph graph(kGraph);
  const std::string negative =
      Device(kGpu, RawField(2, RawField(1, "a") + RawNumber(3, 0) + RawNumber(4, ~uint64_t{0})));
  const auto none = Profile::Read(negative, *graph, {});
  ASSERT_THAT(none, IsOk());
  EXPECT_EQ(none->duration_ns(graph["a"]), kNotMeasured);
  const auto other = Profile::Read(Device(kCpu, Node("a", 3, 10)) + negative, *graph, {});
  ASSERT_THAT(other, IsOk());
  EXPECT_EQ(other->duration_ns(graph["a"]), 7000);
}

// A real run of TensorFlow 2.15.1 on a CPU at batch size 8.
TEST(ProfileTest, ARealRunReplacesEstimates) {
  const TestGraph graph =
      TestGraph::FromBytes(testing::ReadTestGraph("mnist_deep/graph_shapes.pb"));
  const std::string bytes = testing::ReadTestGraph("mnist_deep/run_metadata.pb");
  const Profile profile = ValueOrDie(Profile::Read(bytes, *graph, {}), "profile");
  // 232 entries; four of them (_SOURCE and three _arg) are TensorFlow's own.
  EXPECT_EQ(CountMeasured(profile, *graph), 228);
  // 82 to 524,040 and 77 to 1,875,100 ns after their start, as protobuf prints the file.
  EXPECT_EQ(profile.duration_ns(graph["conv1/Conv2D"]), 523958);
  EXPECT_EQ(profile.duration_ns(graph["fc1/MatMul"]), 1875023);
  // 8 images of 28 x 28 with 32 channels; 8 rows of 1024.
  EXPECT_EQ(profile.allocated_bytes(graph.Output("conv1/Conv2D")), 4 * 8 * 28 * 28 * 32);
  EXPECT_EQ(profile.allocated_bytes(graph.Output("fc1/MatMul")), 4 * 8 * 1024);

  const Topology topology = ValueOrDie(Topology::Build(*graph, {}), "topology");
  const Shapes shapes = ValueOrDie(Shapes::Infer(*graph, topology, {}, {}), "shapes");
  const Placement placement =
      ValueOrDie(Placement::Find(*graph, topology, shapes, {}), "placement");
  const Buffers plain = ValueOrDie(
      Buffers::Find(*graph, topology, shapes, placement, {}, {}, nullptr, {}), "buffers");
  const Buffers measured = ValueOrDie(
      Buffers::Find(*graph, topology, shapes, placement, {}, {}, &profile, {}), "buffers");
  // The batch is open in the graph.
  EXPECT_EQ(plain.bytes(graph.Output("conv1/Conv2D")), kUnknownSize);
  EXPECT_EQ(measured.bytes(graph.Output("conv1/Conv2D")), 802816);
  const Hardware hardware = ValueOrDie(Hardware::FromOptions({}), "hardware");
  const Costs costs = ValueOrDie(
      Costs::Estimate(*graph, shapes, placement, measured, hardware, {}, {}, &profile, {}),
      "costs");
  EXPECT_EQ(costs[graph["conv1/Conv2D"]].duration_ns, 523958);
  EXPECT_TRUE(costs[graph["conv1/Conv2D"]].is_known);
  // Ops that only pass memory on launch nothing, however long their CPU kernel took.
  EXPECT_EQ(costs[graph["conv1/Variable/read"]].duration_ns, 0);
}

// 2 MiB read and 2 MiB written; the measured time counts, on the host's engine.
TEST(ProfileTest, MeasuredTimesOnTheHostReplaceThoseOfBytes) {
  const TestGraph graph(
      "act = Abs() @/gpu:0 {T=float32, _output_shapes=[(512,1024)]}\n"
      "a = Neg(act) @/cpu:0 {T=float32}\n"
      "b = Neg(act) @/cpu:0 {T=float32}\n");
  const Profile profile =
      ValueOrDie(Profile::Read(Device(kCpu, Node("a", 0, 7)), *graph, {}), "profile");
  const v1::Step step;
  const StepFacts facts(*graph, step);
  ASSERT_THAT(facts.Compute({Fact::kBuffers, Fact::kHardware}, {}), IsOk());
  const Costs costs =
      ValueOrDie(Costs::Estimate(*graph, facts.shapes(), facts.placement(), facts.buffers(),
                                 facts.hardware(), {}, step, &profile, {}),
                 "costs");
  EXPECT_EQ(costs[graph["a"]].duration_ns, 7000);
  EXPECT_TRUE(costs[graph["a"]].on_host_engine);
  EXPECT_NEAR(costs[graph["b"]].duration_ns, (4 << 20) / 40.0, 0.5);  // At 40 GB/s.
}

}  // namespace
}  // namespace spillway::core
