// spillway.v1.RewriteService on gRPC's callback API: each method creates a reactor and returns
// immediately. Thread-safe. The state must outlive every call.
#ifndef SPILLWAY_SERVER_CALLS_REWRITE_SERVICE_H_
#define SPILLWAY_SERVER_CALLS_REWRITE_SERVICE_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "absl/status/status.h"
#include "server/calls/service_state.h"
#include "spillway/v1/rewrite_service.grpc.pb.h"

namespace spillway::server {

// Methods that take graphs are raw, i.e. take bytes: see wire.h.
template <typename Base>
using RawQuestions = v1::RewriteService::WithRawCallbackMethod_Inspect<
    v1::RewriteService::WithRawCallbackMethod_Simulate<
        v1::RewriteService::WithRawCallbackMethod_Explore<
            v1::RewriteService::WithRawCallbackMethod_Diff<Base>>>>;
using RawRewriteService = v1::RewriteService::WithRawCallbackMethod_Rewrite<
    v1::RewriteService::WithRawCallbackMethod_StreamRewrite<RawQuestions<
        v1::RewriteService::WithCallbackMethod_GetCapabilities<v1::RewriteService::Service>>>>;

class RewriteService final : public RawRewriteService {
 public:
  explicit RewriteService(ServiceState& state) : state_(state) {}

  grpc::ServerUnaryReactor* Rewrite(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response) override;

  using BidiReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;
  BidiReactor* StreamRewrite(grpc::CallbackServerContext* context) override;
  BidiReactor* Inspect(grpc::CallbackServerContext* context) override;
  BidiReactor* Explore(grpc::CallbackServerContext* context) override;

  using ReadReactor = grpc::ServerReadReactor<grpc::ByteBuffer>;
  ReadReactor* Simulate(grpc::CallbackServerContext* context, grpc::ByteBuffer* response) override;
  ReadReactor* Diff(grpc::CallbackServerContext* context, grpc::ByteBuffer* response) override;

  grpc::ServerUnaryReactor* GetCapabilities(grpc::CallbackServerContext* context,
                                            const v1::GetCapabilitiesRequest* request,
                                            v1::GetCapabilitiesResponse* response) override;

 private:
  // Checks whether the server knows the caller.
  absl::Status CheckCaller(const grpc::CallbackServerContext& context);

  ServiceState& state_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_REWRITE_SERVICE_H_
