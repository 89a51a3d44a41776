// grpc.reflection.v1alpha.ServerReflection, by which tools such as grpcurl learn the API.
//
// In place of gRPC's own (grpc++_reflection), which holds a thread for each stream. With
// --access-file only known callers may ask.
//
// Thread-safe.
#ifndef SPILLWAY_SERVER_CALLS_REFLECTION_SERVICE_H_
#define SPILLWAY_SERVER_CALLS_REFLECTION_SERVICE_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>

#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "server/calls/service_state.h"

namespace spillway::server {

class ReflectionService final
    : public grpc::reflection::v1alpha::ServerReflection::CallbackService {
 public:
  // Streams at once, of all callers: a tool has one for as long as it asks.
  static constexpr int kMaxStreams = 100;

  // `state` must outlive it, and it must outlive the gRPC server.
  explicit ReflectionService(ServiceState& state) : state_(state) {}

  grpc::ServerBidiReactor<grpc::reflection::v1alpha::ServerReflectionRequest,
                          grpc::reflection::v1alpha::ServerReflectionResponse>*
  ServerReflectionInfo(grpc::CallbackServerContext* context) override;

 private:
  class Stream;

  ServiceState& state_;
  std::atomic<int> streams_{0};
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_REFLECTION_SERVICE_H_
