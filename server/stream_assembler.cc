#include "server/stream_assembler.h"

#include <initializer_list>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "server/sha256.h"

namespace spillway::server {
namespace {

absl::Status BadStream(absl::string_view message,
                       std::initializer_list<core::ErrorDetail> details = {}) {
  return core::InvalidError(v1::ERROR_REASON_BAD_STREAM, message, details);
}

absl::Status AboveLimit(absl::string_view message, absl::string_view field, int64_t value,
                        int64_t limit) {
  return core::Error(
      absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_LIMIT_EXCEEDED, message,
      {{"field", field}, {"value", absl::StrCat(value)}, {"limit", absl::StrCat(limit)}});
}

}  // namespace

absl::Status StreamAssembler::Add(v1::StreamRewriteRequest& message) {
  switch (message.part_case()) {
    case v1::StreamRewriteRequest::kHeader:
      return AddHeader(*message.mutable_header());
    case v1::StreamRewriteRequest::kChunk:
      return AddChunk(message.chunk());
    case v1::StreamRewriteRequest::PART_NOT_SET:
      break;
  }
  return BadStream("a message of the stream has neither header nor chunk; send one of them");
}

absl::Status StreamAssembler::AddHeader(v1::StreamRewriteHeader& header) {
  if (has_header_) {
    return BadStream("the stream has a second header; send one header, then chunks");
  }
  const int64_t size = header.graph().total_size_bytes();
  if (size < 1) {
    return BadStream(
        absl::StrCat("total_size_bytes is ", size, "; announce the size of the graph, at least 1"),
        {{"field", "total_size_bytes"}, {"value", absl::StrCat(size)}});
  }
  if (size > max_graph_bytes_) {
    return AboveLimit(absl::StrCat("the graph has ", size, " bytes and this server takes at most ",
                                   max_graph_bytes_,
                                   ": keep weights in checkpoints, not in the "
                                   "graph, or raise --max-graph-bytes"),
                      "total_size_bytes", size, max_graph_bytes_);
  }
  const size_t digest_size = header.graph().sha256().size();
  if (digest_size != 0 && digest_size != kSha256Bytes) {
    return BadStream(absl::StrCat("sha256 has ", digest_size, " bytes; send the ", kSha256Bytes,
                                  " raw bytes, or leave it out"),
                     {{"field", "sha256"}, {"value", absl::StrCat(digest_size)}});
  }
  header_.Swap(&header);
  has_header_ = true;
  return absl::OkStatus();
}

absl::Status StreamAssembler::AddChunk(absl::string_view chunk) {
  if (!has_header_) {
    return BadStream("the stream starts with a chunk; send the header first");
  }
  if (chunk.empty()) {
    return BadStream("a chunk is empty; send at least 1 byte in each, and none after the last");
  }
  const int64_t size = chunk.size();
  if (size > max_chunk_bytes_) {
    return AboveLimit(absl::StrCat("a chunk has ", size, " bytes and this server takes at most ",
                                   max_chunk_bytes_, ": send chunks of 256 KiB to 1 MiB"),
                      "chunk", size, max_chunk_bytes_);
  }
  const int64_t missing = total_size_bytes() - static_cast<int64_t>(graph_.size());
  if (size > missing) {
    return BadStream(absl::StrCat("more bytes arrived than the ", total_size_bytes(),
                                  " announced; set total_size_bytes to the size of the graph"),
                     {{"field", "total_size_bytes"}, {"value", absl::StrCat(total_size_bytes())}});
  }
  graph_.Append(chunk, total_size_bytes());
  return absl::OkStatus();
}

absl::Status StreamAssembler::FinishUpload() const {
  if (!has_header_) {
    return BadStream("the stream ended without a header; send the header first");
  }
  const int64_t size = graph_.size();
  if (size != total_size_bytes()) {
    return BadStream(absl::StrCat("the stream ended after ", size, " of the ", total_size_bytes(),
                                  " bytes announced; send the whole graph, then half-close"),
                     {{"field", "total_size_bytes"},
                      {"value", absl::StrCat(total_size_bytes())},
                      {"received", absl::StrCat(size)}});
  }
  return absl::OkStatus();
}

absl::Status StreamAssembler::VerifyDigest(const core::StopToken& stop) const {
  if (header_.graph().sha256().empty()) return absl::OkStatus();
  absl::StatusOr<std::string> digest = Sha256(graph_.view(), stop);
  if (!digest.ok()) return digest.status();
  if (*digest == header_.graph().sha256()) return absl::OkStatus();
  return BadStream("the graph that arrived has another SHA-256 than announced; send it again",
                   {{"field", "sha256"},
                    {"value", absl::BytesToHexString(header_.graph().sha256())},
                    {"received", absl::BytesToHexString(*digest)}});
}

}  // namespace spillway::server
