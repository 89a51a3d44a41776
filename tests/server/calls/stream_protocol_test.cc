// Streams that violate the protocol, end early or stall, over a real connection. The table of all
// violations is in stream_assembler_test.cc; here each must reach the client, and the server must
// hold nothing afterwards (ServerFixture::TearDown).
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/server/fake_core.h"
#include "tests/server/server_fixture.h"

namespace spillway::server {
namespace {

using grpc::StatusCode;
using Messages = std::vector<v1::StreamRewriteRequest>;

class StreamProtocolTest : public ServerFixture {};

struct BadStream {
  const char* name;
  Messages messages;
  StatusCode code;
  const char* reason;
  const char* strategy = "scope";  // The label; unknown until a header is accepted.
};

TEST_F(StreamProtocolTest, EveryViolationReachesTheClient) {
  Options options = TestOptions();
  options.limits.set_max_graph_bytes(10'000);
  options.limits.set_max_chunk_bytes(1000);
  Start(options);
  constexpr StatusCode kInvalid = StatusCode::INVALID_ARGUMENT;
  constexpr StatusCode kExhausted = StatusCode::RESOURCE_EXHAUSTED;
  const std::string kilobyte(1000, 'g');
  const BadStream cases[] = {
      {"nothing at all", {}, kInvalid, "BAD_STREAM", "unknown"},
      {"no header", {ChunkMessage("a")}, kInvalid, "BAD_STREAM", "unknown"},
      {"empty message", {v1::StreamRewriteRequest()}, kInvalid, "BAD_STREAM", "unknown"},
      {"no size", {HeaderMessage(0)}, kInvalid, "BAD_STREAM", "unknown"},
      {"graph above limit", {HeaderMessage(10'001)}, kExhausted, "LIMIT_EXCEEDED", "unknown"},
      {"second header", {HeaderMessage(5), HeaderMessage(5)}, kInvalid, "BAD_STREAM"},
      {"too many bytes", {HeaderMessage(2), ChunkMessage("abc")}, kInvalid, "BAD_STREAM"},
      {"too few bytes", {HeaderMessage(2), ChunkMessage("a")}, kInvalid, "BAD_STREAM"},
      {"empty chunk", {HeaderMessage(2), ChunkMessage("")}, kInvalid, "BAD_STREAM"},
      {"chunk above limit",
       {HeaderMessage(5000), ChunkMessage(kilobyte + "g")},
       kExhausted,
       "LIMIT_EXCEEDED"},
      {"wrong digest",
       {HeaderMessage(3, DigestOf("other")), ChunkMessage("abc")},
       kInvalid,
       "BAD_STREAM"},
  };
  double invalid = 0, exhausted = 0;
  for (const BadStream& bad : cases) {
    SCOPED_TRACE(bad.name);
    const StreamAnswer answer = client_->SendAll(bad.messages);
    EXPECT_EQ(answer.status.error_code(), bad.code) << answer.status.error_message();
    EXPECT_EQ(InfoOf(answer.status).reason(), bad.reason);
    EXPECT_EQ(answer.graph, "");
    (bad.code == kInvalid ? invalid : exhausted) += 1;
    EXPECT_TRUE(Eventually([&] {
      return Requests("StreamRewrite", "INVALID_ARGUMENT") +
                     Requests("StreamRewrite", "INVALID_ARGUMENT", "unknown") ==
                 invalid &&
             Requests("StreamRewrite", "RESOURCE_EXHAUSTED") +
                     Requests("StreamRewrite", "RESOURCE_EXHAUSTED", "unknown") ==
                 exhausted;
    }));
  }
}

TEST_F(StreamProtocolTest, ErrorComesWhileTheClientStillSends) {
  // The client never half-closes; the answer must not wait for that.
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = client_->stub().StreamRewrite(&context);
  ASSERT_TRUE(stream->Write(HeaderMessage(INT64_MAX)));
  const StreamAnswer answer = ReadAnswer(*stream);
  EXPECT_EQ(answer.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(InfoOf(answer.status).reason(), "LIMIT_EXCEEDED");
}

TEST_F(StreamProtocolTest, ClientThatCancelsMidUploadGivesItsBudgetBack) {
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = client_->stub().StreamRewrite(&context);
  ASSERT_TRUE(stream->Write(HeaderMessage(1'000'000)));
  ASSERT_TRUE(stream->Write(ChunkMessage("first bytes")));
  EXPECT_TRUE(Eventually([&] { return Metric("spillway_inflight_bytes") == 1'000'000; }));
  EXPECT_EQ(Metric("spillway_inflight_requests"), 1);
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::CANCELLED);
  EXPECT_TRUE(NothingInFlight());
  EXPECT_EQ(Requests("StreamRewrite", "CANCELLED"), 1);
}

TEST_F(StreamProtocolTest, ClientThatVanishesMidUploadGivesItsBudgetBack) {
  auto other = std::make_unique<TestClient>(address());
  auto context = std::make_unique<grpc::ClientContext>();
  std::unique_ptr<Stream> stream = other->stub().StreamRewrite(context.get());
  ASSERT_TRUE(stream->Write(HeaderMessage(1'000'000)));
  EXPECT_TRUE(Eventually([&] { return server_->inflight_bytes() == 1'000'000; }));
  stream.reset();  // Drops the call, then the connection, without notice.
  context.reset();
  other.reset();
  EXPECT_TRUE(NothingInFlight());
  EXPECT_EQ(Requests("StreamRewrite", "CANCELLED"), 1);
}

TEST_F(StreamProtocolTest, DeadlineEndsAnUploadThatStandsStill) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Milliseconds(100)));
  const std::unique_ptr<Stream> stream = client_->stub().StreamRewrite(&context);
  ASSERT_TRUE(stream->Write(HeaderMessage(1'000'000)));
  EXPECT_EQ(ReadAnswer(*stream).status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(NothingInFlight());
  EXPECT_EQ(EndedByCaller("StreamRewrite"), 1);
}

// With the real clock.
TEST_F(StreamProtocolTest, UploadThatStandsStillIsCancelledByTheIdleTimeout) {
  Options options = TestOptions();
  options.idle_timeout = absl::Milliseconds(50);
  Start(options);
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = client_->stub().StreamRewrite(&context);
  stream->Write(HeaderMessage(1'000'000));  // False on a machine that is slower than that.
  const grpc::Status status = ReadAnswer(*stream).status;
  EXPECT_EQ(status.error_code(), StatusCode::CANCELLED);
  EXPECT_EQ(InfoOf(status).reason(), "STOPPED");
  EXPECT_THAT(status.error_message(), testing::HasSubstr("50ms (--idle-timeout)"));
  EXPECT_TRUE(NothingInFlight());
}

// The whole graph might take 1,005 seconds.
TEST_F(StreamProtocolTest, UploadIsCancelledOnceItIsBehindTheMinimumRate) {
  Options options = TestOptions();
  options.idle_timeout = absl::InfiniteDuration();
  options.min_upload_rate = 1000;
  options.limits.set_max_chunk_bytes(1000);
  options.clock = &clock_;
  Start(options);
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = client_->stub().StreamRewrite(&context);
  ASSERT_TRUE(stream->Write(HeaderMessage(1'000'000)));
  for (int i = 1; i <= 20; ++i) {  // At the rate.
    ASSERT_TRUE(stream->Write(ChunkMessage(std::string(1000, 'g'))));
    ASSERT_TRUE(Eventually([&] {
      return Metric("spillway_input_bytes_total{method=\"StreamRewrite\"}") == 1000 * i;
    })) << i;
    clock_.Advance(absl::Seconds(1));
  }
  EXPECT_EQ(server_->inflight_requests(), 1);
  ASSERT_TRUE(stream->Write(ChunkMessage("g")));
  ASSERT_TRUE(Eventually(
      [&] { return Metric("spillway_input_bytes_total{method=\"StreamRewrite\"}") == 20'001; }));
  clock_.Advance(absl::Seconds(4));
  EXPECT_EQ(server_->inflight_requests(), 1) << "within its 5 seconds";
  clock_.Advance(absl::Seconds(2));
  const grpc::Status status = ReadAnswer(*stream).status;
  EXPECT_EQ(status.error_code(), StatusCode::CANCELLED);
  EXPECT_EQ(InfoOf(status).reason(), "STOPPED");
  EXPECT_THAT(status.error_message(), testing::HasSubstr("20001 of 1000000 bytes"));
  EXPECT_THAT(status.error_message(), testing::HasSubstr("1000 B per second (--min-upload-rate)"));
  EXPECT_TRUE(NothingInFlight());
}

TEST_F(StreamProtocolTest, ClientThatNeverReadsIsCancelledByTheIdleTimeout) {
  Options options = TestOptions();
  options.idle_timeout = absl::Seconds(60);
  options.clock = &clock_;
  options.rewrite = &FakeRewrite;
  Start(options);
  // More than flow control allows unread.
  const std::string graph(64 << 20, 'g');
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = client_->stub().StreamRewrite(&context);
  ASSERT_TRUE(stream->Write(HeaderMessage(graph.size())));
  for (size_t at = 0; at < graph.size(); at += 1 << 20) {
    ASSERT_TRUE(stream->Write(ChunkMessage(absl::string_view(graph).substr(at, 1 << 20))));
  }
  stream->WritesDone();
  EXPECT_TRUE(Eventually(
      [&] { return Metric("spillway_output_bytes_total{method=\"StreamRewrite\"}") > 0; }));
  EXPECT_TRUE(Eventually([&] {
    clock_.Advance(options.idle_timeout);
    return server_->inflight_requests() == 0;
  }));
  EXPECT_TRUE(NothingInFlight());
  EXPECT_EQ(Requests("StreamRewrite", "CANCELLED"), 1);
  // A status arrives only after earlier messages have been read.
  EXPECT_EQ(ReadAnswer(*stream).status.error_code(), StatusCode::CANCELLED);
}

TEST_F(StreamProtocolTest, WorkIsNotIdleness) {
  Gate gate;
  Options options = TestOptions();
  options.idle_timeout = absl::Seconds(60);
  options.clock = &clock_;
  options.rewrite = gate.AsFunction();
  Start(options);
  StreamAnswer answer;
  std::thread caller([&] { answer = client_->StreamRewrite("graph", ScopeOptions(), 100); });
  EXPECT_TRUE(Eventually([&] { return gate.running() == 1; }));
  clock_.Advance(10 * options.idle_timeout);
  EXPECT_EQ(gate.stopped(), 0);
  gate.Open();
  caller.join();
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
}

}  // namespace
}  // namespace spillway::server
