// The reactor of every call that takes graphs in chunks (stream_methods.h): reads the upload,
// admits the request when its header has arrived, has a worker answer it once everything has
// arrived, and sends the answer, which is a stream: of one message if the method has a single
// answer.
//
// A message is sent as soon as it is made, while the worker makes the next ones; message_queue.h
// connects them. Bytes that are handed over with SendBytes no longer need a worker.
//
// Memory: the graphs, from their first bytes as they arrive until the work has ended, then the
// unsent rest; and waiting messages of at most as many bytes as the graphs, or one message.
//
// Created at the call's start; deletes itself at its end. The phases are sequential, so only one
// thread at a time runs anything except OnCancel, the timers, and the sender of the answer
// (message_queue.h). A caller that disconnects shows as a failed read or write, or fires the stop
// token.
#ifndef SPILLWAY_SERVER_CALLS_STREAMED_CALL_H_
#define SPILLWAY_SERVER_CALLS_STREAMED_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "google/protobuf/message.h"
#include "server/calls/call.h"
#include "server/calls/idle_timer.h"
#include "server/calls/message_queue.h"
#include "server/calls/raw_service.h"
#include "server/calls/service_state.h"
#include "server/calls/shared_rewrite.h"
#include "server/calls/stream_assembler.h"
#include "server/work/stream_methods.h"

namespace spillway::server {

class StreamedCall final : public RawReactor, private AnswerSink {
 public:
  // Starts the call. `method` must outlive it.
  StreamedCall(grpc::CallbackServerContext& context, ServiceState& state,
               const StreamMethod& method);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override {
    if (call_.Cancel()) End(call_.StopStatus("queue"));
  }
  void OnDone() override { delete this; }

 private:
  void Read();
  // Handles the message that was read.
  absl::Status TakeMessage();
  // Handles a header or an invalid message.
  absl::Status TakeOther();
  // Reserves the graphs' memory so far; an error also frees them.
  absl::Status HoldGraphs();
  // Ends the upload as soon as it is behind the minimum rate; otherwise it could hold its part of
  // the budget for as long as the whole graph may take.
  void LimitUpload();
  // Ends the call from a timer. Returns false, and does nothing, unless a message is waited for.
  bool EndLate(absl::string_view message);
  // The client has half-closed or disconnected.
  absl::Status EndUpload();

  // Runs on a worker once all graphs have arrived.
  void Answer();
  WorkContext Context() const;
  // The header of a rewrite; null for other methods, and before it has arrived.
  const v1::StreamRewriteHeader* rewrite_header() const;
  // The work has ended: the unsent rest follows, then the end.
  void EndAnswer(const absl::Status& status);

  absl::Status Send(const google::protobuf::Message& message) override;
  void SendBytes(int field, std::shared_ptr<const std::string> bytes) override;

  // Acts as the queue's sender: one thread at a time.
  void WriteNext();
  void Write();

  void End(const absl::Status& status);

  grpc::CallbackServerContext& context_;
  const StreamMethod& method_;
  Call call_;
  SharedRewrite rewrite_{call_};
  grpc::ByteBuffer message_;
  std::unique_ptr<google::protobuf::Message> header_;  // The message with the header.
  StreamAssembler assembler_;
  std::atomic<bool> uploading_{true};
  // The client's next message is waited for. The message or timer that ends the wait continues the
  // call.
  std::atomic<bool> reading_{false};
  std::atomic<int64_t> uploaded_bytes_{0};  // Read by upload_timer_.

  // Set by the worker; read by the sender once the queue is closed.
  absl::optional<MessageQueue> queue_;
  std::shared_ptr<const std::string> rest_;  // Bytes that follow the messages; each part shares it.
  int rest_field_ = 0;
  absl::Status status_;
  // Used by the sender only.
  grpc::ByteBuffer response_;
  int64_t sent_bytes_ = 0;  // Memory: given back once the message is sent.
  size_t rest_sent_ = 0;
  bool gone_ = false;  // A message could not be sent.

  // Last, so that they are destroyed first.
  IdleTimer idle_timer_;
  std::unique_ptr<Clock::Timer> upload_timer_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_STREAMED_CALL_H_
