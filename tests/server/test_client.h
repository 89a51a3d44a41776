// A client of the service for tests, and other needs of server tests.
#ifndef SPILLWAY_TESTS_SERVER_TEST_CLIENT_H_
#define SPILLWAY_TESTS_SERVER_TEST_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/options.h"
#include "spillway/v1/error.pb.h"
#include "spillway/v1/rewrite_service.grpc.pb.h"

namespace spillway::server {

// How long tests wait for required events. Long, because it only passes if a test fails.
inline constexpr absl::Duration kPatience = absl::Seconds(60);

// True once `condition` holds; false if it does not within kPatience.
bool Eventually(const std::function<bool()>& condition);

// A graph that the core takes, from tests/graphs: 72 KiB, and about 1 MiB.
std::string SmallGraph();
std::string LargeGraph();
// Options that fit both.
v1::RewriteOptions ScopeOptions();

// A server's options for tests: a free port, no scrapes (their listener takes
// two seconds to end), one worker, no idle timeout, memory of its own
// account, and waits of any length.
Options TestOptions();

// The ErrorInfo that a google.rpc client would find in `status`; empty without one.
v1::ErrorInfo InfoOf(const grpc::Status& status);

// The answer of StreamRewrite put together, and how it came.
struct StreamAnswer {
  grpc::Status status;
  v1::StreamRewriteResult header;
  std::string graph;
  std::vector<size_t> chunk_sizes;
};

using Stream = grpc::ClientReaderWriter<v1::StreamRewriteRequest, v1::StreamRewriteResponse>;

// The socket of a connection to 127.0.0.1:`port` from the address 127.0.0.`host`.
int ConnectFrom(int host, int port);

class TestClient {
 public:
  explicit TestClient(const std::string& address);
  // Of 127.0.0.1, from the address 127.0.0.`host`. Does not connect again.
  TestClient(int port, int host);

  grpc::Status Rewrite(const v1::RewriteRequest& request, v1::RewriteResponse* response);
  // Sends `graph` in chunks of `chunk_bytes` with the right size and digest.
  StreamAnswer StreamRewrite(const std::string& graph, const v1::RewriteOptions& options,
                             size_t chunk_bytes);
  // Sends these messages as they are, then half-closes.
  StreamAnswer SendAll(const std::vector<v1::StreamRewriteRequest>& messages);

  v1::RewriteService::Stub& stub() { return *stub_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::RewriteService::Stub> stub_;
};

v1::StreamRewriteRequest HeaderMessage(int64_t total_size_bytes, const std::string& sha256 = "");
v1::StreamRewriteRequest ChunkMessage(absl::string_view bytes);
std::string DigestOf(absl::string_view bytes);

// Reads the answer of a stream up to its status.
StreamAnswer ReadAnswer(Stream& stream);

}  // namespace spillway::server

#endif  // SPILLWAY_TESTS_SERVER_TEST_CLIENT_H_
