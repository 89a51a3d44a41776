#include "tests/server/test_client.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "rewrite_core/base/sha256.h"

namespace spillway::server {
namespace {

std::string ReadGraph(const std::string& name) {
  std::ifstream file(absl::StrCat(SPILLWAY_TEST_GRAPHS, "/", name, "/graph_shapes.pb"),
                     std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

bool Eventually(const std::function<bool()>& condition) {
  const absl::Time give_up = absl::Now() + kPatience;
  while (!condition()) {
    if (absl::Now() > give_up) return false;
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

std::string SmallGraph() { return ReadGraph("mnist_deep"); }
std::string LargeGraph() { return ReadGraph("resnet50_tf1_b4"); }

v1::RewriteOptions ScopeOptions() {
  v1::RewriteOptions options;
  options.mutable_scope()->add_optimizer_scopes("adam_optimizer");
  options.mutable_scope()->add_optimizer_scopes("gradients");
  return options;
}

Options TestOptions() {
  Options options;
  options.listen = {"127.0.0.1:0"};
  options.metrics_listen = "none";
  options.limits.set_max_concurrent_requests(1);
  options.idle_timeout = absl::InfiniteDuration();
  options.memory_budget_bytes = int64_t{8} << 30;
  options.max_caller_bytes = options.memory_budget_bytes;
  options.target_wait = absl::InfiniteDuration();
  options.cache_bytes = 0;  // Tests repeat requests, and expect them to be computed.
  return options;
}

v1::ErrorInfo InfoOf(const grpc::Status& status) {
  v1::StatusDetails details;
  v1::ErrorInfo info;
  if (details.ParseFromString(status.error_details()) && details.details_size() == 1) {
    info.ParseFromString(details.details(0).value());
  }
  return info;
}

std::string DigestOf(absl::string_view bytes) {
  return core::Sha256Of(bytes, core::StopToken()).value();
}

v1::StreamRewriteRequest HeaderMessage(int64_t total_size_bytes, const std::string& sha256) {
  v1::StreamRewriteRequest message;
  *message.mutable_header()->mutable_options() = ScopeOptions();
  message.mutable_header()->mutable_graph()->set_total_size_bytes(total_size_bytes);
  message.mutable_header()->mutable_graph()->set_sha256(sha256);
  return message;
}

v1::StreamRewriteRequest ChunkMessage(absl::string_view bytes) {
  v1::StreamRewriteRequest message;
  message.set_chunk(bytes.data(), bytes.size());
  return message;
}

StreamAnswer ReadAnswer(Stream& stream) {
  StreamAnswer answer;
  v1::StreamRewriteResponse message;
  while (stream.Read(&message)) {
    if (message.has_header()) {
      answer.header = message.header();
    } else {
      answer.graph += message.chunk();
      answer.chunk_sizes.push_back(message.chunk().size());
    }
  }
  answer.status = stream.Finish();
  return answer;
}

TestClient::TestClient(const std::string& address) {
  grpc::ChannelArguments arguments;
  // Each client has its own connection: gRPC would share one between channels with equal arguments.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  channel_ = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  stub_ = v1::RewriteService::NewStub(channel_);
}

int ConnectFrom(int host, int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  name.sin_port = htons(static_cast<in_port_t>(port));
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  return fd;
}

TestClient::TestClient(int port, int host) {
  const int fd = ConnectFrom(host, port);
  EXPECT_EQ(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  channel_ = grpc::CreateCustomInsecureChannelFromFd("server", fd, arguments);
  stub_ = v1::RewriteService::NewStub(channel_);
}

grpc::Status TestClient::Rewrite(const v1::RewriteRequest& request, v1::RewriteResponse* response) {
  grpc::ClientContext context;
  return stub_->Rewrite(&context, request, response);
}

StreamAnswer TestClient::StreamRewrite(const std::string& graph, const v1::RewriteOptions& options,
                                       size_t chunk_bytes) {
  std::vector<v1::StreamRewriteRequest> messages = {HeaderMessage(graph.size(), DigestOf(graph))};
  *messages[0].mutable_header()->mutable_options() = options;
  for (size_t at = 0; at < graph.size(); at += chunk_bytes) {
    messages.push_back(ChunkMessage(absl::string_view(graph).substr(at, chunk_bytes)));
  }
  return SendAll(messages);
}

StreamAnswer TestClient::SendAll(const std::vector<v1::StreamRewriteRequest>& messages) {
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = stub_->StreamRewrite(&context);
  for (const v1::StreamRewriteRequest& message : messages) {
    if (!stream->Write(message)) break;  // The server has already answered.
  }
  stream->WritesDone();
  return ReadAnswer(*stream);
}

}  // namespace spillway::server
