// The reading half of every call that takes graphs in chunks: reads the upload, admits the request
// when its header has arrived, and has a worker answer it once everything has arrived. The derived
// stream_call.h and answer_call.h send the answer.
//
// Created at the call's start; deletes itself at its end. The phases are sequential, so only one
// thread at a time runs anything except OnCancel, the idle timer and what stream_call.h names. A
// caller that disconnects shows as a failed read or write, or fires the stop token.
#ifndef SPILLWAY_SERVER_CALLS_UPLOAD_CALL_H_
#define SPILLWAY_SERVER_CALLS_UPLOAD_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "rewrite_core/base/known_fields.h"
#include "server/base/wire.h"
#include "server/calls/call.h"
#include "server/calls/idle_timer.h"
#include "server/calls/service_state.h"
#include "server/calls/stream_assembler.h"
#include "server/calls/uploaded_task.h"
#include "server/memory/guarded.h"
#include "server/work/graph_task.h"

namespace spillway::server {

// Time that an upload may take beyond its bytes at Options::min_upload_rate.
inline constexpr absl::Duration kUploadGrace = absl::Seconds(5);

// `Reactor`: the gRPC reactor, which reads the bytes of Task::Request messages. `Task`: see
// graph_task.h.
template <typename Reactor, typename Task>
class UploadCall : public Reactor {
 public:
  void OnReadDone(bool ok) final {
    idle_timer_.Pause();
    absl::Status status = ok ? TakeMessage() : EndUpload();
    if (!status.ok()) return End(status);
    if (ok) Read();  // Otherwise the work is queued, and this may already be deleted.
  }

  void OnCancel() final {
    if (call_.Cancel()) End(call_.StopStatus("queue"));
  }
  void OnDone() final { delete this; }

 protected:
  using Request = typename Task::Request;

  UploadCall(grpc::CallbackServerContext& context, ServiceState& state)
      : context_(context),
        call_(context, state, Task::kMethod),
        assembler_(state.options.limits),
        idle_timer_(*state.options.clock, state.options.idle_timeout,
                    [&context] { context.TryCancel(); }) {}
  ~UploadCall() override = default;

  // Called on a worker once all graphs have arrived: calls RunTask and sends the result.
  virtual void Answer() = 0;

  // Starts reading if the caller is admitted. For the derived class's constructor.
  void Start() {
    const absl::Status status = Guarded([this] { return call_.Enter(); });
    if (!status.ok()) return End(status);
    Read();
  }

  // Runs the task, for Answer. Calls `done` with the final status, on this worker or on another.
  void RunTask(typename Task::Sink& sink, std::function<void(const absl::Status&)> done) {
    RunUploaded<Task>(header_, call_, assembler_, sink, std::move(done));
  }

  void End(const absl::Status& status) {
    idle_timer_.Pause();
    if (upload_timer_.has_value()) upload_timer_->Pause();
    this->Finish(call_.Conclude(status));  // Last: this may be deleted when it returns.
  }

  // The total of all graphs. REQUIRES: the header has arrived.
  int64_t graph_bytes() const { return assembler_.total_size_bytes(); }
  Call& call() { return call_; }
  IdleTimer& idle_timer() { return idle_timer_; }

 private:
  using Header = std::decay_t<decltype(std::declval<Request>().header())>;

  void Read() {
    idle_timer_.Wait();
    this->StartRead(&message_);
  }

  // Handles the message that was read.
  absl::Status TakeMessage() {
    return Guarded([this]() -> absl::Status {
      if (call_.stop().ShouldStop(1)) return call_.stop().status("upload");
      // Most messages are chunks: they are not parsed, and copied once.
      std::vector<grpc::Slice> slices;
      const auto chunk = OnlyField(Request::kChunkFieldNumber, message_, &slices);
      if (chunk.empty()) return TakeOther();
      for (absl::string_view piece : chunk) call_.AddInputBytes(piece.size());
      return assembler_.AddChunk(chunk);
    });
  }

  // Handles a header or an invalid message.
  absl::Status TakeOther() {
    const int64_t limit = call_.state().options.limits.max_option_bytes();
    Request request;
    absl::Status status = ParseOptions(
        View(OnePiece(message_)), limit, [this](int64_t bytes) { return call_.HoldOptions(bytes); },
        &request);
    if (!status.ok()) return status;
    // A newer client's field, anywhere in the message, has an unknown meaning and must not be
    // ignored.
    if (status = core::CheckKnownFields(request); !status.ok()) return status;
    const bool is_header = request.has_header() && !assembler_.has_header();
    if (request.has_chunk()) call_.AddInputBytes(request.chunk().size());
    status = assembler_.Add(request);
    if (!status.ok() || !is_header) return status;
    header_.Swap(request.mutable_header());
    // Before anything else is read, so that a rejected request costs nothing.
    if (Task::Simulates(header_)) call_.ExpectSimulation();
    status = call_.Admit(Task::Strategy(header_), graph_bytes());
    if (status.ok()) LimitUpload();
    return status;
  }

  // The client has half-closed or disconnected.
  absl::Status EndUpload() {
    upload_timer_.reset();
    message_.Clear();  // The last chunk is in the assembler.
    if (absl::Status status = assembler_.FinishUpload(); !status.ok()) return status;
    return call_.RunOnWorker([this] { Answer(); });
  }

  // Limits the duration of the upload by the minimum rate; otherwise it could hold its part of the
  // budget indefinitely.
  void LimitUpload() {
    const int64_t rate = call_.state().options.min_upload_rate;
    if (rate == 0) return;
    upload_timer_.emplace(*call_.state().options.clock,
                          kUploadGrace + absl::Seconds(1) * graph_bytes() / rate,
                          [this] { context_.TryCancel(); });
    upload_timer_->Wait();
  }

  grpc::CallbackServerContext& context_;
  Call call_;
  grpc::ByteBuffer message_;
  Header header_;
  StreamAssembler assembler_;
  // Last, so that they are destroyed first.
  IdleTimer idle_timer_;
  absl::optional<IdleTimer> upload_timer_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_UPLOAD_CALL_H_
