#include "client_lib/internal/stream_rewrite.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "rewrite_core/base/crc32c.h"

namespace spillway::internal {
namespace {

// The maximum that protobuf, and so TensorFlow, can read. An answer that announces more is
// rejected.
constexpr int64_t kMaxGraphBytes = std::numeric_limits<int32_t>::max();
// A rewritten graph is a little larger than the one that was sent. Memory for an answer of up to
// twice that size plus these bytes is reserved immediately. Beyond that, it grows as bytes arrive,
// so that a server that announces much and sends little costs no more than the caller has already
// spent.
constexpr int64_t kRoomBytes = 1 << 20;

// Handles the messages of an answer in order. Every method returns the error that it finds.
class Answer {
 public:
  // `sent_bytes`: the size of the graph that was sent.
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
    if (total_bytes_ > 0 && crc32c_ != announced_crc32c_) {
      return BadAnswer("its CRC-32C is not the one announced");
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
    if (header->graph().has_crc32c()) announced_crc32c_ = header->graph().crc32c();
    if (header->has_report()) response_.mutable_report()->Swap(header->mutable_report());
    if (header->has_patch()) response_.mutable_patch()->Swap(header->mutable_patch());
    if (header->has_plan()) response_.mutable_plan()->Swap(header->mutable_plan());
    // A string that grows as it is filled would hold the answer twice.
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
    crc32c_ = core::ExtendCrc32c(crc32c_, chunk);
    progress_->Report(Stage::kReceiving, graph_def.size(), total_bytes_);
    return absl::OkStatus();
  }

  const int64_t room_bytes_;
  ProgressReporter* const progress_;
  v1::RewriteResponse response_;
  uint32_t crc32c_ = 0;
  absl::optional<uint32_t> announced_crc32c_;
  int64_t total_bytes_ = 0;
  bool has_header_ = false;
};

}  // namespace

absl::StatusOr<v1::RewriteResponse> StreamRewrite(v1::RewriteService::StubInterface* stub,
                                                  absl::string_view graph_def,
                                                  const v1::RewriteOptions& options,
                                                  const Attempt& attempt) {
  v1::StreamRewriteRequest request;
  v1::StreamRewriteHeader& header = *request.mutable_header();
  absl::Status status = Announce(graph_def, attempt.limits, header.mutable_graph());
  if (!status.ok()) return status;
  *header.mutable_options() = options;
  Answer answer(graph_def.size(), attempt.progress);
  using Stream = ManyAnswersStream<v1::StreamRewriteRequest, v1::StreamRewriteResponse>;
  const auto open = [&](grpc::ClientContext* context) {
    return std::make_unique<Stream>(
        std::move(request), stub->StreamRewrite(context),
        [&answer](v1::StreamRewriteResponse* message) { return answer.Add(message); });
  };
  status = CallInChunks({graph_def}, open, attempt);
  if (!status.ok()) return status;
  return answer.Finish();
}

}  // namespace spillway::internal
