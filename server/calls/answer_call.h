// The reactor of a call that takes graphs in chunks and answers with one message: Simulate and
// Diff.
#ifndef SPILLWAY_SERVER_CALLS_ANSWER_CALL_H_
#define SPILLWAY_SERVER_CALLS_ANSWER_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <utility>

#include "absl/status/status.h"
#include "server/calls/service_state.h"
#include "server/calls/upload_call.h"
#include "server/work/graph_task.h"

namespace spillway::server {

template <typename Task>
class AnswerCall final : public UploadCall<grpc::ServerReadReactor<grpc::ByteBuffer>, Task>,
                         private MessageSink<typename Task::Response> {
 public:
  using Response = typename Task::Response;

  // `response` must live until OnDone.
  AnswerCall(grpc::CallbackServerContext& context, grpc::ByteBuffer& response, ServiceState& state)
      : AnswerCall::UploadCall(context, state), response_(response) {
    this->Start();
  }

 private:
  void Answer() override {
    this->RunTask(*this, [this](const absl::Status& status) { this->End(status); });
  }

  absl::Status Send(Response message) override {
    this->call().AddOutputBytes(Task::SentBytes(message));
    response_ = ToBuffer(message);
    return absl::OkStatus();
  }

  grpc::ByteBuffer& response_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_ANSWER_CALL_H_
