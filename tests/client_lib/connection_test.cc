// The behaviour of every connection, for any peer: in this process, a server in one message, a
// server in a stream.
#include "spillway/connection.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/inspect/inspect.h"
#include "rewrite_core/inspect/simulate_graph.h"
#include "rewrite_core/rewriter.h"
#include "rewrite_core/strategy/strategies.h"
#include "spillway/client.h"
#include "spillway/local_connection.h"
#include "spillway/remote_connection.h"
#include "tests/client_lib/test_graphs.h"
#include "tests/client_lib/test_server.h"

namespace spillway {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using testing::kMnistPath;
using testing::MnistOptions;
using testing::ReadFile;
using testing::TestServer;

enum class Kind { kLocal, kUnary, kStream };

std::string KindName(const ::testing::TestParamInfo<Kind>& info) {
  switch (info.param) {
    case Kind::kLocal:
      return "Local";
    case Kind::kUnary:
      return "Unary";
    case Kind::kStream:
      return "Stream";
  }
  return "";
}

// The reports of two runs differ in their times alone.
v1::RewriteResponse WithoutTimes(v1::RewriteResponse response) {
  for (v1::StageTiming& stage : *response.mutable_report()->mutable_stages()) {
    stage.clear_duration_ns();
  }
  return response;
}

class ConnectionTest : public ::testing::TestWithParam<Kind> {
 protected:
  ConnectionTest() {
    if (GetParam() == Kind::kLocal) {
      client_ = std::make_unique<Client>(MakeLocalConnection());
      return;
    }
    server_ = std::make_unique<TestServer>();
    RemoteOptions options;
    options.target = server_->target();
    // Small, so that the graph of 70 KiB takes several chunks.
    options.chunk_bytes = 10'000;
    if (GetParam() == Kind::kStream) options.unary_max_bytes = -1;
    client_ = std::make_unique<Client>(MakeRemoteConnection(options));
  }

  std::unique_ptr<TestServer> server_;
  std::unique_ptr<Client> client_;
};

TEST_P(ConnectionTest, RewriteGivesWhatTheCoreGives) {
  const std::string graph = ReadFile(kMnistPath);
  const auto expected =
      core::Rewrite(graph, MnistOptions(), core::DefaultLimits(), core::StopToken());
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto response = client_->Rewrite(graph, MnistOptions());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->graph_def(), expected->graph_def());
  EXPECT_EQ(WithoutTimes(*response).SerializeAsString(),
            WithoutTimes(*expected).SerializeAsString());
}

TEST_P(ConnectionTest, TheAnswerHasWhatWasAskedFor) {
  v1::RewriteOptions options = MnistOptions();
  options.add_outputs(v1::OUTPUT_REPORT);
  const std::string graph = ReadFile(kMnistPath);
  const auto expected = core::Rewrite(graph, options, core::DefaultLimits(), core::StopToken());
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto response = client_->Rewrite(graph, options);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->graph_def().empty(), expected->graph_def().empty());
  EXPECT_EQ(response->has_report(), expected->has_report());
  EXPECT_EQ(response->has_patch(), expected->has_patch());
  EXPECT_EQ(response->has_plan(), expected->has_plan());
}

TEST_P(ConnectionTest, ApplyWritesTheSamePlan) {
  v1::RewriteOptions options = MnistOptions();
  for (v1::Output output : {v1::OUTPUT_GRAPH, v1::OUTPUT_REPORT, v1::OUTPUT_PLAN}) {
    options.add_outputs(output);
  }
  const std::string graph = ReadFile(kMnistPath);
  const auto saved = client_->Rewrite(graph, options);
  ASSERT_TRUE(saved.ok()) << saved.status();
  ASSERT_GT(saved->plan().swaps_size(), 0);
  const auto applied = client_->Apply(graph, saved->plan());
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_EQ(applied->graph_def(), saved->graph_def());
  EXPECT_EQ(applied->report().strategy(), v1::STRATEGY_APPLY);
  v1::Plan other = saved->plan();
  other.set_graph_sha256(std::string(64, '0'));
  EXPECT_EQ(ErrorInfoOf(client_->Apply(graph, other).status()).reason(), "OTHER_GRAPH");
}

TEST_P(ConnectionTest, StripUndoesARewrite) {
  const std::string graph = ReadFile(kMnistPath);
  const auto rewritten = client_->Rewrite(graph, MnistOptions());
  ASSERT_TRUE(rewritten.ok()) << rewritten.status();
  const auto stripped = client_->Strip(rewritten->graph_def());
  ASSERT_TRUE(stripped.ok()) << stripped.status();
  EXPECT_EQ(stripped->graph_def(), graph);
  EXPECT_EQ(stripped->report().strategy(), v1::STRATEGY_STRIP);
}

TEST_P(ConnectionTest, InspectGivesWhatTheCoreGives) {
  const std::string graph = ReadFile(kMnistPath);
  v1::InspectOptions options;
  options.mutable_step()->set_batch_size(8);
  const auto expected = core::Inspect(graph, options, core::DefaultLimits(), core::StopToken());
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto summary = client_->Inspect(graph, options);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->SerializeAsString(), expected->SerializeAsString());
}

// Every output of every node: more than those that are read, which the summary counts.
TEST_P(ConnectionTest, InspectTensorsGivesEachOnceInFileOrder) {
  std::vector<std::string> names;
  const auto summary = client_->InspectTensors(
      ReadFile(kMnistPath), v1::InspectOptions(), [&names](const v1::TensorList& list) {
        for (const v1::TensorSummary& tensor : list.tensors()) names.push_back(tensor.tensor());
      });
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_GT(static_cast<int64_t>(names.size()), summary->tensor_count());
  EXPECT_EQ(names.front(), "x:0");
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST_P(ConnectionTest, InspectLeavesTensorsOutUnlessTheyAreTaken) {
  v1::InspectOptions options;
  options.set_tensors(true);
  EXPECT_TRUE(client_->Inspect(ReadFile(kMnistPath), options).ok());
  EXPECT_TRUE(client_->InspectTensors(ReadFile(kMnistPath), options, nullptr).ok());
}

TEST_P(ConnectionTest, SimulateGivesWhatTheCoreGives) {
  const std::string graph = ReadFile(kMnistPath);
  v1::SimulateOptions options;
  options.mutable_step()->set_batch_size(8);
  options.set_memory(true);
  const auto expected =
      core::SimulateGraph(graph, options, core::DefaultLimits(), core::StopToken());
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto report = client_->Simulate(graph, options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->SerializeAsString(), expected->SerializeAsString());
}

TEST_P(ConnectionTest, ExploreTellsEachSizeOnceAndThenAllAgain) {
  const std::string graph = ReadFile(kMnistPath);
  v1::ExploreOptions options;
  for (const int64_t size : {32, 8, 16}) options.add_sizes(size);
  options.set_no_budget(true);
  std::map<int64_t, std::string> told;
  const auto report = client_->Explore(graph, options, [&told](const v1::ExploredSize& size) {
    EXPECT_TRUE(told.emplace(size.size(), size.SerializeAsString()).second) << size.size();
  });
  ASSERT_TRUE(report.ok()) << report.status();
  std::map<int64_t, std::string> again;
  for (const v1::ExploredSize& size : report->sizes()) {
    again[size.size()] = size.SerializeAsString();
  }
  EXPECT_EQ(told, again);
  EXPECT_EQ(told.size(), 3u);
  const auto without = client_->Explore(graph, options);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(without->SerializeAsString(), report->SerializeAsString());
}

TEST_P(ConnectionTest, DiffFindsTheSwapsOfARewrite) {
  const std::string graph = ReadFile(kMnistPath);
  const auto rewritten = client_->Rewrite(graph, MnistOptions());
  ASSERT_TRUE(rewritten.ok()) << rewritten.status();
  const auto diff = client_->Diff(graph, rewritten->graph_def());
  ASSERT_TRUE(diff.ok()) << diff.status();
  EXPECT_EQ(diff->graph_bytes_a(), static_cast<int64_t>(graph.size()));
  EXPECT_EQ(diff->graph_bytes_b(), static_cast<int64_t>(rewritten->graph_def().size()));
  int64_t swapped = 0;
  for (const v1::DeviceReport& device : rewritten->report().devices()) {
    swapped += device.swapped_tensor_count();
  }
  EXPECT_GT(swapped, 0);
  EXPECT_EQ(diff->swaps_size(), swapped);
  const auto same = client_->Diff(graph, graph);
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_TRUE(same->identical());
}

TEST_P(ConnectionTest, AnErrorHasCodeMessageReasonAndMetadataOfTheCore) {
  const auto expected = core::Rewrite("", MnistOptions(), core::DefaultLimits(), core::StopToken());
  ASSERT_FALSE(expected.ok());
  const auto response = client_->Rewrite("", MnistOptions());
  EXPECT_EQ(response.status().code(), expected.status().code());
  EXPECT_EQ(response.status().message(), expected.status().message());
  EXPECT_EQ(ErrorInfoOf(response.status()).reason(), "EMPTY_GRAPH");
  // All of it, metadata too.
  EXPECT_EQ(response.status(), expected.status());
}

TEST_P(ConnectionTest, ManyThreadsMayCallAtOnce) {
  const std::string graph = ReadFile(kMnistPath);
  const auto first = client_->Rewrite(graph, MnistOptions());
  ASSERT_TRUE(first.ok()) << first.status();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const auto response = client_->Rewrite(graph, MnistOptions());
      EXPECT_TRUE(response.ok() && response->graph_def() == first->graph_def());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(ConnectionTest, CapabilitiesNameVersionStrategiesAndLimits) {
  const auto response = client_->GetCapabilities();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->version(), core::Version());
  EXPECT_THAT(response->strategies(), ElementsAreArray(core::Strategies()));
  EXPECT_EQ(response->limits().max_node_count(), core::DefaultLimits().max_node_count());
}

TEST_P(ConnectionTest, HealthIsServingForTheServerAndTheService) {
  for (const char* service : {"", "spillway.v1.RewriteService"}) {
    const auto status = client_->CheckHealth(service);
    ASSERT_TRUE(status.ok()) << status.status();
    EXPECT_EQ(*status, ServingStatus::kServing) << service;
  }
}

TEST_P(ConnectionTest, AnUnknownServiceIsNoError) {
  const auto status = client_->CheckHealth("no.such.Service");
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(*status, ServingStatus::kServiceUnknown);
}

// Every call, by one name: they share deadline and cancellation.
std::vector<absl::Status> CallAll(const Client& client, const CallOptions& call) {
  return {client.Rewrite(ReadFile(kMnistPath), MnistOptions(), call).status(),
          client.Strip(ReadFile(kMnistPath), call).status(),
          client.Inspect(ReadFile(kMnistPath), {}, call).status(),
          client.InspectTensors(ReadFile(kMnistPath), {}, nullptr, call).status(),
          client.Simulate(ReadFile(kMnistPath), {}, call).status(),
          client.Explore(ReadFile(kMnistPath), {}, nullptr, call).status(),
          client.Diff(ReadFile(kMnistPath), ReadFile(kMnistPath), call).status(),
          client.GetCapabilities(call).status(),
          client.CheckHealth("", call).status()};
}

TEST_P(ConnectionTest, ACallWithoutTimeEndsWithDeadlineExceeded) {
  CallOptions call;
  call.timeout = absl::ZeroDuration();
  for (const absl::Status& status : CallAll(*client_, call)) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_EQ(ErrorInfoOf(status).reason(), "STOPPED");
    EXPECT_THAT(std::string(status.message()), HasSubstr("allow more time"));
  }
}

TEST_P(ConnectionTest, ACallCancelledBeforehandEndsWithCancelled) {
  CallOptions call;
  call.cancellation.Cancel();
  for (const absl::Status& status : CallAll(*client_, call)) {
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    EXPECT_EQ(ErrorInfoOf(status).reason(), "STOPPED");
  }
}

TEST_P(ConnectionTest, ACancelledTokenLeavesOtherCallsAlone) {
  CallOptions cancelled;
  cancelled.cancellation.Cancel();
  EXPECT_FALSE(client_->GetCapabilities(cancelled).ok());
  EXPECT_TRUE(client_->GetCapabilities().ok());
}

INSTANTIATE_TEST_SUITE_P(All, ConnectionTest,
                         ::testing::Values(Kind::kLocal, Kind::kUnary, Kind::kStream), KindName);

TEST(LocalConnectionTest, CapabilitiesLeaveOutTheLimitsOfAServer) {
  const auto response = Client(MakeLocalConnection()).GetCapabilities();
  ASSERT_TRUE(response.ok());
  const v1::Limits& limits = response->limits();
  EXPECT_EQ(limits.max_unary_bytes(), 0);
  EXPECT_EQ(limits.max_chunk_bytes(), 0);
  EXPECT_EQ(limits.max_concurrent_requests(), 0);
  EXPECT_EQ(limits.max_inflight_bytes(), 0);
  EXPECT_EQ(limits.max_concurrent_streams(), 0);
  EXPECT_EQ(limits.max_metadata_bytes(), 0);
  EXPECT_GT(limits.max_graph_bytes(), 0) << "these hold here, too";
}

}  // namespace
}  // namespace spillway
