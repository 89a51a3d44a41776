// The C API, over the core in this process and over a server. How it is loaded as a shared library
// is tested in tests/integration.
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client_lib/internal/this_machine.h"
#include "gmock/gmock.h"
#include "grpcpp/security/server_credentials.h"
#include "gtest/gtest.h"
#include "rewrite_core/inspect/inspect.h"
#include "rewrite_core/inspect/simulate_graph.h"
#include "rewrite_core/rewriter.h"
#include "spillway/rewrite_message.h"
#include "spillway/spillway.h"
#include "spillway/v1/diff.pb.h"
#include "spillway/v1/inspect.pb.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/client_lib/test_graphs.h"
#include "tests/client_lib/test_server.h"
#include "tests/testing/files.h"
#include "tests/testing/test_certs.h"

namespace spillway {
namespace {

using internal::COwner;
using ::testing::HasSubstr;
using testing::kMnistPath;
using testing::MnistOptions;
using testing::ReadFile;
using ::testing::StartsWith;
using testing::TestServer;

// Frees `status` and gives "CODE REASON MESSAGE", "0  " for success.
std::string Taken(spillway_status* status) {
  const COwner<spillway_status> owner(status);
  return std::to_string(spillway_status_code(status)) + " " + spillway_status_reason(status) + " " +
         spillway_status_message(status);
}
constexpr char kOk[] = "0  ";

std::string Bytes(const spillway_buffer* buffer) {
  return {spillway_buffer_data(buffer), spillway_buffer_size(buffer)};
}

// The message in a buffer, which is freed.
template <typename Message>
Message TakenMessage(spillway_buffer* buffer) {
  const COwner<spillway_buffer> owner(buffer);
  Message message;
  EXPECT_TRUE(message.ParseFromString(Bytes(buffer)));
  return message;
}

COwner<spillway_client> NewClient(const std::string& target = "") {
  const COwner<spillway_client_options> options(spillway_client_options_new());
  EXPECT_EQ(Taken(spillway_client_options_set_target(options.get(), target.c_str())), kOk);
  // So that the graph of 70 KiB goes as a stream, in several chunks.
  EXPECT_EQ(Taken(spillway_client_options_set_unary_max_bytes(options.get(), 0)), kOk);
  EXPECT_EQ(Taken(spillway_client_options_set_chunk_bytes(options.get(), 10'000)), kOk);
  EXPECT_EQ(Taken(spillway_client_options_set_max_attempts(options.get(), 1)), kOk);
  spillway_client* client = nullptr;
  EXPECT_EQ(Taken(spillway_client_new(options.get(), &client)), kOk);
  return COwner<spillway_client>(client);
}

// Rewrites the graph of mnist; OK and the buffers, or not and none.
std::string RewriteMnist(spillway_client* client, spillway_call* call, std::string* graph,
                         std::string* report = nullptr) {
  const std::string in = ReadFile(kMnistPath);
  const std::string options = MnistOptions().SerializeAsString();
  spillway_buffer* graph_out = nullptr;
  spillway_buffer* report_out = nullptr;
  const std::string status =
      Taken(spillway_rewrite_graph(client, in.data(), in.size(), options.data(), options.size(),
                                   call, &graph_out, report == nullptr ? nullptr : &report_out));
  const COwner<spillway_buffer> graph_owner(graph_out);
  const COwner<spillway_buffer> report_owner(report_out);
  EXPECT_EQ(graph_out != nullptr, status == kOk);
  if (graph != nullptr) *graph = Bytes(graph_out);
  if (report != nullptr) *report = Bytes(report_out);
  return status;
}

std::string ExpectedMnist() {
  return core::Rewrite(ReadFile(kMnistPath), MnistOptions(), core::DefaultLimits(),
                       core::StopToken())
      ->graph_def();
}

class CApiTest : public ::testing::TestWithParam<bool> {
 protected:
  CApiTest() : client_(NewClient(GetParam() ? server_.target() : "")) {}

  TestServer server_;
  COwner<spillway_client> client_;
};

TEST_P(CApiTest, RewriteGraphGivesWhatTheCoreGives) {
  std::string graph;
  std::string report;
  ASSERT_EQ(RewriteMnist(client_.get(), nullptr, &graph, &report), kOk);
  EXPECT_EQ(graph, ExpectedMnist());
  v1::RewriteReport parsed;
  ASSERT_TRUE(parsed.ParseFromString(report));
  EXPECT_EQ(parsed.outcome(), v1::OUTCOME_REWRITTEN);
  EXPECT_EQ(server_.stream_calls(), GetParam() ? 1 : 0);
}

TEST_P(CApiTest, RewriteTakesARequestAndGivesAResponse) {
  v1::RewriteRequest request;
  request.set_graph_def(ReadFile(kMnistPath));
  *request.mutable_options() = MnistOptions();
  request.mutable_options()->add_outputs(v1::OUTPUT_GRAPH);
  request.mutable_options()->add_outputs(v1::OUTPUT_PATCH);
  const std::string bytes = request.SerializeAsString();
  spillway_buffer* out = nullptr;
  ASSERT_EQ(Taken(spillway_rewrite(client_.get(), bytes.data(), bytes.size(), nullptr, &out)), kOk);
  const auto response = TakenMessage<v1::RewriteResponse>(out);
  EXPECT_EQ(response.graph_def(), ExpectedMnist());
  EXPECT_TRUE(response.has_patch());
  EXPECT_FALSE(response.has_report());
}

TEST_P(CApiTest, AnErrorHasCodeReasonMessageAndMetadata) {
  // One node: name a, op Identity, input b.
  const std::string graph =
      "\x0a\x10"
      "\x0a\x01"
      "a"
      "\x12\x08"
      "Identity"
      "\x1a\x01"
      "b";
  spillway_buffer* out = nullptr;
  const COwner<spillway_status> owner(spillway_rewrite_graph(
      client_.get(), graph.data(), graph.size(), nullptr, 0, nullptr, &out, nullptr));
  const spillway_status* status = owner.get();
  EXPECT_EQ(out, nullptr);
  EXPECT_EQ(spillway_status_code(status), 3);
  EXPECT_STREQ(spillway_status_reason(status), "DANGLING_INPUT");
  EXPECT_THAT(spillway_status_message(status), HasSubstr("'b'"));
  std::map<std::string, std::string> metadata;
  const size_t count = spillway_status_metadata_count(status);
  for (size_t i = 0; i < count; ++i) {
    metadata[spillway_status_metadata_key(status, i)] = spillway_status_metadata_value(status, i);
  }
  EXPECT_EQ(metadata["node"], "a");
  EXPECT_EQ(metadata["value"], "b");
  EXPECT_EQ(spillway_status_metadata_key(status, count), nullptr);
  EXPECT_EQ(spillway_status_metadata_value(status, count), nullptr);
}

TEST_P(CApiTest, CapabilitiesAndHealth) {
  spillway_buffer* out = nullptr;
  ASSERT_EQ(Taken(spillway_get_capabilities(client_.get(), nullptr, &out)), kOk);
  const auto response = TakenMessage<v1::GetCapabilitiesResponse>(out);
  EXPECT_EQ(response.version(), spillway_version());
  int32_t health = -1;
  ASSERT_EQ(Taken(spillway_check_health(client_.get(), nullptr, nullptr, &health)), kOk);
  EXPECT_EQ(health, SPILLWAY_HEALTH_SERVING);
  ASSERT_EQ(Taken(spillway_check_health(client_.get(), "no.such", nullptr, &health)), kOk);
  EXPECT_EQ(health, SPILLWAY_HEALTH_SERVICE_UNKNOWN);
}

TEST_P(CApiTest, TimeoutAndCancellationEndACall) {
  const COwner<spillway_call> call(spillway_call_new());
  EXPECT_EQ(Taken(spillway_call_set_timeout_ms(call.get(), 0)), kOk);
  EXPECT_THAT(RewriteMnist(client_.get(), call.get(), nullptr), HasSubstr("4 STOPPED"));
  const COwner<spillway_call> cancelled(spillway_call_new());
  spillway_call_cancel(cancelled.get());
  EXPECT_THAT(RewriteMnist(client_.get(), cancelled.get(), nullptr), HasSubstr("1 STOPPED"));
}

TEST_P(CApiTest, ManyThreadsMayUseAClient) {
  const std::string expected = ExpectedMnist();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      std::string graph;
      EXPECT_EQ(RewriteMnist(client_.get(), nullptr, &graph), kOk);
      EXPECT_EQ(graph, expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Appends each part of an answer to the vector behind `user_data`.
void Collect(const void* message, size_t size, void* user_data) {
  static_cast<std::vector<std::string>*>(user_data)->emplace_back(static_cast<const char*>(message),
                                                                  size);
}

TEST_P(CApiTest, InspectAndItsTensors) {
  const std::string graph = ReadFile(kMnistPath);
  for (const bool with_tensors : {false, true}) {
    std::vector<std::string> parts;
    spillway_buffer* out = nullptr;
    ASSERT_EQ(Taken(spillway_inspect(client_.get(), graph.data(), graph.size(), nullptr, 0, nullptr,
                                     with_tensors ? Collect : nullptr, &parts, &out)),
              kOk);
    const auto summary = TakenMessage<v1::GraphSummary>(out);
    const auto direct = core::Inspect(graph, {}, core::DefaultLimits(), core::StopToken());
    EXPECT_EQ(summary.SerializeAsString(), direct->SerializeAsString());
    int64_t tensors = 0;
    for (const std::string& part : parts) {
      v1::TensorList list;
      ASSERT_TRUE(list.ParseFromString(part));
      tensors += list.tensors_size();
    }
    EXPECT_EQ(tensors > summary.tensor_count(), with_tensors);
  }
}

TEST_P(CApiTest, Diff) {
  const std::string graph = ReadFile(kMnistPath);
  const std::string rewritten = ExpectedMnist();
  spillway_buffer* out = nullptr;
  ASSERT_EQ(Taken(spillway_diff(client_.get(), graph.data(), graph.size(), rewritten.data(),
                                rewritten.size(), nullptr, &out)),
            kOk);
  const auto diff = TakenMessage<v1::GraphDiff>(out);
  EXPECT_GT(diff.swaps_size(), 0);
}

TEST_P(CApiTest, Simulate) {
  const std::string graph = ReadFile(kMnistPath);
  spillway_buffer* out = nullptr;
  v1::SimulateOptions options;
  options.mutable_step()->set_batch_size(8);
  options.set_memory(true);
  const std::string bytes = options.SerializeAsString();
  ASSERT_EQ(Taken(spillway_simulate(client_.get(), graph.data(), graph.size(), bytes.data(),
                                    bytes.size(), nullptr, &out)),
            kOk);
  const auto report = TakenMessage<v1::SimulateReport>(out);
  const auto direct = core::SimulateGraph(graph, options, core::DefaultLimits(), core::StopToken());
  ASSERT_TRUE(direct.ok());
  EXPECT_EQ(report.SerializeAsString(), direct->SerializeAsString());
  EXPECT_GT(report.memory(0).timeline_size(), 0);
}

TEST_P(CApiTest, ExploreTellsItsSizes) {
  const std::string graph = ReadFile(kMnistPath);
  v1::ExploreOptions options;
  options.set_no_budget(true);
  options.add_sizes(16);
  options.add_sizes(8);
  const std::string bytes = options.SerializeAsString();
  std::vector<std::string> parts;
  spillway_buffer* out = nullptr;
  ASSERT_EQ(Taken(spillway_explore(client_.get(), graph.data(), graph.size(), bytes.data(),
                                   bytes.size(), nullptr, Collect, &parts, &out)),
            kOk);
  const auto report = TakenMessage<v1::ExploreReport>(out);
  ASSERT_EQ(report.sizes_size(), 2);
  EXPECT_THAT(parts, ::testing::UnorderedElementsAre(report.sizes(0).SerializeAsString(),
                                                     report.sizes(1).SerializeAsString()));
}

INSTANTIATE_TEST_SUITE_P(All, CApiTest, ::testing::Bool(),
                         [](const auto& kind) { return kind.param ? "Remote" : "Local"; });

TEST(CApiCallTest, WhatTheServerIsToldOfTheCaller) {
  const TestServer server;
  const test_certs::TempFolder folder;
  const std::string file = folder.Write("token", "from-file");
  const COwner<spillway_client_options> options(spillway_client_options_new());
  EXPECT_EQ(Taken(spillway_client_options_set_target(options.get(), server.target().c_str())), kOk);
  EXPECT_EQ(Taken(spillway_client_options_set_token_file(options.get(), file.c_str())), kOk);
  EXPECT_EQ(Taken(spillway_client_options_set_hedge_after_ms(options.get(), 60'000)), kOk);
  spillway_client* made = nullptr;
  ASSERT_EQ(Taken(spillway_client_new(options.get(), &made)), kOk);
  const COwner<spillway_client> client(made);
  const COwner<spillway_call> call(spillway_call_new());
  const std::string traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  EXPECT_EQ(Taken(spillway_call_set_request_id(call.get(), "job-17")), kOk);
  EXPECT_EQ(Taken(spillway_call_set_traceparent(call.get(), traceparent.c_str())), kOk);
  const auto ask = [&] {
    spillway_buffer* out = nullptr;
    const std::string status = Taken(spillway_get_capabilities(client.get(), call.get(), &out));
    spillway_buffer_free(out);
    return status;
  };
  using ::testing::Contains;
  using ::testing::Pair;
  ASSERT_EQ(ask(), kOk);
  EXPECT_THAT(server.last_metadata(), Contains(Pair("x-request-id", "job-17")));
  EXPECT_THAT(server.last_metadata(), Contains(Pair("traceparent", traceparent)));
  EXPECT_THAT(server.last_metadata(), Contains(Pair("authorization", "Bearer from-file")));
  EXPECT_EQ(Taken(spillway_call_set_token(call.get(), "own")), kOk);
  EXPECT_EQ(Taken(spillway_call_set_request_id(call.get(), nullptr)), kOk);
  ASSERT_EQ(ask(), kOk);
  EXPECT_THAT(server.last_metadata(), Contains(Pair("authorization", "Bearer own")));
  EXPECT_EQ(server.last_metadata().count("x-request-id"), 0u);
  EXPECT_EQ(Taken(spillway_call_set_request_id(call.get(), "two words")), kOk);
  EXPECT_THAT(ask(), HasSubstr("3 BAD_OPTION the request id 'two words'"));
}

TEST(CApiCallTest, WhereATokenMayGo) {
  const COwner<spillway_client_options> options(spillway_client_options_new());
  EXPECT_EQ(Taken(spillway_client_options_set_target(options.get(), "trainer.invalid:1")), kOk);
  EXPECT_EQ(Taken(spillway_client_options_set_max_attempts(options.get(), 1)), kOk);
  const COwner<spillway_call> call(spillway_call_new());
  EXPECT_EQ(Taken(spillway_call_set_token(call.get(), "own")), kOk);
  EXPECT_EQ(Taken(spillway_call_set_timeout_ms(call.get(), 1)), kOk);
  const auto ask = [&] {
    spillway_client* made = nullptr;
    EXPECT_EQ(Taken(spillway_client_new(options.get(), &made)), kOk);
    const COwner<spillway_client> client(made);
    spillway_buffer* out = nullptr;
    return Taken(spillway_get_capabilities(client.get(), call.get(), &out));
  };
  EXPECT_THAT(ask(), HasSubstr("3 BAD_OPTION the token would go to 'trainer.invalid:1'"));
  EXPECT_EQ(Taken(spillway_client_options_set_token_in_clear(options.get(), 1)), kOk);
  EXPECT_THAT(ask(), ::testing::Not(HasSubstr("BAD_OPTION"))) << "there is no such host";
  EXPECT_THAT(Taken(spillway_client_options_set_hedge_after_ms(options.get(), 0)),
              HasSubstr("at least 1"));
  EXPECT_THAT(Taken(spillway_call_set_token(nullptr, "own")), HasSubstr("call is NULL"));
}

TEST(CApiCallTest, TheBestPlanIsKeptInThisProcessOnly) {
  TestServer server;
  const COwner<spillway_call> call(spillway_call_new());
  EXPECT_EQ(Taken(spillway_call_set_keep_best(call.get(), 1)), kOk);
  EXPECT_EQ(RewriteMnist(NewClient().get(), call.get(), nullptr), kOk);
  const auto client = NewClient(server.target());
  EXPECT_THAT(RewriteMnist(client.get(), call.get(), nullptr),
              HasSubstr("3 CONFLICTING_OPTIONS keep_best is for searches in this process"));
  EXPECT_EQ(Taken(spillway_call_set_keep_best(call.get(), 0)), kOk);
  EXPECT_EQ(RewriteMnist(client.get(), call.get(), nullptr), kOk);
}

TEST(CApiCallTest, AnotherThreadCancelsACallInFlight) {
  testing::ServerOptions hang;
  hang.fault = testing::Fault::kHang;
  TestServer server(hang);
  const auto client = NewClient(server.target());
  const COwner<spillway_call> call(spillway_call_new());
  std::thread watcher([&] {
    while (server.hanging() == 0) std::this_thread::yield();
    spillway_call_cancel(call.get());
  });
  EXPECT_THAT(RewriteMnist(client.get(), call.get(), nullptr), HasSubstr("1 STOPPED"));
  watcher.join();
}

TEST(CApiCallTest, ProgressNamesStagesAndBytes) {
  TestServer server;
  const auto client = NewClient(server.target());
  const COwner<spillway_call> call(spillway_call_new());
  std::vector<std::vector<int64_t>> seen;
  const auto record = [](int32_t stage, int64_t done, int64_t total, void* user_data) {
    static_cast<decltype(seen)*>(user_data)->push_back({stage, done, total});
  };
  ASSERT_EQ(Taken(spillway_call_set_progress(call.get(), record, &seen)), kOk);
  std::string graph;
  ASSERT_EQ(RewriteMnist(client.get(), call.get(), &graph), kOk);
  const int64_t in = ReadFile(kMnistPath).size();
  const int64_t out = graph.size();
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.front(), (std::vector<int64_t>{SPILLWAY_STAGE_SENDING, 0, in}));
  EXPECT_EQ(seen.back(), (std::vector<int64_t>{SPILLWAY_STAGE_RECEIVING, out, out}));
  // 10,000 bytes each: see NewClient.
  EXPECT_THAT(seen, ::testing::Contains(std::vector<int64_t>{SPILLWAY_STAGE_SENDING, 10'000, in}));
}

TEST(CApiArgumentTest, NullIsAnErrorAndNoCrash) {
  spillway_buffer* out = nullptr;
  int32_t health = 0;
  const auto client = NewClient();
  const auto call = COwner<spillway_call>(spillway_call_new());
  const std::vector<spillway_status*> errors = {
      spillway_client_new(nullptr, nullptr),
      spillway_client_options_set_target(nullptr, "x"),
      spillway_client_options_set_unary_max_bytes(nullptr, 1),
      spillway_client_options_set_chunk_bytes(nullptr, 1),
      spillway_client_options_set_max_attempts(nullptr, 1),
      spillway_client_options_set_tls(nullptr, nullptr, nullptr, nullptr, nullptr),
      spillway_call_set_timeout_ms(nullptr, 1),
      spillway_call_set_keep_best(nullptr, 1),
      spillway_call_set_progress(nullptr, nullptr, nullptr),
      spillway_rewrite_graph(nullptr, "", 0, nullptr, 0, nullptr, &out, nullptr),
      spillway_rewrite_graph(client.get(), "", 0, nullptr, 0, nullptr, nullptr, nullptr),
      spillway_rewrite_graph(client.get(), nullptr, 5, nullptr, 0, nullptr, &out, nullptr),
      spillway_rewrite_graph(client.get(), "", 0, nullptr, 5, nullptr, &out, nullptr),
      spillway_rewrite(nullptr, "", 0, nullptr, &out),
      spillway_rewrite(client.get(), nullptr, 5, nullptr, &out),
      spillway_rewrite(client.get(), "", 0, nullptr, nullptr),
      spillway_get_capabilities(nullptr, nullptr, &out),
      spillway_get_capabilities(client.get(), nullptr, nullptr),
      spillway_check_health(nullptr, "", nullptr, &health),
      spillway_check_health(client.get(), "", nullptr, nullptr),
      spillway_inspect(nullptr, "", 0, nullptr, 0, nullptr, nullptr, nullptr, &out),
      spillway_inspect(client.get(), nullptr, 5, nullptr, 0, nullptr, nullptr, nullptr, &out),
      spillway_inspect(client.get(), "", 0, nullptr, 0, nullptr, nullptr, nullptr, nullptr),
      spillway_simulate(nullptr, "", 0, nullptr, 0, nullptr, &out),
      spillway_simulate(client.get(), "", 0, nullptr, 5, nullptr, &out),
      spillway_simulate(client.get(), "", 0, nullptr, 0, nullptr, nullptr),
      spillway_explore(nullptr, "", 0, nullptr, 0, nullptr, nullptr, nullptr, &out),
      spillway_explore(client.get(), "", 0, nullptr, 0, nullptr, nullptr, nullptr, nullptr),
      spillway_diff(nullptr, "", 0, "", 0, nullptr, &out),
      spillway_diff(client.get(), nullptr, 5, "", 0, nullptr, &out),
      spillway_diff(client.get(), "", 0, nullptr, 5, nullptr, &out),
      spillway_diff(client.get(), "", 0, "", 0, nullptr, nullptr),
      spillway_find_gpu_memory(nullptr),
      spillway_draw(nullptr, "", 0, nullptr, 0, "svg", nullptr, nullptr, &out),
      spillway_draw("SimulateReport", nullptr, 5, nullptr, 0, "svg", nullptr, nullptr, &out),
      spillway_draw("SimulateReport", "", 0, nullptr, 5, "svg", nullptr, nullptr, &out),
      spillway_draw("SimulateReport", "", 0, nullptr, 0, nullptr, nullptr, nullptr, &out),
      spillway_draw("SimulateReport", "", 0, nullptr, 0, "svg", nullptr, nullptr, nullptr),
      // There is nothing to draw.
      spillway_draw("SimulateReport", "", 0, nullptr, 0, "svg", nullptr, nullptr, &out),
      spillway_draw("ExploreReport", "", 0, nullptr, 0, "svg", nullptr, nullptr, &out),
      spillway_text(nullptr, "", 0, &out),
      spillway_text("RunCheck", nullptr, 5, &out),
      spillway_text("RunCheck", "", 0, nullptr),
      spillway_check(nullptr, 5, "", 0, &out),
      spillway_check("", 0, nullptr, 5, &out),
      spillway_check("", 0, "", 0, nullptr),
      spillway_message_from_json(nullptr, "{}", 2, &out),
      spillway_message_from_json("RewriteOptions", nullptr, 0, &out),
      spillway_message_from_json("RewriteOptions", "{}", 2, nullptr),
      spillway_message_to_json(nullptr, "", 0, &out),
      spillway_message_to_json("RewriteOptions", "", 0, nullptr),
  };
  for (size_t i = 0; i < errors.size(); ++i) {
    EXPECT_EQ(Taken(errors[i]).substr(0, 13), "3 BAD_OPTION ") << i;
  }
  EXPECT_EQ(out, nullptr);
  // And functions given NULL.
  spillway_status_free(nullptr);
  spillway_buffer_free(nullptr);
  spillway_client_options_free(nullptr);
  spillway_client_free(nullptr);
  spillway_call_free(nullptr);
  spillway_call_cancel(nullptr);
  EXPECT_STREQ(spillway_status_message(nullptr), "");
  EXPECT_STREQ(spillway_buffer_data(nullptr), "");
  EXPECT_EQ(spillway_status_code(nullptr), 0);
  EXPECT_EQ(spillway_status_metadata_count(nullptr), 0);
}

TEST(CApiArgumentTest, NumbersOutOfRangeAreErrors) {
  const COwner<spillway_client_options> options(spillway_client_options_new());
  EXPECT_THAT(Taken(spillway_client_options_set_chunk_bytes(options.get(), 0)),
              HasSubstr("bytes is 0; it has to be at least 1"));
  EXPECT_THAT(Taken(spillway_client_options_set_max_attempts(options.get(), 0)),
              HasSubstr("attempts is 0; it has to be at least 1"));
  EXPECT_THAT(Taken(spillway_client_options_set_unary_max_bytes(options.get(), -1)),
              HasSubstr("bytes is -1; it has to be at least 0"));
}

// Of every function that takes one: no view of so many bytes is made, for which absl would end the
// process.
TEST(CApiArgumentTest, SizesThatNoMessageHas) {
  const auto client = NewClient();
  spillway_client* const c = client.get();
  constexpr char kBytes[] = "x";
  for (const size_t size :
       {size_t{1} << 31, size_t{3} << 30, SIZE_MAX / 2, SIZE_MAX / 2 + 1, SIZE_MAX}) {
    spillway_buffer* out = nullptr;
    spillway_buffer* report = nullptr;
    const std::map<std::string, spillway_status*> answers = {
        {"graph of rewrite_graph",
         spillway_rewrite_graph(c, kBytes, size, nullptr, 0, nullptr, &out, &report)},
        {"options of rewrite_graph",
         spillway_rewrite_graph(c, kBytes, 0, kBytes, size, nullptr, &out, nullptr)},
        {"request of rewrite", spillway_rewrite(c, kBytes, size, nullptr, &out)},
        {"graph of inspect",
         spillway_inspect(c, kBytes, size, nullptr, 0, nullptr, nullptr, nullptr, &out)},
        {"options of inspect",
         spillway_inspect(c, kBytes, 0, kBytes, size, nullptr, nullptr, nullptr, &out)},
        {"graph of simulate", spillway_simulate(c, kBytes, size, nullptr, 0, nullptr, &out)},
        {"options of simulate", spillway_simulate(c, kBytes, 0, kBytes, size, nullptr, &out)},
        {"graph of explore",
         spillway_explore(c, kBytes, size, nullptr, 0, nullptr, nullptr, nullptr, &out)},
        {"options of explore",
         spillway_explore(c, kBytes, 0, kBytes, size, nullptr, nullptr, nullptr, &out)},
        {"a of diff", spillway_diff(c, kBytes, size, kBytes, 0, nullptr, &out)},
        {"b of diff", spillway_diff(c, kBytes, 0, kBytes, size, nullptr, &out)},
        {"report of draw, a step",
         spillway_draw("SimulateReport", kBytes, size, nullptr, 0, "svg", "", "", &out)},
        {"before of draw, a step",
         spillway_draw("SimulateReport", kBytes, 0, kBytes, size, "svg", "", "", &out)},
        {"report of draw, sizes",
         spillway_draw("ExploreReport", kBytes, size, nullptr, 0, "svg", "", "", &out)},
        {"report of draw, a run",
         spillway_draw("RunMetadata", kBytes, size, nullptr, 0, "trace", "", "", &out)},
        {"message of text", spillway_text("SimulateReport", kBytes, size, &out)},
        {"report of check", spillway_check(kBytes, size, kBytes, 1, &out)},
        {"run_metadata of check", spillway_check(kBytes, 0, kBytes, size, &out)},
        {"json of message_from_json", spillway_message_from_json("Plan", kBytes, size, &out)},
        {"message of message_to_json", spillway_message_to_json("Plan", kBytes, size, &out)},
    };
    for (const auto& [what, status] : answers) {
      SCOPED_TRACE(what);
      const std::string argument = what.substr(0, what.find(' '));
      EXPECT_THAT(Taken(status), StartsWith("8 LIMIT_EXCEEDED " + argument + " has " +
                                            std::to_string(size) + " bytes"));
    }
    EXPECT_EQ(out, nullptr);
    EXPECT_EQ(report, nullptr);
  }
}

TEST(CApiArgumentTest, BytesThatAreNoMessageAreNamed) {
  const auto client = NewClient();
  spillway_buffer* out = nullptr;
  EXPECT_THAT(Taken(spillway_rewrite(client.get(), "\xff", 1, nullptr, &out)),
              HasSubstr("request is not a serialized spillway.v1.RewriteRequest (1 byte)"));
  EXPECT_THAT(Taken(spillway_rewrite_graph(client.get(), "", 0, "\xff", 1, nullptr, &out, nullptr)),
              HasSubstr("options is not a serialized spillway.v1.RewriteOptions (1 byte)"));
}

TEST(CApiTest, GpuMemoryIsThatOfNvidiaSmi) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const testing::TempDir dir;
  const std::string script = dir.Write("nvidia-smi", "#!/bin/sh\necho 16280, 6.0\n");
  ASSERT_EQ(chmod(script.c_str(), 0700), 0);
  const auto found = [](const std::string& programs) {
    setenv("PATH", programs.c_str(), 1);
    int64_t bytes = -1;
    EXPECT_EQ(Taken(spillway_find_gpu_memory(&bytes)), kOk);
    return bytes;
  };
  // Asked once in a process: so in some of their own.
  const int64_t usable = internal::UsableBytes(int64_t{16280} << 20, 6);
  EXPECT_EXIT(exit(found(dir / "") == usable && found("/nowhere") == usable ? 0 : 1),
              ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(exit(found("/nowhere") == 0 && found(dir / "") == 0 ? 0 : 1),
              ::testing::ExitedWithCode(0), "");
}

TEST(CApiTest, PicturesOfMessages) {
  v1::SimulateReport report;
  report.mutable_forecast()->add_devices()->set_device("/gpu:0");
  report.mutable_simulated()->set_step_time_ns(1000);
  report.add_memory()->add_timeline()->set_bytes(256);
  const std::string bytes = report.SerializeAsString();
  const auto draw = [&](const char* name, const char* format, const char* theme,
                        const std::string& before, std::string* picture) {
    spillway_buffer* out = nullptr;
    const std::string said = Taken(spillway_draw(name, bytes.data(), bytes.size(), before.data(),
                                                 before.size(), format, theme, "<title>", &out));
    const COwner<spillway_buffer> owner(out);
    *picture = std::string(spillway_buffer_data(out), spillway_buffer_size(out));
    return said;
  };
  std::string picture, other;
  EXPECT_EQ(draw("SimulateReport", "svg", nullptr, "", &picture), kOk);
  EXPECT_THAT(picture, HasSubstr("&lt;title&gt;"));
  EXPECT_THAT(picture, HasSubstr("prefers-color-scheme"));
  EXPECT_EQ(draw("SimulateReport", "svg", "dark", bytes, &other), kOk);
  EXPECT_THAT(other, HasSubstr("before: "));
  EXPECT_EQ(draw("SimulateReport", "html", "auto", "", &other), kOk);
  EXPECT_THAT(other, HasSubstr("<!DOCTYPE html>"));
  EXPECT_EQ(draw("SimulateReport", "trace", nullptr, "", &other), kOk);
  EXPECT_THAT(other, HasSubstr("\"traceEvents\""));
  EXPECT_THAT(draw("SimulateReport", "gif", nullptr, "", &other),
              HasSubstr("format is 'gif'; give one of svg, html, trace"));
  EXPECT_THAT(draw("SimulateReport", "svg", "blue", "", &other), HasSubstr("theme is 'blue'"));
  EXPECT_THAT(draw("Report", "svg", nullptr, "", &other), HasSubstr("name is 'Report'"));
  EXPECT_THAT(draw("SimulateReport", "trace", nullptr, bytes, &other), HasSubstr("before needs"));
  EXPECT_THAT(draw("ExploreReport", "trace", nullptr, "", &other), HasSubstr("format is trace"));
  EXPECT_THAT(draw("SimulateReport", "svg", nullptr, "\xff", &other),
              HasSubstr("before is not a serialized"));
  EXPECT_THAT(draw("RunMetadata", "svg", nullptr, "", &other), HasSubstr("there is only a trace"));
  EXPECT_THAT(draw("RunMetadata", "trace", nullptr, "", &other), HasSubstr("FULL_TRACE"));
}

TEST(CApiTest, TextsAndChecks) {
  const std::string run = testing::ReadTestGraph("mnist_deep/run_metadata.pb");
  v1::RewriteReport report;
  report.mutable_forecast_before()->set_step_time_ns(1'500'000);
  report.mutable_forecast_before()->add_devices();
  const auto check = [&](const std::string& bytes, const std::string& trace, std::string* text) {
    spillway_buffer *found = nullptr, *out = nullptr;
    std::string said =
        Taken(spillway_check(bytes.data(), bytes.size(), trace.data(), trace.size(), &found));
    const COwner<spillway_buffer> found_owner(found);
    if (said != kOk) return said;
    const std::string message = Bytes(found);
    said = Taken(spillway_text("RunCheck", message.data(), message.size(), &out));
    const COwner<spillway_buffer> owner(out);
    *text = Bytes(out);
    return said;
  };
  std::string text;
  EXPECT_EQ(check(report.SerializeAsString(), run, &text), kOk);
  EXPECT_THAT(text, HasSubstr("this graph has no swaps\n"));
  EXPECT_THAT(text, HasSubstr("  step, launched ahead  "));
  EXPECT_THAT(text, HasSubstr("1.5 ms"));
  v1::TensorSwap* swap = report.add_swaps();
  swap->set_tensor("elsewhere:0");
  EXPECT_THAT(
      check(report.SerializeAsString(), run, &text),
      HasSubstr("3 BAD_OPTION run_metadata belongs to another graph: neither 'elsewhere:0'"));
  EXPECT_THAT(check(report.SerializeAsString(), "", &text),
              HasSubstr("run_metadata holds no step"));
  EXPECT_THAT(check(report.SerializeAsString(), run.substr(0, run.size() - 1), &text),
              HasSubstr("run_metadata is damaged"));
  EXPECT_THAT(check("\xff", run, &text), HasSubstr("report is not a serialized"));
  spillway_buffer* out = nullptr;
  EXPECT_THAT(Taken(spillway_text("RunCheck", "\xff", 1, &out)),
              HasSubstr("3 BAD_OPTION message is not a serialized spillway.v1.RunCheck (1 byte)"));
  EXPECT_EQ(out, nullptr);
  // The trace as a picture, beside the simulated step.
  EXPECT_EQ(Taken(spillway_draw("RunMetadata", run.data(), run.size(), nullptr, 0, "trace", nullptr,
                                nullptr, &out)),
            kOk);
  const COwner<spillway_buffer> owner(out);
  EXPECT_THAT(Bytes(out), HasSubstr("\"measured: /job:localhost"));
}

TEST(CApiJsonTest, OptionsThereAndBack) {
  const std::string json = R"({"scope": {"n_tensors": 4}, "min_tensor_bytes": "7"})";
  spillway_buffer* message = nullptr;
  ASSERT_EQ(Taken(spillway_message_from_json("RewriteOptions", json.data(), json.size(), &message)),
            kOk);
  const COwner<spillway_buffer> owner(message);
  v1::RewriteOptions options;
  ASSERT_TRUE(options.ParseFromString(Bytes(message)));
  EXPECT_EQ(options.scope().n_tensors(), 4);
  EXPECT_EQ(options.min_tensor_bytes(), 7);
  spillway_buffer* text = nullptr;
  ASSERT_EQ(
      Taken(spillway_message_to_json("spillway.v1.RewriteOptions", spillway_buffer_data(message),
                                     spillway_buffer_size(message), &text)),
      kOk);
  const COwner<spillway_buffer> text_owner(text);
  EXPECT_THAT(spillway_buffer_data(text), HasSubstr("\"n_tensors\": 4"));
  EXPECT_THAT(spillway_buffer_data(text), HasSubstr("\"min_tensor_bytes\": \"7\""));
}

TEST(CApiJsonTest, WhatIsNotKnownIsAnError) {
  spillway_buffer* out = nullptr;
  const auto from = [&out](const char* name, const std::string& json) {
    return Taken(spillway_message_from_json(name, json.data(), json.size(), &out));
  };
  EXPECT_THAT(from("RewriteOptions", R"({"min_tensor_byte": 7})"), HasSubstr("min_tensor_byte"));
  EXPECT_THAT(from("RewriteOptions", R"({"scope": {"lb": "three"}})"), HasSubstr("three"));
  EXPECT_THAT(from("RewriteOptions", "{"), HasSubstr("3 BAD_OPTION json is not a"));
  EXPECT_THAT(from("RewriteOptions", std::string(100'000, '[')), HasSubstr("3 BAD_OPTION json"));
  EXPECT_THAT(from("Options", "{}"), HasSubstr("name is 'Options'; spillway.v1 has no message"));
  EXPECT_THAT(from("google.protobuf.Any", "{}"), HasSubstr("no message of that name"));
  EXPECT_EQ(out, nullptr);
}

// The smallest class that the helper takes.
struct Message {
  std::string bytes;
  std::string SerializeAsString() const { return bytes; }
  bool ParseFromArray(const void* data, int size) {
    bytes.assign(static_cast<const char*>(data), size);
    return readable;
  }
  static bool readable;
};
bool Message::readable = true;

TEST(RewriteMessageTest, ReplacesTheMessageHereAndOnAServer) {
  TestServer server;
  for (const std::string& target : {std::string(), server.target()}) {
    Message graph{ReadFile(kMnistPath)};
    RewriteMessageOptions options;
    options.target = target;
    options.options_json = R"({"scope": {"optimizer_scopes": ["adam_optimizer"]}})";
    const RewriteMessageResult result = RewriteMessage(options, &graph);
    ASSERT_TRUE(result.ok()) << result.message;
    EXPECT_EQ(graph.bytes, ExpectedMnist());
    EXPECT_THAT(result.report_json, HasSubstr("OUTCOME_REWRITTEN"));
  }
}

TEST(RewriteMessageTest, TalksTlsBothWays) {
  const test_certs::TestCa ca("CA");
  const test_certs::TempFolder folder;
  const test_certs::CertAndKey server_pair = ca.Issue();
  const test_certs::CertAndKey own = ca.Issue();
  grpc::SslServerCredentialsOptions credentials(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  credentials.pem_key_cert_pairs = {{server_pair.key, server_pair.cert}};
  credentials.pem_root_certs = ca.cert();
  testing::ServerOptions server_options;
  server_options.credentials = grpc::SslServerCredentials(credentials);
  TestServer server(server_options);

  RewriteMessageOptions options;
  options.options_json = R"({"scope": {}})";  // Which swaps something also in a graph that fits.
  options.target = server.target();
  options.tls = true;
  options.tls_ca_file = folder.Write("ca.pem", ca.cert());
  options.tls_cert_file = folder.Write("own.pem", own.cert);
  options.tls_key_file = folder.Write("own.key", own.key);
  Message graph{ReadFile(kMnistPath)};
  const RewriteMessageResult result = RewriteMessage(options, &graph);
  EXPECT_TRUE(result.ok()) << result.message;
  EXPECT_NE(graph.bytes, ReadFile(kMnistPath));
  // The certificate does not hold this name. Files named here are used.
  options.tls = false;
  EXPECT_EQ(RewriteMessage(options, &graph).code, 0);
  options.tls_server_name = "elsewhere.example";
  EXPECT_EQ(RewriteMessage(options, &graph).code, 14);
}

TEST(RewriteMessageTest, AnErrorLeavesTheMessage) {
  Message graph{"no graph"};
  const RewriteMessageResult result = RewriteMessage(RewriteMessageOptions(), &graph);
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.reason, "MALFORMED_GRAPH");
  EXPECT_EQ(graph.bytes, "no graph");

  graph.bytes = ReadFile(kMnistPath);
  RewriteMessageOptions options;
  options.timeout_ms = 0;
  EXPECT_EQ(RewriteMessage(options, &graph).code, 4);
  options = RewriteMessageOptions();
  options.options_json = "{";
  EXPECT_EQ(RewriteMessage(options, &graph).reason, "BAD_OPTION");
  Message::readable = false;
  options.options_json = R"({"scope": {}})";
  EXPECT_EQ(RewriteMessage(options, &graph).code, 13);
  Message::readable = true;
  EXPECT_EQ(graph.bytes, ReadFile(kMnistPath));
}

}  // namespace
}  // namespace spillway
