// The upload half of every streamed call: one header, then the bytes of the graphs that it
// announces in chunks, then the end. Puts the graphs together and checks everything that was
// announced. Knows nothing of gRPC.
//
//   Add (the header), Add (a chunk)..., FinishUpload, VerifyGraphs
//
// Errors: INVALID_ARGUMENT with BAD_STREAM where the protocol is not kept; RESOURCE_EXHAUSTED with
// LIMIT_EXCEEDED where a size is above a limit. Of two graphs they say which: "graph A: ...". After
// an error nothing else may be called.
//
// Memory: at most twice the bytes that have arrived (growing_buffer.h), whatever was announced.
//
// Not thread-safe.
#ifndef SPILLWAY_SERVER_STREAM_ASSEMBLER_H_
#define SPILLWAY_SERVER_STREAM_ASSEMBLER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "rewrite_core/base/stop_token.h"
#include "server/growing_buffer.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::server {

// The graphs that a header announces, in the order in which they come.
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

  // Takes the next message of whatever call: its header, or a chunk.
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

  // The same for a chunk that came in pieces.
  absl::Status AddChunk(absl::Span<const absl::string_view> pieces);

  // The client has half-closed: all bytes must be here.
  absl::Status FinishUpload() const;

  // Compares the checksums and digests that were announced. Reads the whole graphs: not for gRPC's
  // threads.
  absl::Status VerifyGraphs(const core::StopToken& stop) const;

  bool has_header() const { return !graphs_.empty(); }
  // As announced, of all graphs together. REQUIRES: has_header().
  int64_t total_size_bytes() const;

  // The bytes so far of each graph, valid until the next call.
  std::vector<absl::string_view> graphs() const;
  // Memory held for them.
  size_t capacity_bytes() const;

  // Frees the graphs.
  void ReleaseGraphs();

 private:
  // A graph that was announced.
  struct Upload {
    std::string name;  // `A` or `B`; empty: the only one.
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
  size_t current_ = 0;  // The graph whose chunks come now.
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_STREAM_ASSEMBLER_H_
