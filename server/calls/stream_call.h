// The reactor of a call that takes graphs in chunks and answers with a stream: StreamRewrite,
// Inspect and Explore.
//
// A message is sent as soon as it is made, while the worker makes the next ones; message_queue.h
// lies between them. Bytes that a task hands over with SendBytes no longer need a worker.
//
// Memory: the graphs until the task has ended, then what it left to send; and waiting messages of
// at most as many bytes as the graphs, or one message.
#ifndef SPILLWAY_SERVER_CALLS_STREAM_CALL_H_
#define SPILLWAY_SERVER_CALLS_STREAM_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "server/calls/answer_rest.h"
#include "server/calls/message_queue.h"
#include "server/calls/service_state.h"
#include "server/calls/upload_call.h"
#include "server/memory/guarded.h"
#include "server/memory/memory_account.h"
#include "server/work/graph_task.h"

namespace spillway::server {

template <typename Task>
class StreamCall final
    : public UploadCall<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>, Task>,
      private StreamSink<typename Task::Response> {
 public:
  using Response = typename Task::Response;

  StreamCall(grpc::CallbackServerContext& context, ServiceState& state)
      : StreamCall::UploadCall(context, state) {
    this->Start();
  }

  void OnWriteDone(bool ok) override {
    this->idle_timer().Pause();
    response_.Clear();  // Here, where no account is charged.
    this->call().GiveBack(std::exchange(sent_bytes_, 0));
    gone_ = !ok;
    if (!ok) this->call().Cancel();
    if (ok || queue_->Abandon()) (void)WriteNext();
  }

 private:
  using Queue = MessageQueue<Response>;

  void Answer() override {
    const Options& options = this->call().state().options;
    queue_.emplace(this->graph_bytes(), options.idle_timeout, *options.clock);
    this->RunTask(*this, [this](const absl::Status& status) {
      status_ = status;
      if (queue_->Close()) (void)WriteNext();
    });
  }

  absl::Status Send(Response message) override {
    const absl::StatusOr<bool> asleep = queue_->Push(std::move(message), this->call().stop());
    if (!asleep.ok()) {
      this->call().Cancel();  // No one takes further results.
      return asleep.status();
    }
    return *asleep ? WriteNext() : absl::OkStatus();
  }

  void SendBytes(int field, std::shared_ptr<const std::string> bytes) override {
    rest_ = AnswerRest(field, std::move(bytes));
  }

  // Acts as the queue's sender: one thread at a time. Error: no memory for the next message.
  absl::Status WriteNext() {
    absl::Status status = Guarded([this] { return MakeNext(); });
    if (status.ok()) return status;
    failed_ = status;
    this->call().Cancel();
    if (queue_->Abandon()) this->End(failed_);
    return status;  // The call, and this, may be gone.
  }

  absl::Status MakeNext() {
    Response message;
    switch (queue_->Take(&message)) {
      case Queue::Next::kMessage:
        response_ = ToBuffer(message);
        // The one of the two that the worker allocated and another thread frees.
        sent_bytes_ = MemoryAccount::Current() != nullptr
                          ? static_cast<int64_t>(response_.Length())
                          : static_cast<int64_t>(message.SpaceUsedLong());
        this->call().AddOutputBytes(Task::SentBytes(message));
        Write();
        return absl::OkStatus();
      case Queue::Next::kNothingYet:
        return absl::OkStatus();
      case Queue::Next::kEnd:
        break;
    }
    // The worker's own error takes precedence, except for a cancellation.
    if (!failed_.ok() && (status_.ok() || absl::IsCancelled(status_))) status_ = failed_;
    if (gone_ && status_.ok()) {
      status_ = absl::CancelledError("the caller went away while the answer was sent");
    }
    const size_t left = rest_.bytes_left();
    if (status_.ok() && left > 0) {
      response_ = rest_.TakePart();
      this->call().AddOutputBytes(static_cast<int64_t>(left - rest_.bytes_left()));
      Write();
    } else {
      this->End(status_);
    }
    return absl::OkStatus();
  }

  void Write() {
    // gRPC's own allocations meanwhile, for this call and others, are not charged.
    const MemoryAccount::Scope nobody(nullptr);
    this->idle_timer().Wait();
    this->StartWrite(&response_);
  }

  // Set by the worker; read by the sender once the queue is closed.
  absl::optional<Queue> queue_;
  AnswerRest rest_;
  absl::Status status_;
  // Used by the sender only.
  grpc::ByteBuffer response_;
  int64_t sent_bytes_ = 0;  // Memory: given back once the message is sent.
  absl::Status failed_;     // A message could not be made.
  bool gone_ = false;       // A message could not be sent.
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_STREAM_CALL_H_
