// The reactor of a call with one small request, of a method that does no work on graphs.
#ifndef SPILLWAY_SERVER_CALLS_ONE_MESSAGE_CALL_H_
#define SPILLWAY_SERVER_CALLS_ONE_MESSAGE_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <utility>

#include "server/base/status_to_grpc.h"
#include "server/calls/half_open_calls.h"
#include "server/calls/raw_service.h"

namespace spillway::server {

class OneMessageCall : public RawReactor {
 public:
  // Both must outlive it.
  OneMessageCall(grpc::CallbackServerContext& context, HalfOpenCalls& half_open)
      : wait_(half_open, context, HalfOpenCalls::Message::kSmall) {
    if (is_refused()) {
      Finish(ToGrpcStatus(wait_.status()));
    } else {
      StartRead(&message_);
    }
  }

  void OnReadDone(bool ok) final {
    wait_.End();
    OnMessage(ok ? &message_ : nullptr);
  }
  void OnDone() override { delete this; }

 protected:
  // Whether the call has ended at once.
  bool is_refused() const { return !wait_.status().ok(); }

 private:
  // The request has come; null: none will. Must end the call, or begin an answer.
  virtual void OnMessage(const grpc::ByteBuffer* message) = 0;

  HalfOpenCalls::Wait wait_;
  grpc::ByteBuffer message_;
};

// Of a call that ends without a message.
inline grpc::Status NoMessage() {
  return {grpc::StatusCode::INVALID_ARGUMENT, "the call has no message; send one request"};
}

// With a single answer, which is made at once.
class QuestionCall final : public OneMessageCall {
 public:
  using Answer =
      std::function<grpc::Status(const grpc::ByteBuffer& request, grpc::ByteBuffer* response)>;

  QuestionCall(grpc::CallbackServerContext& context, HalfOpenCalls& half_open, Answer answer)
      : OneMessageCall(context, half_open), answer_(std::move(answer)) {}

 private:
  void OnMessage(const grpc::ByteBuffer* message) override {
    const grpc::Status status = message == nullptr ? NoMessage() : answer_(*message, &response_);
    if (!status.ok()) return Finish(status);
    StartWriteAndFinish(&response_, grpc::WriteOptions(), status);
  }

  const Answer answer_;
  grpc::ByteBuffer response_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_ONE_MESSAGE_CALL_H_
