// The reading half of every call that takes graphs in chunks: reads the upload, lets the request in
// when its header is there, and has a worker answer it once all is there. What the answer looks
// like on the wire is up to the two that are made of it: stream_call.h and answer_call.h.
//
// Makes itself at the call's start and deletes itself at its end. The phases follow each other, so
// only one thread at a time runs anything but OnCancel, the idle timer and what stream_call.h says.
// A caller that goes away shows as a failed read or write, or fires the stop token.
#ifndef SPILLWAY_SERVER_UPLOAD_CALL_H_
#define SPILLWAY_SERVER_UPLOAD_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "server/call.h"
#include "server/graph_task.h"
#include "server/idle_timer.h"
#include "server/service_state.h"
#include "server/stream_assembler.h"

namespace spillway::server {

// `Reactor`: gRPC's, which reads Task::Request. `Task`: see graph_task.h.
template <typename Reactor, typename Task>
class UploadCall : public Reactor {
 public:
  void OnReadDone(bool ok) final {
    idle_timer_.Pause();
    absl::Status status = ok ? TakeMessage() : EndUpload();
    if (!status.ok()) {
      End(status);
    } else if (ok) {
      Read();
    }
    // Otherwise the work is queued, and this may be gone already.
  }

  void OnCancel() final { call_.Cancel(); }
  void OnDone() final { delete this; }

 protected:
  using Request = typename Task::Request;
  using Response = typename Task::Response;

  UploadCall(grpc::CallbackServerContext& context, ServiceState& state)
      : call_(context, state, Task::kMethod),
        assembler_(state.options.limits),
        idle_timer_(state.options.idle_timeout, [&context] { context.TryCancel(); }) {}
  ~UploadCall() override = default;

  // On a worker, once all graphs are here: does RunTask and sends what comes of it.
  virtual void Answer() = 0;

  // Begins to read. For the constructor of what is made of this.
  void Read() {
    idle_timer_.Wait();
    this->StartRead(&request_);
  }

  // What Answer does on its worker. Frees the graphs at its end.
  absl::Status RunTask(typename Task::Sink& sink) {
    const core::StopToken& stop = call_.stop();
    // The caller may have gone while the request waited for a worker.
    if (stop.ShouldStop(1)) return stop.status("queue");
    if (absl::Status status = assembler_.VerifyDigests(stop); !status.ok()) return status;
    const TaskContext context = {assembler_.graphs(), call_.state().options, stop,
                                 call_.state().metrics};
    absl::Status status = Guarded([&] { return Task::Run(header_, context, sink); });
    assembler_.ReleaseGraphs();
    return status;
  }

  // Before a message is handed to gRPC.
  void CountSent(const Response& response) { call_.AddOutputBytes(Task::SentBytes(response)); }

  void End(const absl::Status& status) {
    idle_timer_.Pause();
    this->Finish(call_.Conclude(status));  // Last: the call, and this, may be gone when it returns.
  }

  // Of all graphs together. REQUIRES: the header is here.
  int64_t graph_bytes() const { return assembler_.total_size_bytes(); }
  Call& call() { return call_; }
  IdleTimer& idle_timer() { return idle_timer_; }

 private:
  using Header = std::decay_t<decltype(std::declval<Request>().header())>;

  // Takes the message that was read.
  absl::Status TakeMessage() {
    return Guarded([this]() -> absl::Status {
      const bool is_header = request_.has_header() && !assembler_.has_header();
      if (request_.has_chunk()) call_.AddInputBytes(request_.chunk().size());
      if (absl::Status status = assembler_.Add(request_); !status.ok() || !is_header) return status;
      header_.Swap(request_.mutable_header());
      // Before anything else is read, so that what is refused costs nothing.
      return call_.Admit(Task::Strategy(header_), graph_bytes());
    });
  }

  // The client has half-closed, or is gone.
  absl::Status EndUpload() {
    request_.Clear();  // The last chunk is in the assembler.
    if (absl::Status status = assembler_.FinishUpload(); !status.ok()) return status;
    return call_.RunOnWorker([this] { Answer(); });
  }

  Call call_;
  Request request_;
  Header header_;
  StreamAssembler assembler_;
  IdleTimer idle_timer_;  // Last, so that it stops first.
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_UPLOAD_CALL_H_
