#include "server/calls/streamed_call.h"

#include <grpcpp/support/slice.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/known_fields.h"
#include "server/base/wire.h"
#include "server/memory/guarded.h"
#include "server/memory/memory_account.h"
#include "server/work/rewrite_answer.h"

namespace spillway::server {
namespace {

// Time that an upload may be behind Options::min_upload_rate.
constexpr absl::Duration kUploadGrace = absl::Seconds(5);

// Of an upload, this is reserved when it is announced, and more as it arrives: one chunk as clients
// send them, so that small graphs are not refused half-way.
constexpr int64_t kFirstBytes = 1 << 20;

// Of the bytes that follow an answer's messages. From 64 KiB to 1 MiB the rate is the same
// (measured: 435 to 550 MB/s on loopback); this takes the fewest messages.
constexpr size_t kPartBytes = 1 << 20;

}  // namespace

StreamedCall::StreamedCall(grpc::CallbackServerContext& context, ServiceState& state,
                           const StreamMethod& method)
    : context_(context),
      method_(method),
      call_(context, state, method.method),
      assembler_(state.options.limits),
      idle_timer_(*state.options.clock, state.options.idle_timeout, [this] {
        const bool ended =
            EndLate(absl::StrCat("the upload has stalled: nothing has arrived for ",
                                 absl::FormatDuration(call_.state().options.idle_timeout),
                                 " (--idle-timeout); send the graph without a pause"));
        if (!ended) context_.TryCancel();  // A client that reads nothing would not see a status.
      }) {
  const absl::Status status = Guarded([this] { return call_.Enter(); });
  if (status.ok()) {
    Read();
  } else {
    End(status);
  }
}

void StreamedCall::Read() {
  reading_ = true;
  idle_timer_.Wait();
  StartRead(&message_);
}

void StreamedCall::OnReadDone(bool ok) {
  if (!reading_.exchange(false)) return;  // The call has ended.
  idle_timer_.Pause();
  absl::Status status = ok ? TakeMessage() : EndUpload();
  if (!status.ok()) return End(status);
  if (ok) Read();  // Otherwise the work is queued, and this may already be deleted.
}

absl::Status StreamedCall::TakeMessage() {
  return Guarded([this]() -> absl::Status {
    if (call_.stop().ShouldStop(1)) return call_.stop().status("upload");
    // Most messages are chunks: they are not parsed, and copied once.
    std::vector<grpc::Slice> slices;
    const auto chunk = OnlyField(kChunkField, message_, &slices);
    if (chunk.empty()) return TakeOther();
    for (absl::string_view piece : chunk) {
      call_.AddInputBytes(piece.size());
      uploaded_bytes_.fetch_add(static_cast<int64_t>(piece.size()), std::memory_order_relaxed);
    }
    absl::Status status = assembler_.AddChunk(chunk);
    return status.ok() ? HoldGraphs() : status;
  });
}

absl::Status StreamedCall::HoldGraphs() {
  const absl::Status status = call_.HoldGraphs(static_cast<int64_t>(assembler_.capacity_bytes()));
  if (!status.ok()) assembler_.ReleaseGraphs();
  return status;
}

absl::Status StreamedCall::TakeOther() {
  std::unique_ptr<google::protobuf::Message> request(method_.request.New());
  absl::Status status = ParseOptions(
      View(OnePiece(message_)), call_.state().options.limits.max_option_bytes(),
      [this](int64_t bytes) { return call_.HoldOptions(bytes); }, request.get());
  if (!status.ok()) return status;
  // A newer client's field, anywhere in the message, has an unknown meaning and must not be
  // ignored.
  if (status = core::CheckKnownFields(*request); !status.ok()) return status;
  if (const absl::string_view chunk = ChunkOf(*request); !chunk.empty()) {
    call_.AddInputBytes(static_cast<int64_t>(chunk.size()));
  }
  const bool is_header = !assembler_.has_header();
  if (is_header && method_.method == Method::kStreamRewrite) {
    auto& rewrite = static_cast<v1::StreamRewriteRequest&>(*request);
    if (rewrite.has_header()) {
      SetDefaults(call_.state().options, rewrite.mutable_header()->mutable_options());
    }
  }
  if (is_header && method_.method == Method::kExplore) {
    auto& explore = static_cast<v1::ExploreRequest&>(*request);
    if (explore.header().has_options()) {
      SetDefaults(call_.state().options, explore.mutable_header()->mutable_options());
    }
  }
  status = assembler_.Add(*request);
  if (!status.ok()) return status;
  if (!is_header) return HoldGraphs();
  header_ = std::move(request);
  // Before anything else is read, so that a rejected request costs nothing.
  v1::Strategy strategy = v1::STRATEGY_UNSPECIFIED;
  if (const v1::StreamRewriteHeader* const rewrite = rewrite_header()) {
    if (Simulates(rewrite->options())) call_.ExpectSimulation();
    strategy = StrategyOf(rewrite->options());
  }
  const int64_t total = assembler_.total_size_bytes();
  status = call_.Admit(strategy, total, std::min(total, kFirstBytes));
  if (status.ok()) LimitUpload();
  return status;
}

void StreamedCall::LimitUpload() {
  const Options& options = call_.state().options;
  if (options.min_upload_rate == 0) return;
  Clock& clock = *options.clock;
  const auto at_least = [rate = options.min_upload_rate](int64_t bytes) {
    return absl::Seconds(1) * bytes / rate;
  };
  // A chunk counts when it is complete.
  const absl::Duration grace = std::max(kUploadGrace, at_least(options.limits.max_chunk_bytes()));
  const auto look = [this, &clock, at_least, end = clock.Now() + grace] {
    const absl::Time due = end + at_least(uploaded_bytes_.load(std::memory_order_relaxed));
    if (!uploading_.load(std::memory_order_relaxed)) return absl::InfiniteFuture();
    if (due > clock.Now()) return due;
    const bool ended = EndLate(absl::StrCat(
        "the upload is too slow: ", uploaded_bytes_.load(std::memory_order_relaxed), " of ",
        assembler_.total_size_bytes(), " bytes have arrived, which is more than ",
        absl::FormatDuration(kUploadGrace), " behind ",
        core::BytesText(call_.state().options.min_upload_rate),
        " per second (--min-upload-rate); send it faster, or again when the network is less busy"));
    // If not, a message is just being read.
    return ended ? absl::InfiniteFuture() : clock.Now() + kUploadGrace;
  };
  upload_timer_ = clock.CallAt(clock.Now() + grace, look);
}

bool StreamedCall::EndLate(absl::string_view message) {
  if (!reading_.exchange(false)) return false;
  End(core::Error(absl::StatusCode::kCancelled, v1::ERROR_REASON_STOPPED, message));
  return true;
}

absl::Status StreamedCall::EndUpload() {
  upload_timer_.reset();
  message_.Clear();  // The last chunk is in the assembler.
  if (absl::Status status = assembler_.FinishUpload(); !status.ok()) return status;
  return call_.RunOnWorker([this] { Answer(); });
}

const v1::StreamRewriteHeader* StreamedCall::rewrite_header() const {
  if (method_.method != Method::kStreamRewrite || header_ == nullptr) return nullptr;
  return &static_cast<const v1::StreamRewriteRequest&>(*header_).header();
}

WorkContext StreamedCall::Context() const {
  ServiceState& state = call_.state();
  return {assembler_.graphs(), state.options, call_.stop(), state.metrics};
}

void StreamedCall::Answer() {
  const Options& options = call_.state().options;
  queue_.emplace(
      assembler_.total_size_bytes(), options.idle_timeout, [this] { return call_.OthersWait(); },
      *options.clock);
  absl::Status status = call_.BeginWork();
  if (status.ok()) status = assembler_.VerifyGraphs(call_.stop());
  if (!status.ok()) return EndAnswer(status);
  if (const v1::StreamRewriteHeader* const header = rewrite_header()) {
    return rewrite_.Run(
        assembler_.graphs()[0], header->options(),
        [this, header](const std::shared_ptr<RewriteAnswer>& answer) {
          assembler_.ReleaseGraphs();
          EndAnswer(call_.RunCharged([&] {
            return Guarded([&] { return SendAnswer(answer, *header, Context(), *this); });
          }));
        });
  }
  const WorkContext context = Context();
  status = call_.RunWork(context.graphs, call_.stopped(), [&] {
    return Guarded([&] { return method_.run(*header_, context, *this); });
  });
  assembler_.ReleaseGraphs();
  EndAnswer(status);
}

void StreamedCall::EndAnswer(const absl::Status& status) {
  status_ = status;
  if (queue_->Close()) WriteNext();
}

absl::Status StreamedCall::Send(const google::protobuf::Message& message) {
  const absl::StatusOr<bool> asleep = queue_->Push(ToBuffer(message), call_.stop());
  if (!asleep.ok()) {
    call_.Cancel();  // No one takes further results.
    return asleep.status();
  }
  if (*asleep) WriteNext();
  return absl::OkStatus();
}

void StreamedCall::SendBytes(int field, std::shared_ptr<const std::string> bytes) {
  rest_field_ = field;
  rest_ = std::move(bytes);
}

void StreamedCall::WriteNext() {
  switch (queue_->Take(&response_)) {
    case MessageQueue::Next::kMessage:
      sent_bytes_ = static_cast<int64_t>(response_.Length());
      // Of a rewrite only graphs count, which are in `rest_`.
      if (rewrite_header() == nullptr) call_.AddOutputBytes(sent_bytes_);
      return Write();
    case MessageQueue::Next::kNothingYet:
      return;
    case MessageQueue::Next::kEnd:
      break;
  }
  if (gone_ && status_.ok()) {
    status_ = absl::CancelledError("the caller disconnected while the answer was sent");
  }
  if (status_.ok() && rest_ != nullptr && rest_sent_ < rest_->size()) {
    const size_t size = std::min(kPartBytes, rest_->size() - rest_sent_);
    status_ = Guarded([&] {
      response_ = FieldToBuffer("", rest_field_, SharedSlice(rest_, rest_sent_, size));
      return absl::OkStatus();
    });
    if (status_.ok()) {
      rest_sent_ += size;
      call_.AddOutputBytes(static_cast<int64_t>(size));
      return Write();
    }
  }
  End(status_);
}

void StreamedCall::Write() {
  // gRPC's own allocations meanwhile, for this call and others, are not charged.
  const MemoryAccount::Scope nobody(nullptr);
  idle_timer_.Wait();
  StartWrite(&response_);
}

void StreamedCall::OnWriteDone(bool ok) {
  idle_timer_.Pause();
  response_.Clear();  // Here, as no account is charged.
  call_.GiveBack(std::exchange(sent_bytes_, 0));
  gone_ = !ok;
  if (!ok) call_.Cancel();
  if (ok || queue_->Abandon()) WriteNext();
}

void StreamedCall::End(const absl::Status& status) {
  idle_timer_.Pause();
  uploading_.store(false, std::memory_order_relaxed);
  Finish(call_.Conclude(status));  // Last: this may be deleted when it returns.
}

}  // namespace spillway::server
