// The reactor of one Rewrite call. Makes itself at the call's start and deletes itself at its end.
#ifndef SPILLWAY_SERVER_UNARY_CALL_H_
#define SPILLWAY_SERVER_UNARY_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include "server/call.h"
#include "server/service_state.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::server {

class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  // Takes the call. `request` and `response` live until OnDone.
  UnaryCall(grpc::CallbackServerContext& context, const v1::RewriteRequest& request,
            v1::RewriteResponse& response, ServiceState& state);

  void OnCancel() override { call_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  // Checks and queues the request; an error ends the call.
  absl::Status Start();
  // On a worker.
  absl::Status Run();

  const v1::RewriteRequest& request_;
  v1::RewriteResponse& response_;
  Call call_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_UNARY_CALL_H_
