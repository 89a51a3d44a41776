// spillway.v1.RewriteService on gRPC's callback API: each method creates a reactor and returns
// immediately. Thread-safe. The state must outlive every call.
#ifndef SPILLWAY_SERVER_CALLS_REWRITE_SERVICE_H_
#define SPILLWAY_SERVER_CALLS_REWRITE_SERVICE_H_

#include <grpcpp/server_context.h>

#include "server/calls/raw_service.h"
#include "server/calls/service_state.h"
#include "spillway/v1/rewrite_service.grpc.pb.h"

namespace spillway::server {

class RewriteService final : public RawService<v1::RewriteService::Service> {
 public:
  explicit RewriteService(ServiceState& state);

 private:
  RawReactor* GetCapabilities(grpc::CallbackServerContext& context);

  ServiceState& state_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_REWRITE_SERVICE_H_
