// spillway.v1.RewriteService on gRPC's callback API: each method makes a reactor and returns at
// once. Thread-safe. The state must outlive every call.
#ifndef SPILLWAY_SERVER_REWRITE_SERVICE_H_
#define SPILLWAY_SERVER_REWRITE_SERVICE_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include "server/service_state.h"
#include "spillway/v1/rewrite_service.grpc.pb.h"

namespace spillway::server {

class RewriteService final : public v1::RewriteService::CallbackService {
 public:
  explicit RewriteService(ServiceState& state) : state_(state) {}

  grpc::ServerUnaryReactor* Rewrite(grpc::CallbackServerContext* context,
                                    const v1::RewriteRequest* request,
                                    v1::RewriteResponse* response) override;

  grpc::ServerBidiReactor<v1::StreamRewriteRequest, v1::StreamRewriteResponse>* StreamRewrite(
      grpc::CallbackServerContext* context) override;

  grpc::ServerBidiReactor<v1::InspectRequest, v1::InspectResponse>* Inspect(
      grpc::CallbackServerContext* context) override;

  grpc::ServerReadReactor<v1::SimulateRequest>* Simulate(grpc::CallbackServerContext* context,
                                                         v1::SimulateResponse* response) override;

  grpc::ServerBidiReactor<v1::ExploreRequest, v1::ExploreResponse>* Explore(
      grpc::CallbackServerContext* context) override;

  grpc::ServerReadReactor<v1::DiffRequest>* Diff(grpc::CallbackServerContext* context,
                                                 v1::DiffResponse* response) override;

  grpc::ServerUnaryReactor* GetCapabilities(grpc::CallbackServerContext* context,
                                            const v1::GetCapabilitiesRequest* request,
                                            v1::GetCapabilitiesResponse* response) override;

 private:
  ServiceState& state_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_REWRITE_SERVICE_H_
