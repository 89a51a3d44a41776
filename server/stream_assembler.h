// The upload half of StreamRewrite: one header, then the graph's bytes in chunks, then the end.
// Puts the graph together and checks everything that was announced. Knows nothing of gRPC.
//
//   AddHeader, AddChunk..., FinishUpload, VerifyDigest
//
// Errors: INVALID_ARGUMENT with BAD_STREAM where the protocol is not kept; RESOURCE_EXHAUSTED with
// LIMIT_EXCEEDED where a size is above a limit. After an error nothing else may be called.
//
// Memory: at most twice the bytes that have arrived (growing_buffer.h), whatever was announced.
//
// Not thread-safe.
#ifndef SPILLWAY_SERVER_STREAM_ASSEMBLER_H_
#define SPILLWAY_SERVER_STREAM_ASSEMBLER_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"
#include "server/growing_buffer.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::server {

class StreamAssembler {
 public:
  // Uses max_graph_bytes and max_chunk_bytes of `limits`.
  explicit StreamAssembler(const v1::Limits& limits)
      : max_graph_bytes_(limits.max_graph_bytes()), max_chunk_bytes_(limits.max_chunk_bytes()) {}

  // Takes the next message, header or chunk. The header's options are moved out of `message`.
  absl::Status Add(v1::StreamRewriteRequest& message);

  // The client has half-closed: all bytes must be here.
  absl::Status FinishUpload() const;

  // Compares the digest, if one was announced. Reads the whole graph: not for gRPC's threads.
  absl::Status VerifyDigest(const core::StopToken& stop) const;

  bool has_header() const { return has_header_; }
  // As announced. REQUIRES: has_header().
  const v1::RewriteOptions& options() const { return header_.options(); }
  int64_t total_size_bytes() const { return header_.graph().total_size_bytes(); }

  // The bytes so far, valid until the next call.
  absl::string_view graph() const { return graph_.view(); }
  // Memory held for them.
  size_t capacity_bytes() const { return graph_.capacity(); }

  // Frees the graph.
  void ReleaseGraph() { graph_.Clear(); }

 private:
  absl::Status AddHeader(v1::StreamRewriteHeader& header);
  absl::Status AddChunk(absl::string_view chunk);

  const int64_t max_graph_bytes_;
  const int64_t max_chunk_bytes_;
  bool has_header_ = false;
  v1::StreamRewriteHeader header_;
  GrowingBuffer graph_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_STREAM_ASSEMBLER_H_
