// A server for the tests of the client: spillway.v1 over the core, on a port of its own, honest or
// with one of several faults. It shares no code with server/, which makes it a second opinion on
// the protocol.
#ifndef SPILLWAY_TESTS_CLIENT_LIB_TEST_SERVER_H_
#define SPILLWAY_TESTS_CLIENT_LIB_TEST_SERVER_H_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/grpcpp.h"
#include "spillway/v1/rewrite_service.grpc.pb.h"

namespace spillway::testing {

// How the server answers.
enum class Fault {
  kNone,
  kShortAnswer,    // Announces one byte more than it sends.
  kLongAnswer,     // Announces one byte less than it sends.
  kHugeAnswer,     // Announces more than protobuf can read.
  kLargeAnswer,    // Announces the most that protobuf can read.
  kWrongChecksum,  // Sends the checksum of something else.
  kNoChecksum,     // Sends none.
  kNoHeader,       // Sends a chunk first.
  kTwoHeaders,
  kNoAnswer,        // Ends well without a word.
  kEarlyError,      // Fails with OVERLOADED after the header, without reading on.
  kHang,            // Does nothing until the call is cancelled.
  kHangsInAnswer,   // The same, for streams after the headers of the answer.
  kHangsOnce,       // The first time.
  kTransportError,  // Fails as gRPC itself does: without details.
  kBreaksOff,       // Breaks a question off after some of its answer, the first time.
  kOlder,           // Does not know questions, as a server of an older version.
  kNewer,           // Begins streams with a part that no client of today knows.
};

struct ServerOptions {
  Fault fault = Fault::kNone;
  // gRPC refuses larger messages, as it does for a server with a low max_unary_bytes.
  int max_message_bytes = 4 << 20;
  bool healthy = true;
  int port = 0;  // 0: any that is free.
  // How it listens; plain text without any.
  std::shared_ptr<grpc::ServerCredentials> credentials;
  bool has_service = true;  // False: as a server of another major version, which has others.
  std::string pushback_ms;  // Sent as grpc-retry-pushback-ms with the fault kEarlyError, if set.
  absl::Duration delay;     // That every answer takes at least.
  bool dry_run = false;     // Rewrites nothing, for any request.
  absl::Duration max_connection_age = absl::InfiniteDuration();
};

// A server's form of `status`: the code, the message, and the details with their ErrorInfo.
grpc::Status ToGrpc(const absl::Status& status);

inline ServerOptions WithFault(Fault fault) {
  ServerOptions options;
  options.fault = fault;
  return options;
}

// The server runs from construction to destruction.
class TestServer : private v1::RewriteService::Service {
 public:
  explicit TestServer(const ServerOptions& options = {});
  ~TestServer() override;

  // `127.0.0.1:PORT`.
  const std::string& target() const { return target_; }

  // As grpc.health.v1 reports it from now on.
  void SetHealthy(bool healthy);

  // The metadata of the call that came last, and the connections that calls came on.
  std::multimap<std::string, std::string> last_metadata() const;
  std::set<std::string> peers() const;

  // Requests so far.
  int unary_calls() const { return unary_calls_; }
  int stream_calls() const { return stream_calls_; }
  int questions() const { return questions_; }
  int64_t largest_chunk_bytes() const { return largest_chunk_bytes_; }
  // Calls of the fault kHang that have begun, and those that have ended.
  int hanging() const { return hanging_; }
  int released() const { return released_; }

 private:
  using Stream = grpc::ServerReaderWriter<v1::StreamRewriteResponse, v1::StreamRewriteRequest>;

  grpc::Status Rewrite(grpc::ServerContext* context, const v1::RewriteRequest* request,
                       v1::RewriteResponse* response) override;
  grpc::Status StreamRewrite(grpc::ServerContext* context, Stream* stream) override;
  grpc::Status Inspect(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::InspectResponse, v1::InspectRequest>* stream) override;
  grpc::Status Simulate(grpc::ServerContext* context,
                        grpc::ServerReader<v1::SimulateRequest>* reader,
                        v1::SimulateResponse* response) override;
  grpc::Status Explore(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::ExploreResponse, v1::ExploreRequest>* stream) override;
  grpc::Status Diff(grpc::ServerContext* context, grpc::ServerReader<v1::DiffRequest>* reader,
                    v1::DiffResponse* response) override;
  grpc::Status GetCapabilities(grpc::ServerContext* context,
                               const v1::GetCapabilitiesRequest* request,
                               v1::GetCapabilitiesResponse* response) override;
  // Notes the call, and fails it if that is the server's fault.
  grpc::Status Begin(grpc::ServerContext* context);
  // Reads header and chunks of a question; `graphs` has the announced ones.
  template <typename Header, typename Message, typename Reader>
  grpc::Status ReadQuestion(grpc::ServerContext* context, Reader* reader, Header* header,
                            std::vector<std::string>* graphs);
  grpc::Status Answer(v1::RewriteResponse response, Stream* stream) const;
  // With the fault kNewer: `message` with a field that does not exist today.
  template <typename Writer, typename Message>
  void WriteNews(Writer* writer, Message message) const;

  const ServerOptions options_;
  std::atomic<int> unary_calls_{0};
  std::atomic<int> stream_calls_{0};
  std::atomic<int> questions_{0};
  std::atomic<int64_t> largest_chunk_bytes_{0};
  std::atomic<int> hanging_{0};
  std::atomic<int> released_{0};
  std::string target_;
  mutable std::mutex mutex_;
  std::multimap<std::string, std::string> last_metadata_;  // Guarded by mutex_.
  std::set<std::string> peers_;                            // Guarded by mutex_.
  grpc::CallbackGenericService no_service_;                // Answers UNIMPLEMENTED to everything.
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_CLIENT_LIB_TEST_SERVER_H_
