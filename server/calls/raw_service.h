// Methods as gRPC's callback API takes them from generated classes, but whose calls are all seen
// when their headers arrive, as streams of bytes: for a method with a single request gRPC otherwise
// reads the message before it reports the call (PayloadHandlingForMethod in server_cc.cc), so that
// nothing could end a call that never sends one.
#ifndef SPILLWAY_SERVER_CALLS_RAW_SERVICE_H_
#define SPILLWAY_SERVER_CALLS_RAW_SERVICE_H_

#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <functional>

namespace spillway::server {

// Reactors delete themselves when gRPC is done with them.
using RawReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

// For a refused call.
class RefusedCall final : public RawReactor {
 public:
  explicit RefusedCall(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

// `Generated`: the class `Service` that is generated for a service.
template <typename Generated>
class RawService : public Generated {
 protected:
  // Has `make` take the calls of the method with this index.
  void Serve(int method, const std::function<RawReactor*(grpc::CallbackServerContext*)>& make) {
    using Handler = grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, grpc::ByteBuffer>;
    this->MarkMethodStreamed(method, new Handler(make));     // The shape on the wire.
    this->MarkMethodRawCallback(method, new Handler(make));  // Who reads: replaces the handler.
  }
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_RAW_SERVICE_H_
