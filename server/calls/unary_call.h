// The reactor of one Rewrite call. Created at the call's start; deletes itself at its end.
#ifndef SPILLWAY_SERVER_CALLS_UNARY_CALL_H_
#define SPILLWAY_SERVER_CALLS_UNARY_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/base/wire.h"
#include "server/calls/call.h"
#include "server/calls/raw_service.h"
#include "server/calls/service_state.h"
#include "server/calls/shared_rewrite.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::server {

class UnaryCall final : public RawReactor {
 public:
  UnaryCall(grpc::CallbackServerContext& context, ServiceState& state);

  void OnReadDone(bool ok) override;
  void OnCancel() override {
    if (call_.Cancel()) Finish(call_.Conclude(call_.StopStatus("queue")));
  }
  void OnDone() override { delete this; }

 private:
  // Checks and queues the request; an error ends the call.
  absl::Status Start();
  // Finds the graph in the request, and parses the options.
  absl::Status Split();
  // Runs on a worker.
  void Run();
  absl::Status Respond(const std::shared_ptr<RewriteAnswer>& answer);

  grpc::ByteBuffer request_;  // Until its bytes are taken.
  grpc::ByteBuffer response_;
  grpc::Slice bytes_;
  absl::string_view graph_;
  v1::RewriteOptions options_;
  Call call_;
  SharedRewrite rewrite_{call_};
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_UNARY_CALL_H_
