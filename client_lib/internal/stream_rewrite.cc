#include "client_lib/internal/stream_rewrite.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client_lib/internal/sha256.h"
#include "client_lib/internal/status_conversion.h"
#include "rewrite_core/base/error.h"

namespace spillway::internal {
namespace {

// What protobuf, and so TensorFlow, can read. An answer that announces more is not believed.
constexpr int64_t kMaxGraphBytes = std::numeric_limits<int32_t>::max();
// A rewritten graph is a little larger than the one that was sent. Room for an answer of up to
// twice that, and these bytes, is set aside at once; beyond, it grows as the bytes arrive: a server
// that announces much and sends little costs no more than the caller has spent already.
constexpr int64_t kRoomBytes = 1 << 20;
// Between two looks at the deadline while hashing: about a millisecond.
constexpr size_t kDigestPieceBytes = 1 << 20;

using Stream =
    grpc::ClientReaderWriterInterface<v1::StreamRewriteRequest, v1::StreamRewriteResponse>;

absl::Status OutOfMemory() {
  return absl::ResourceExhaustedError("there is not enough memory for the call");
}

absl::Status BadAnswer(absl::string_view what) {
  return core::Error(absl::StatusCode::kInternal, v1::ERROR_REASON_BAD_STREAM,
                     absl::StrCat("the answer of the server was damaged on its way: ", what,
                                  "; try again, and report it if it stays so"));
}

// The digest of a graph may take a second: the caller's limits hold here, too.
absl::StatusOr<std::string> DigestOf(absl::string_view bytes, const CallLimits& limits) {
  const core::StopToken stop = limits.MakeStopToken();
  Sha256 digest;
  while (!bytes.empty()) {
    if (stop.ShouldStop(1)) return stop.status("digest");
    const absl::string_view piece = bytes.substr(0, kDigestPieceBytes);
    digest.Update(piece);
    bytes.remove_prefix(piece.size());
  }
  return digest.Finish();
}

// Sends header and chunks. Stops when a write fails: then the call is over, and Finish says why.
void WriteRequest(const v1::StreamRewriteRequest& header, absl::string_view graph_def,
                  int64_t chunk_bytes, ProgressReporter* progress, Stream* stream) {
  const int64_t total = graph_def.size();
  progress->Report(Stage::kSending, 0, total);
  if (!stream->Write(header)) return;
  v1::StreamRewriteRequest request;
  while (!graph_def.empty()) {
    const absl::string_view chunk = graph_def.substr(0, chunk_bytes);
    request.mutable_chunk()->assign(chunk.data(), chunk.size());
    if (!stream->Write(request)) return;
    graph_def.remove_prefix(chunk.size());
    progress->Report(Stage::kSending, total - graph_def.size(), total);
  }
  stream->WritesDone();
  progress->Report(Stage::kRewriting);
}

// Takes the messages of an answer in order. Every method gives the fault it finds.
class Answer {
 public:
  // `sent_bytes`: the size of the graph that this is the answer to.
  Answer(int64_t sent_bytes, ProgressReporter* progress)
      : room_bytes_(2 * sent_bytes + kRoomBytes), progress_(progress) {}

  absl::Status Add(v1::StreamRewriteResponse* message) {
    return message->has_header() ? AddHeader(message->mutable_header())
                                 : AddChunk(message->chunk());
  }

  // The whole answer, once the call has ended well.
  absl::StatusOr<v1::RewriteResponse> Finish() {
    if (!has_header_) return BadAnswer("it has no header");
    const int64_t size = response_.graph_def().size();
    if (size != total_bytes_) {
      return BadAnswer(absl::StrCat("it has ", size, " bytes instead of ", total_bytes_));
    }
    if (total_bytes_ > 0 && digest_.Finish() != sha256_) {
      return BadAnswer(absl::StrCat("its SHA-256 is not ", absl::BytesToHexString(sha256_)));
    }
    return std::move(response_);
  }

 private:
  absl::Status AddHeader(v1::StreamRewriteResult* header) {
    if (has_header_) return BadAnswer("it has two headers");
    has_header_ = true;
    total_bytes_ = header->graph().total_size_bytes();
    if (total_bytes_ < 0 || total_bytes_ > kMaxGraphBytes) {
      return BadAnswer(absl::StrCat("it announces ", total_bytes_, " bytes"));
    }
    sha256_ = header->graph().sha256();
    if (header->has_report()) response_.mutable_report()->Swap(header->mutable_report());
    if (header->has_patch()) response_.mutable_patch()->Swap(header->mutable_patch());
    // A string that grows as it is filled holds the answer twice.
    response_.mutable_graph_def()->reserve(std::min(total_bytes_, room_bytes_));
    progress_->Report(Stage::kReceiving, 0, total_bytes_);
    return absl::OkStatus();
  }

  absl::Status AddChunk(absl::string_view chunk) {
    if (!has_header_) return BadAnswer("it has no header");
    std::string& graph_def = *response_.mutable_graph_def();
    if (static_cast<int64_t>(chunk.size()) >
        total_bytes_ - static_cast<int64_t>(graph_def.size())) {
      return BadAnswer(absl::StrCat("it has more than the ", total_bytes_, " bytes announced"));
    }
    graph_def.append(chunk.data(), chunk.size());
    digest_.Update(chunk);
    progress_->Report(Stage::kReceiving, graph_def.size(), total_bytes_);
    return absl::OkStatus();
  }

  const int64_t room_bytes_;
  ProgressReporter* const progress_;
  v1::RewriteResponse response_;
  Sha256 digest_;
  std::string sha256_;
  int64_t total_bytes_ = 0;
  bool has_header_ = false;
};

}  // namespace

absl::StatusOr<v1::RewriteResponse> StreamRewrite(v1::RewriteService::StubInterface* stub,
                                                  absl::string_view graph_def,
                                                  const v1::RewriteOptions& options,
                                                  const RemoteOptions& remote,
                                                  const CallLimits& limits,
                                                  ProgressReporter* progress, Pushback* pushback) {
  absl::StatusOr<std::string> sha256 = DigestOf(graph_def, limits);
  if (!sha256.ok()) return sha256.status();
  v1::StreamRewriteRequest header;
  *header.mutable_header()->mutable_options() = options;
  v1::GraphHeader& graph = *header.mutable_header()->mutable_graph();
  graph.set_total_size_bytes(graph_def.size());
  graph.set_sha256(*std::move(sha256));

  RemoteCall call(limits);
  std::unique_ptr<Stream> stream = stub->StreamRewrite(call.context());
  Answer answer(graph_def.size(), progress);
  absl::Status fault;
  std::atomic<bool> writer_failed{false};
  std::thread writer;
  // Whatever is thrown below: a thread that is not joined ends the program.
  const absl::Cleanup join = [&] {
    if (!writer.joinable()) return;
    call.context()->TryCancel();
    writer.join();
  };
  try {
    writer = std::thread([&] {
      try {
        WriteRequest(header, graph_def, remote.chunk_bytes, progress, stream.get());
      } catch (const std::bad_alloc&) {
        writer_failed = true;
        call.context()->TryCancel();
      }
    });
    v1::StreamRewriteResponse message;
    while (fault.ok() && stream->Read(&message)) fault = answer.Add(&message);
  } catch (const std::bad_alloc&) {
    fault = OutOfMemory();
  } catch (const std::system_error& error) {
    fault = absl::ResourceExhaustedError(
        absl::StrCat("no thread could be started to send the graph (", error.what(),
                     "); wait until other calls are done"));
  }
  // No more of an answer that is wrong already; this also ends a write that waits.
  if (!fault.ok()) call.context()->TryCancel();
  if (writer.joinable()) writer.join();
  const grpc::Status status = stream->Finish();
  *pushback = call.pushback();
  if (!fault.ok()) return fault;
  if (writer_failed) return OutOfMemory();
  if (!status.ok()) return FromGrpc(status, remote.target);
  return answer.Finish();
}

}  // namespace spillway::internal
