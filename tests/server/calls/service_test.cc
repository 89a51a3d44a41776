// The methods, from a client's view.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "rewrite_core/base/crc32c.h"
#include "rewrite_core/rewriter.h"
#include "rewrite_core/strategy/strategies.h"
#include "tests/server/fake_core.h"
#include "tests/server/raw_stream.h"
#include "tests/server/server_fixture.h"

namespace spillway::server {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Le;

class ServiceTest : public ServerFixture {};

v1::RewriteRequest RequestWith(const std::string& graph) {
  v1::RewriteRequest request;
  request.set_graph_def(graph);
  *request.mutable_options() = ScopeOptions();
  return request;
}

TEST_F(ServiceTest, UnaryGivesWhatTheCoreGives) {
  const std::string graph = SmallGraph();
  ASSERT_GT(graph.size(), 70'000u);
  const auto expected =
      core::Rewrite(graph, ScopeOptions(), core::DefaultLimits(), core::StopToken());
  ASSERT_TRUE(expected.ok()) << expected.status();
  v1::RewriteResponse response;
  const grpc::Status status = client_->Rewrite(RequestWith(graph), &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.graph_def(), expected->graph_def());
  EXPECT_EQ(response.report().outcome(), expected->report().outcome());
  EXPECT_EQ(response.report().strategy(), v1::STRATEGY_SCOPE);

  EXPECT_TRUE(Eventually([&] { return Requests("Rewrite", "OK") == 1; }));
  EXPECT_EQ(Metric("spillway_input_bytes_total{method=\"Rewrite\"}"), graph.size());
  EXPECT_EQ(Metric("spillway_output_bytes_total{method=\"Rewrite\"}"),
            expected->graph_def().size());
  EXPECT_EQ(Metric("spillway_request_duration_seconds_count{method=\"Rewrite\"}"), 1);
  EXPECT_EQ(Metric("spillway_queue_wait_seconds_count"), 1);
}

TEST_F(ServiceTest, StreamGivesTheSameBytesForEveryChunkSize) {
  const std::string graph = LargeGraph();
  ASSERT_GT(graph.size(), 1u << 20);
  v1::RewriteResponse unary;
  ASSERT_TRUE(client_->Rewrite(RequestWith(graph), &unary).ok());
  for (const size_t chunk_bytes :
       {size_t{1000}, size_t{64} << 10, size_t{1} << 20, size_t{4} << 20}) {
    const StreamAnswer answer = client_->StreamRewrite(graph, ScopeOptions(), chunk_bytes);
    ASSERT_TRUE(answer.status.ok()) << chunk_bytes << answer.status.error_message();
    EXPECT_TRUE(answer.graph == unary.graph_def()) << chunk_bytes;
    EXPECT_EQ(answer.header.graph().total_size_bytes(), unary.graph_def().size());
    EXPECT_EQ(answer.header.graph().sha256(), DigestOf(unary.graph_def()));
    EXPECT_EQ(answer.header.graph().crc32c(), core::ExtendCrc32cByTable(0, unary.graph_def()));
    EXPECT_EQ(answer.header.report().outcome(), unary.report().outcome());
  }
  EXPECT_TRUE(Eventually([&] { return Requests("StreamRewrite", "OK") == 4; }));
  EXPECT_EQ(Metric("spillway_input_bytes_total{method=\"StreamRewrite\"}"), 4.0 * graph.size());
  EXPECT_EQ(Metric("spillway_output_bytes_total{method=\"StreamRewrite\"}"),
            4.0 * unary.graph_def().size());
}

// The digest takes time to compute: only a request that has one gets one.
TEST_F(ServiceTest, StreamAnswersWithASha256OnlyWhereOneCame) {
  const std::string graph = SmallGraph();
  for (const bool given : {true, false}) {
    grpc::ClientContext context;
    const auto stream = client_->stub().StreamRewrite(&context);
    v1::StreamRewriteRequest header = HeaderMessage(graph.size(), given ? DigestOf(graph) : "");
    *header.mutable_header()->mutable_options() = ScopeOptions();
    stream->Write(header);
    stream->Write(ChunkMessage(graph));
    stream->WritesDone();
    v1::StreamRewriteResponse first, rest;
    ASSERT_TRUE(stream->Read(&first));
    while (stream->Read(&rest)) continue;
    EXPECT_TRUE(stream->Finish().ok());
    EXPECT_EQ(first.header().graph().sha256().empty(), !given);
    EXPECT_TRUE(first.header().graph().has_crc32c());
  }
}

TEST_F(ServiceTest, StreamAnswersInChunksOfOneMebibyte) {
  Options options = TestOptions();
  options.rewrite = &FakeRewrite;  // Echoes, so that the sizes are known.
  Start(options);
  constexpr size_t kChunk = 1 << 20;
  const std::string bytes(3 * kChunk + 5, 'g');
  const StreamAnswer answer = client_->StreamRewrite(bytes, ScopeOptions(), kChunk);
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_THAT(answer.chunk_sizes, ElementsAre(kChunk, kChunk, kChunk, 5));
  EXPECT_TRUE(answer.graph == bytes);
}

TEST_F(ServiceTest, StreamWithoutGraphAskedForHasNoChunks) {
  Options options = TestOptions();
  options.rewrite = [](absl::string_view, const v1::RewriteOptions&, const v1::Limits&,
                       const core::StopToken&,
                       core::PlanReuse*) -> absl::StatusOr<v1::RewriteResponse> {
    v1::RewriteResponse response;
    response.mutable_report()->set_summary("only this");
    return response;
  };
  Start(options);
  v1::RewriteOptions asked = ScopeOptions();
  asked.add_outputs(v1::OUTPUT_REPORT);
  const StreamAnswer answer = client_->StreamRewrite("graph", asked, 100);
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.header.report().summary(), "only this");
  EXPECT_EQ(answer.header.graph().total_size_bytes(), 0);
  EXPECT_EQ(answer.header.graph().sha256(), "");
  EXPECT_TRUE(answer.chunk_sizes.empty());
}

TEST_F(ServiceTest, SwapCountersMoveOnAScrape) {
  Options options = TestOptions();
  options.rewrite = &FakeRewrite;
  Start(options);
  v1::RewriteRequest request = RequestWith("graph");
  request.mutable_options()->add_outputs(v1::OUTPUT_GRAPH);  // Not the report.
  v1::RewriteResponse response;
  ASSERT_TRUE(client_->Rewrite(request, &response).ok());
  EXPECT_FALSE(response.has_report());
  ASSERT_TRUE(client_->StreamRewrite("graph", ScopeOptions(), 5).status.ok());
  EXPECT_EQ(Metric("spillway_swapped_tensors_total{strategy=\"scope\"}"), 10);
  EXPECT_EQ(Metric("spillway_swap_out_bytes_per_step_total{strategy=\"scope\"}"), 4002);
  EXPECT_EQ(Metric("spillway_swap_in_bytes_per_step_total{strategy=\"scope\"}"), 12002);
}

TEST_F(ServiceTest, ErrorsOfTheCoreKeepCodeAndReason) {
  v1::RewriteResponse response;
  const grpc::Status unary = client_->Rewrite(RequestWith(""), &response);
  EXPECT_EQ(unary.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(InfoOf(unary).reason(), "EMPTY_GRAPH");
  EXPECT_EQ(InfoOf(unary).domain(), "spillway.v1");
  EXPECT_TRUE(Eventually([&] { return Requests("Rewrite", "INVALID_ARGUMENT") == 1; }));
}

// The core refuses invalid options; the service checks the fields beside them.
TEST_F(ServiceTest, ARequestOfANewerClientIsRefused) {
  v1::RewriteRequest request = RequestWith(SmallGraph());
  request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(4000, "graph");
  v1::RewriteResponse response;
  const grpc::Status status = client_->Rewrite(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(InfoOf(status).reason(), "UNKNOWN_OPTION");
  EXPECT_THAT(status.error_message(), HasSubstr("RewriteRequest has field 4000"));
}

TEST_F(ServiceTest, TooLargeAnswerIsOutOfRange) {
  Options options = TestOptions();
  options.rewrite = &FakeRewrite;
  options.max_response_bytes = 1000;
  Start(options);
  v1::RewriteResponse response;
  const std::string graph(1001, 'g');
  const grpc::Status unary = client_->Rewrite(RequestWith(graph), &response);
  EXPECT_EQ(unary.error_code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(InfoOf(unary).reason(), "RESULT_TOO_LARGE");
  const StreamAnswer stream = client_->StreamRewrite(graph, ScopeOptions(), 500);
  EXPECT_EQ(stream.status.error_code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(InfoOf(stream.status).reason(), "RESULT_TOO_LARGE");
}

TEST_F(ServiceTest, UnaryRequestAboveItsLimitIsSentToTheStream) {
  Options options = TestOptions();
  options.limits.set_max_unary_bytes(1000);
  options.limits.set_max_chunk_bytes(1000);
  Start(options);
  v1::RewriteResponse response;
  const grpc::Status just_above = client_->Rewrite(RequestWith(std::string(1000, 'g')), &response);
  EXPECT_EQ(just_above.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(InfoOf(just_above).reason(), "LIMIT_EXCEEDED");
  EXPECT_THAT(just_above.error_message(), HasSubstr("StreamRewrite"));
  // Far above the limit: the transport refuses it before it is read.
  const grpc::Status far = client_->Rewrite(RequestWith(std::string(8 << 20, 'g')), &response);
  EXPECT_EQ(far.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(ServiceTest, CapabilitiesAreWhatIsInForce) {
  Options options = TestOptions();
  options.limits.set_max_concurrent_requests(3);
  options.limits.set_max_inflight_bytes(int64_t{3} << 30);
  options.memory_budget_bytes = int64_t{4} << 30;
  options.limits.set_max_node_count(77);
  Start(options);
  grpc::ClientContext context;
  v1::GetCapabilitiesResponse response;
  ASSERT_TRUE(client_->stub().GetCapabilities(&context, {}, &response).ok());
  EXPECT_EQ(response.version(), core::Version());
  EXPECT_THAT(response.strategies(), ::testing::ElementsAreArray(core::Strategies()));
  EXPECT_EQ(response.limits().SerializeAsString(), options.limits.SerializeAsString());
  EXPECT_EQ(Metric("spillway_workers"), 3);
  EXPECT_EQ(Metric("spillway_inflight_bytes_limit"), 3.0 * (1 << 30));
}

TEST_F(ServiceTest, ZeroWorkersMeansAllCoresAndIsServedAsANumber) {
  Options options = TestOptions();
  options.limits.set_max_concurrent_requests(0);
  Start(options);
  grpc::ClientContext context;
  v1::GetCapabilitiesResponse response;
  ASSERT_TRUE(client_->stub().GetCapabilities(&context, {}, &response).ok());
  EXPECT_GE(response.limits().max_concurrent_requests(), 1);
}

TEST_F(ServiceTest, HealthIsServingForBothNamesAndNoOther) {
  for (const char* name : {"", "spillway.v1.RewriteService"}) {
    RawStream check(client_->channel(), "/grpc.health.v1.Health/Check", HealthRequest(name));
    EXPECT_EQ(check.Next(), kServing) << name;
  }
  RawStream other(client_->channel(), "/grpc.health.v1.Health/Check", HealthRequest("other"));
  EXPECT_EQ(other.Next(), std::nullopt);
}

TEST_F(ServiceTest, ReflectionListsTheService) {
  // A ServerReflectionRequest with list_services (field 7) set to "*".
  RawStream reflection(client_->channel(),
                       "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                       "\x3a\x01*");
  const std::optional<std::string> answer = reflection.Next();
  ASSERT_TRUE(answer.has_value());
  EXPECT_THAT(*answer, HasSubstr("spillway.v1.RewriteService"));
  EXPECT_THAT(*answer, HasSubstr("grpc.health.v1.Health"));
}

TEST_F(ServiceTest, ReflectionTellsHealthAndErrorDetails) {
  const std::pair<const char*, const char*> kFiles[] = {
      {"grpc.health.v1.Health", "grpc/health/v1/health.proto"},
      {"google.rpc.ErrorInfo", "google/rpc/error_details.proto"},
      {"google.rpc.Status", "google/rpc/status.proto"},
  };
  for (const auto& [symbol, file] : kFiles) {
    // A ServerReflectionRequest with file_containing_symbol (field 4). The answer repeats it, but
    // only its descriptor contains the file's name.
    const std::string request =
        absl::StrCat("\x22", std::string(1, static_cast<char>(std::strlen(symbol))), symbol);
    RawStream reflection(client_->channel(),
                         "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", request);
    const std::optional<std::string> answer = reflection.Next();
    ASSERT_TRUE(answer.has_value()) << symbol;
    EXPECT_THAT(*answer, HasSubstr(file)) << symbol;
  }
}

TEST_F(ServiceTest, TakenAddressesAreErrorsThatNameThem) {
  Options options = TestOptions();
  options.listen = {address()};
  const absl::Status listen = Server::BuildAndStart(options).status();
  EXPECT_EQ(listen.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(listen.message()), HasSubstr(address()));
  EXPECT_THAT(std::string(listen.message()), HasSubstr("--listen"));
  EXPECT_THAT(std::string(listen.message()), HasSubstr("Address already in use"));

  options = TestOptions();
  options.metrics_listen = "127.0.0.1:0";
  Start(options);
  options.metrics_listen = absl::StrCat("127.0.0.1:", server_->metrics_port());
  const absl::Status metrics = Server::BuildAndStart(options).status();
  EXPECT_EQ(metrics.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(metrics.message()), HasSubstr(options.metrics_listen));
  EXPECT_THAT(std::string(metrics.message()), HasSubstr("--metrics-listen"));
}

TEST_F(ServiceTest, ScrapeOverHttpIsTheSame) {
  Options options = TestOptions();
  options.metrics_listen = "127.0.0.1:0";
  Start(options);
  v1::RewriteResponse response;
  ASSERT_TRUE(client_->Rewrite(RequestWith(SmallGraph()), &response).ok());
  EXPECT_TRUE(NothingInFlight());
  const std::string http = HttpGet(server_->metrics_port(), "/metrics");
  for (const absl::string_view line : absl::StrSplit(Scrape(), '\n')) {
    if (!absl::StartsWith(line, "spillway_")) continue;
    EXPECT_THAT(http, HasSubstr(std::string(line)));
  }
}

TEST_F(ServiceTest, TheMetricsPortSaysWhatItIs) {
  Options options = TestOptions();
  options.metrics_listen = "127.0.0.1:0";
  Start(options);
  const int port = server_->metrics_port();
  const std::string page = HttpGet(port, "/");
  EXPECT_THAT(page, HasSubstr(absl::StrCat("spillwayd ", core::Version())));
  EXPECT_THAT(page, HasSubstr("/metrics"));
  EXPECT_THAT(page, HasSubstr("spillway health --server"));
  // A query changes nothing, and is not in the answer.
  EXPECT_EQ(HttpGet(port, "/?q=<script>"), page);
  // Other paths stay, and no new ones exist.
  EXPECT_THAT(HttpGet(port, "/metrics"), HasSubstr("spillway_requests_total"));
  EXPECT_EQ(HttpGet(port, "/other"), "");
  EXPECT_EQ(HttpGet(port, "/../etc/passwd"), "");
}

// A connection that sends nothing does not keep others out: a scraper gives up after ten seconds.
TEST_F(ServiceTest, ScrapersThatSayNothingBlockNobody) {
  Options options = TestOptions();
  options.metrics_listen = "127.0.0.1:0";
  Start(options);
  std::vector<int> silent;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(server_->metrics_port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < 12; ++i) {
    silent.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(silent.back(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    (void)!write(silent.back(), "GET /metrics HTTP/1.1\r\n", 23);
  }
  const absl::Time begin = absl::Now();
  EXPECT_NE(HttpGet(server_->metrics_port(), "/metrics"), "");
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
  for (const int fd : silent) close(fd);
}

TEST(ServerTest, MetricsCanBeOff) {
  Options options = TestOptions();
  options.metrics_listen = "none";
  const auto server = Server::BuildAndStart(options);
  ASSERT_TRUE(server.ok());
  EXPECT_EQ((*server)->metrics_port(), 0);
  EXPECT_EQ(Sample((*server)->Scrape(), "spillway_inflight_requests"), 0);
  EXPECT_GT((*server)->port(), 0);
}

}  // namespace
}  // namespace spillway::server
