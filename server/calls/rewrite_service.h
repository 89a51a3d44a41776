// spillway.v1.RewriteService on gRPC's callback API: each method creates a reactor and returns
// immediately. Thread-safe. The state must outlive every call.
#ifndef SPILLWAY_SERVER_CALLS_REWRITE_SERVICE_H_
#define SPILLWAY_SERVER_CALLS_REWRITE_SERVICE_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "server/calls/service_state.h"
#include "spillway/v1/rewrite_service.grpc.pb.h"

namespace spillway::server {

// Methods that take graphs are raw, i.e. take bytes: see wire.h.
class RewriteService final
    : public v1::RewriteService::WithRawCallbackMethod_Rewrite<
          v1::RewriteService::WithCallbackMethod_GetCapabilities<v1::RewriteService::Service>> {
 public:
  explicit RewriteService(ServiceState& state);

  grpc::ServerUnaryReactor* Rewrite(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response) override;

  grpc::ServerUnaryReactor* GetCapabilities(grpc::CallbackServerContext* context,
                                            const v1::GetCapabilitiesRequest* request,
                                            v1::GetCapabilitiesResponse* response) override;

 private:
  ServiceState& state_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_REWRITE_SERVICE_H_
