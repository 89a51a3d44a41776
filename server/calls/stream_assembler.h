// The upload half of every streamed call: one header, then the bytes of the announced graphs in
// chunks, then the end. Assembles the graphs and checks everything that was announced. Independent
// of gRPC.
//
//   Add (the header), Add (a chunk)..., FinishUpload, VerifyGraphs
//
// Errors: INVALID_ARGUMENT (BAD_STREAM) if the protocol is violated; RESOURCE_EXHAUSTED
// (LIMIT_EXCEEDED) if a size exceeds a limit. With two graphs, errors say which: "graph A: ...".
// Nothing else may be called after an error.
//
// Memory: at most twice the bytes that have arrived (growing_buffer.h), regardless of what was
// announced.
//
// Not thread-safe.
#ifndef SPILLWAY_SERVER_CALLS_STREAM_ASSEMBLER_H_
#define SPILLWAY_SERVER_CALLS_STREAM_ASSEMBLER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "rewrite_core/base/stop_token.h"
#include "server/calls/growing_buffer.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::server {

// Returns the graphs that a header announces, in order of arrival.
template <typename Header>
std::vector<const v1::GraphHeader*> GraphsOf(const Header& header) {
  return {&header.graph()};
}
inline std::vector<const v1::GraphHeader*> GraphsOf(const v1::DiffHeader& header) {
  return {&header.graph_a(), &header.graph_b()};
}

class StreamAssembler {
 public:
  // Uses max_graph_bytes and max_chunk_bytes of `limits`.
  explicit StreamAssembler(const v1::Limits& limits)
      : max_graph_bytes_(limits.max_graph_bytes()), max_chunk_bytes_(limits.max_chunk_bytes()) {}

  // Adds the next message of any call: its header, or a chunk.
  template <typename Request>
  absl::Status Add(const Request& message) {
    switch (message.part_case()) {
      case Request::kHeader:
        return AddHeader(GraphsOf(message.header()));
      case Request::kChunk:
        return AddChunk({message.chunk()});
      default:
        return NoPart();
    }
  }

  // The same for a chunk in pieces.
  absl::Status AddChunk(absl::Span<const absl::string_view> pieces);

  // Called when the client has half-closed: checks that all bytes have arrived.
  absl::Status FinishUpload() const;

  // Verifies the announced checksums and digests. Reads the whole graphs, so it must not run on
  // gRPC's threads.
  absl::Status VerifyGraphs(const core::StopToken& stop) const;

  bool has_header() const { return !graphs_.empty(); }
  // The announced total of all graphs. REQUIRES: has_header().
  int64_t total_size_bytes() const;

  // The bytes of each graph so far, valid until the next call.
  std::vector<absl::string_view> graphs() const;
  // Memory held for the graphs.
  size_t capacity_bytes() const;

  // Frees the graphs.
  void ReleaseGraphs();

 private:
  // An announced graph.
  struct Upload {
    std::string name;  // `A` or `B`; empty: the only graph.
    int64_t size_bytes = 0;
    std::string sha256;  // Empty: none.
    absl::optional<uint32_t> crc32c;
    GrowingBuffer bytes;

    int64_t missing() const { return size_bytes - static_cast<int64_t>(bytes.size()); }
  };

  absl::Status AddHeader(const std::vector<const v1::GraphHeader*>& graphs);
  absl::Status CheckHeader(const std::string& name, const v1::GraphHeader& graph) const;
  static absl::Status NoPart();

  const int64_t max_graph_bytes_;
  const int64_t max_chunk_bytes_;
  std::vector<Upload> graphs_;
  size_t current_ = 0;  // The graph that is currently being received.
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_STREAM_ASSEMBLER_H_
