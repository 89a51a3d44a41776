// A call of any method with messages as raw bytes: for grpc.health.v1 and reflection, whose stubs
// Debian's gRPC does not install. A unary call is a stream of one message on the wire.
#ifndef SPILLWAY_TESTS_SERVER_RAW_STREAM_H_
#define SPILLWAY_TESTS_SERVER_RAW_STREAM_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <deque>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace spillway::server {

class RawStream : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // Calls `method` (`/package.Service/Method`), sends `request` (nothing: it never sends one), and
  // half-closes unless `half_closes` is false.
  RawStream(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
            const std::optional<std::string>& request, bool half_closes = true);
  // Cancels, and waits for the end.
  ~RawStream() override;

  // The next message; nothing once the stream has ended (or nothing comes within kPatience).
  std::optional<std::string> Next();

  // How it has ended; waits for that (at most kPatience, then UNKNOWN).
  grpc::Status End();
  bool ended();

 private:
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  grpc::ClientContext context_;
  grpc::GenericStub stub_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer message_;
  absl::Mutex mu_;
  std::deque<std::string> messages_ ABSL_GUARDED_BY(mu_);
  bool done_ ABSL_GUARDED_BY(mu_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mu_);
};

// A grpc.health.v1.HealthCheckRequest, and the HealthCheckResponses that answer it.
std::string HealthRequest(const std::string& service);
inline const std::string kServing = {0x08, 0x01};
inline const std::string kNotServing = {0x08, 0x02};

}  // namespace spillway::server

#endif  // SPILLWAY_TESTS_SERVER_RAW_STREAM_H_
