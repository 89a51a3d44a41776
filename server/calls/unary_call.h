// The reactor of one Rewrite call. Created at the call's start; deletes itself at its end.
#ifndef SPILLWAY_SERVER_CALLS_UNARY_CALL_H_
#define SPILLWAY_SERVER_CALLS_UNARY_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/base/wire.h"
#include "server/calls/call.h"
#include "server/calls/service_state.h"
#include "server/calls/shared_rewrite.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::server {

class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  // Starts the call. `request` and `response` must live until OnDone.
  UnaryCall(grpc::CallbackServerContext& context, const grpc::ByteBuffer& request,
            grpc::ByteBuffer& response, ServiceState& state);

  void OnCancel() override {
    if (call_.Cancel()) Finish(call_.Conclude(call_.StopStatus("queue")));
  }
  void OnDone() override { delete this; }

 private:
  // Checks and queues the request; an error ends the call.
  absl::Status Start(const grpc::ByteBuffer& request);
  // Finds the graph in the request, and parses the options.
  absl::Status Split();
  // Runs on a worker.
  void Run();
  absl::Status Respond(const std::shared_ptr<RewriteAnswer>& answer);

  grpc::ByteBuffer& response_;
  grpc::Slice bytes_;  // The request.
  absl::string_view graph_;
  v1::RewriteOptions options_;
  Call call_;
  SharedRewrite rewrite_{call_};
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_UNARY_CALL_H_
