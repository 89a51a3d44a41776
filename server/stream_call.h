// The reactor of one StreamRewrite call: reads the upload, rewrites on a worker, writes the answer.
// Makes itself at the call's start and deletes itself at its end.
//
// The three phases follow each other, so only one thread at a time runs anything but OnCancel and
// the idle timer, and Finish is called in one place per phase. A caller that goes away shows as a
// failed read or write, or fires the stop token.
//
// Memory: the graph as it came until it is rewritten, then the rewritten one, and one message.
#ifndef SPILLWAY_SERVER_STREAM_CALL_H_
#define SPILLWAY_SERVER_STREAM_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "server/call.h"
#include "server/idle_timer.h"
#include "server/service_state.h"
#include "server/stream_assembler.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::server {

class StreamCall final
    : public grpc::ServerBidiReactor<v1::StreamRewriteRequest, v1::StreamRewriteResponse> {
 public:
  StreamCall(grpc::CallbackServerContext& context, ServiceState& state);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { call_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  // Takes the message that was read.
  absl::Status TakeMessage();
  // The client has half-closed, or is gone.
  absl::Status EndUpload();
  // On a worker: from the graph that arrived to the first message of the answer.
  absl::Status Run();

  void Read();
  void Write();
  void End(const absl::Status& status);

  Call call_;
  StreamAssembler assembler_;
  v1::StreamRewriteRequest request_;
  v1::StreamRewriteResponse response_;
  std::string result_;     // The rewritten graph.
  size_t sent_bytes_ = 0;  // Of result_.
  IdleTimer idle_timer_;   // Last, so that it stops first.
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_STREAM_CALL_H_
