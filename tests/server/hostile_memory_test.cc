// The memory that one client can make the program hold, by any requests: the peak is at most the
// budget plus the overhead that memory_budget.h adds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/memory/memory_budget.h"
#include "tests/server/daemon.h"
#include "tests/server/test_client.h"
#include "tests/testing/function_graph.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/training_graph.h"

namespace spillway::server {
namespace {

using ::testing::AnyOf;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kBudget = 192 * kMiB;

// A size in a process's status, in bytes.
int64_t StatusOf(pid_t pid, absl::string_view field) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == field && status >> kib) return kib * 1024;
  }
  return -1;
}

// The peak of resident memory, and its present size.
int64_t PeakOf(pid_t pid) { return StatusOf(pid, "VmHWM:"); }
int64_t ResidentOf(pid_t pid) { return StatusOf(pid, "VmRSS:"); }

class HostileMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
#ifndef SPILLWAY_COUNTED_NEW
    GTEST_SKIP() << "sanitizers have their own operator new, and memory of their own";
#endif
    daemon_ = std::make_unique<Daemon>(
        std::vector<std::string>{absl::StrCat("--memory-budget=", kBudget), "--workers=4"});
    client_ = std::make_unique<TestClient>(daemon_->address());
  }

  // For any answer, the peak stays within bounds and the next request is served.
  void TearDown() override {
    if (daemon_ == nullptr) return;
    EXPECT_LE(PeakOf(daemon_->process().pid()), kBudget + kOverheadBytes);
    EXPECT_TRUE(Eventually([&] {
      const std::string scrape = daemon_->Scrape();
      return Sample(scrape, "spillway_memory_bytes") <= Sample(scrape, "spillway_cache_bytes");
    })) << "nothing is held but what is kept";
    const StreamAnswer answer = client_->StreamRewrite(SmallGraph(), ScopeOptions(), 10'000);
    EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  }

  grpc::Status Send(const std::string& graph, const v1::RewriteOptions& options) {
    return client_->StreamRewrite(graph, options, kMiB).status;
  }

  // The same from many connections concurrently, each with a different byte, so that they do not
  // share.
  void SendManyTimes(int times, const std::string& graph, const v1::RewriteOptions& options) {
    std::vector<std::thread> threads;
    for (int i = 0; i < times; ++i) {
      threads.emplace_back([&, i] {
        // The field `version` of a graph, which is ignored.
        const std::string own = graph + '\x18' + static_cast<char>(i + 1);
        const grpc::Status status =
            TestClient(daemon_->address()).StreamRewrite(own, options, kMiB).status;
        EXPECT_THAT(status.error_code(),
                    AnyOf(grpc::StatusCode::OK, grpc::StatusCode::RESOURCE_EXHAUSTED,
                          grpc::StatusCode::INVALID_ARGUMENT))
            << status.error_message();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<TestClient> client_;
};

v1::RewriteOptions EverythingAsked() {
  v1::RewriteOptions options;
  v1::LevelStrategy& level = *options.mutable_level();
  level.set_swapout_threshold(1);
  level.set_swapin_ahead(1);
  level.set_swapin_groupby(0);
  for (const v1::Output output : {v1::OUTPUT_GRAPH, v1::OUTPUT_REPORT, v1::OUTPUT_PATCH}) {
    options.add_outputs(output);
  }
  return options;
}

// Nodes of at most 14 bytes.
std::string SmallNodes(int count) {
  std::string graph;
  for (int i = 0; i < count; ++i) {
    const std::string name = absl::StrCat(absl::Hex(i));
    absl::StrAppend(&graph, "\n", std::string(1, static_cast<char>(name.size() + 8)), "\n",
                    std::string(1, static_cast<char>(name.size())), name, "\x12\x04NoOp");
  }
  return graph;
}

TEST_F(HostileMemoryTest, SmallNodes) {
  const std::string graph = SmallNodes(2'000'000);
  const grpc::Status status = Send(graph, EverythingAsked());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_EQ(InfoOf(status).reason(), "LIMIT_EXCEEDED");
  SendManyTimes(4, graph, EverythingAsked());
}

// Small blocks, which malloc keeps for the thread that has freed them: one request after the other,
// on several workers.
TEST_F(HostileMemoryTest, WhatIsFreedGoesBack) {
  const pid_t pid = daemon_->process().pid();
  EXPECT_TRUE(Send(SmallGraph(), ScopeOptions()).ok());
  const int64_t at_first = ResidentOf(pid);
  // Beside the cache's memory. One request takes more than three times as much.
  constexpr int64_t kKept = 32 * kMiB;
  testing::TrainingGraphOptions graph_options;
  graph_options.nodes = 60'000;
  const std::string graph = testing::MakeTrainingGraph(graph_options);
  for (int i = 1; i <= 10; ++i) {
    v1::RewriteOptions options = EverythingAsked();
    options.mutable_step()->set_batch_size(i);  // Not answered from the cache.
    const grpc::Status status = Send(graph, options);
    EXPECT_TRUE(status.ok()) << status.error_message();
    if (i != 2 && i != 10) continue;
    EXPECT_TRUE(Eventually([&] {
      const auto cached = static_cast<int64_t>(Sample(daemon_->Scrape(), "spillway_cache_bytes"));
      return ResidentOf(pid) <= at_first + cached + kKept;
    })) << i
        << " requests: " << (ResidentOf(pid) - at_first) / kMiB << " MiB";
  }
  EXPECT_GT(PeakOf(pid), at_first + 3 * kKept) << "or this test tests nothing";
}

// Small graphs, as many at once as there are workers: each leaves little in the arena of its
// thread, and all together more than the budget. Not hostile, but on a machine of many cores.
class ManyWorkersTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Workers, ManyWorkersTest, ::testing::Values(2, 16, 64));

TEST_P(ManyWorkersTest, WhatIsResidentIsWithinTheBudget) {
#ifndef SPILLWAY_COUNTED_NEW
  GTEST_SKIP() << "sanitizers have their own operator new, and memory of their own";
#endif
  constexpr int64_t kPromised = 512 * kMiB;
  // So many clients are slow to send if they share two cores.
  Daemon daemon({absl::StrCat("--memory-budget=", kPromised), "--min-upload-rate=0",
                 absl::StrCat("--workers=", GetParam())});
  const pid_t pid = daemon.process().pid();
  testing::TrainingGraphOptions graph_options;
  graph_options.nodes = 12'000;
  const std::string graph = testing::MakeTrainingGraph(graph_options);
  std::atomic<int> answered{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < GetParam(); ++i) {
    threads.emplace_back([&, i] {
      v1::RewriteOptions options = EverythingAsked();
      options.mutable_step()->set_batch_size(i + 1);  // Not answered from the cache.
      if (TestClient(daemon.address()).StreamRewrite(graph, options, kMiB).status.ok()) ++answered;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(answered, 2) << "whatever the others are told: gRPC sends some away, by its own limit";
  int64_t above_the_gauge = 0;
  EXPECT_TRUE(Eventually([&] {
    const auto gauge = static_cast<int64_t>(Sample(daemon.Scrape(), "spillway_memory_bytes"));
    above_the_gauge = ResidentOf(pid) - gauge;
    return above_the_gauge <= 128 * kMiB;
  })) << above_the_gauge / kMiB
      << " MiB above what is counted, with nothing in flight";
  EXPECT_LE(PeakOf(pid), kPromised + kOverheadBytes);
}

// One node with a name of a megabyte reads many swapped tensors: the report repeats the name for
// each.
TEST_F(HostileMemoryTest, AReportThatIsFarLargerThanTheGraph) {
  constexpr int kTensors = 600;
  std::string text =
      "x = Placeholder() @/gpu:0 {dtype=float32}\ny = Relu(x) @/gpu:0 {T=float32}\n"
      "gradients/p = Neg(y) @/gpu:0 {T=float32}\n"
      "gradients/q = Neg(gradients/p) @/gpu:0 {T=float32}\n";
  std::string inputs = "gradients/q";
  for (int i = 0; i < kTensors; ++i) {
    absl::StrAppend(&text, "f", i, " = Relu(x) @/gpu:0 {T=float32}\n");
    absl::StrAppend(&inputs, ", f", i);
  }
  const std::string large = absl::StrCat("gradients/", std::string(kMiB, 'w'));
  const std::string graph = testing::GraphBytes(
      absl::StrCat(text, large, " = AddN(", inputs, ") @/gpu:0 {T=float32, N=", kTensors + 1,
                   "}\ngradients/end = Neg(", large, ") @/gpu:0 {T=float32}\n"));
  v1::RewriteOptions options;
  options.mutable_scope()->add_optimizer_scopes("gradients");
  options.mutable_scope()->add_starting_op_names("x");
  for (const v1::Output output : {v1::OUTPUT_REPORT, v1::OUTPUT_PATCH}) {
    options.clear_outputs();
    options.add_outputs(output);
    EXPECT_EQ(InfoOf(Send(graph, options)).reason(), "RESULT_TOO_LARGE");
  }
  options.clear_outputs();
  options.add_outputs(v1::OUTPUT_GRAPH);
  EXPECT_TRUE(Send(graph, options).ok());
}

// Each is well within the budget; all together are not.
TEST_F(HostileMemoryTest, ManyAtOnce) {
  testing::TrainingGraphOptions graph_options;
  graph_options.nodes = 40'000;
  const std::string graph = testing::MakeTrainingGraph(graph_options);
  v1::RewriteOptions options = EverythingAsked();
  options.mutable_step()->set_batch_size(8);
  EXPECT_TRUE(Send(graph, options).ok());
  SendManyTimes(24, graph, options);
}

// Each takes two bytes on the wire.
TEST_F(HostileMemoryTest, ManyFeeds) {
  v1::RewriteOptions options = ScopeOptions();
  for (int i = 0; i < 500'000; ++i) options.mutable_step()->add_feeds();
  SendManyTimes(32, SmallGraph(), options);
}

TEST_F(HostileMemoryTest, ManyOpTypesAndDevices) {
  std::string text;
  for (int i = 0; i < 60'000; ++i) {
    absl::StrAppend(&text, "n", i, " = Op", i, "() @/device:GPU:", i, " {}\n");
  }
  const std::string graph = testing::GraphBytes(text);
  SendManyTimes(8, graph, EverythingAsked());
}

// Patterns are compiled on the server.
TEST_F(HostileMemoryTest, PatternsThatGrow) {
  v1::RewriteOptions options = EverythingAsked();
  for (int i = 0; i < 100; ++i) {
    options.mutable_level()->add_excl_output_by_scopes(
        absl::StrCat("(a{30}b{30}){", 20 + i % 10, "}", i));
  }
  SendManyTimes(8, SmallGraph(), options);
}

// A file of kilobytes with `calls` calls of a function of `nodes` nodes: a hundred times as large
// once inlined, which no earlier size shows.
std::string SmallFileOfCalls(int calls, int nodes) {
  std::string text = "x0 = Placeholder() @/gpu:0 {dtype=float32, shape=(64,64)}\n";
  for (int i = 0; i < calls; ++i) {
    absl::StrAppend(&text, "x", i + 1, " = PartitionedCall(x", i,
                    ") @/gpu:0 {Tin=[float32], Tout=[float32], f=\"f\"}\n");
  }
  std::string body, last = "x";
  for (int i = 0; i < nodes; ++i) {
    absl::StrAppend(&body, "n", i, " = Neg(", last, ") {T=float32}\n");
    last = absl::StrCat("n", i, ":y:0");
  }
  return testing::GraphWithFunctions(
      text, {testing::Function("f", "x:float32", "y:float32", body, {"y=" + last})});
}

v1::RewriteOptions AllInlined() {
  v1::RewriteOptions options = EverythingAsked();
  options.set_inline_calls(v1::INLINE_CALLS_ALWAYS);
  options.mutable_outputs()->RemoveLast();  // A patch cannot be combined with inlining.
  return options;
}

// As ManyAtOnce, but the files are small. Some of the large graphs fit concurrently.
TEST_F(HostileMemoryTest, ManySmallFilesOfCalls) {
  for (const int calls : {40, 300}) {
    const std::string graph = SmallFileOfCalls(calls, 1000);
    ASSERT_LT(graph.size(), 150'000);
    const grpc::Status status = Send(graph, AllInlined());
    EXPECT_TRUE(status.ok()) << status.error_message();
    SendManyTimes(24, graph, AllInlined());
  }
}

// Nodes of functions are not nodes of the graph until something reads a body.
TEST_F(HostileMemoryTest, SmallNodesOfAFunction) {
  std::string body;
  for (int i = 0; i < 2'000'000; ++i) {
    const std::string name = absl::StrCat(absl::Hex(i));
    const std::string node =
        absl::StrCat("\n", std::string(1, static_cast<char>(name.size())), name, "\x12\x04NoOp");
    absl::StrAppend(&body, "\x1a", std::string(1, static_cast<char>(node.size())), node);
  }
  testing::GraphDef graph;
  ASSERT_TRUE(graph.ParseFromString(
      testing::GraphWithFunctions("c = PartitionedCall() {f=\"f\"}\nd = NoOp(^c)",
                                  {testing::Function("f", "", "", "n = NoOp() {}", {}, {"n"})})));
  ASSERT_TRUE(graph.mutable_library()->mutable_function(0)->MergeFromString(body));
  const std::string bytes = graph.SerializeAsString();
  // Inlined, or analyzed for the shapes of the call's results.
  for (const v1::RewriteOptions& options : {AllInlined(), EverythingAsked()}) {
    const grpc::Status status = Send(bytes, options);
    EXPECT_EQ(InfoOf(status).reason(), "LIMIT_EXCEEDED") << status.error_message();
    SendManyTimes(4, bytes, options);
  }
}

}  // namespace
}  // namespace spillway::server
