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
// Memory: at most twice the bytes that have arrived (GrowingBuffer), regardless of announced sizes.
//
// Not thread-safe.
#ifndef SPILLWAY_SERVER_CALLS_STREAM_ASSEMBLER_H_
#define SPILLWAY_SERVER_CALLS_STREAM_ASSEMBLER_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "google/protobuf/message.h"
#include "rewrite_core/base/stop_token.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::server {

// The fields of the requests of all methods: the first message has the header, the others a chunk.
inline constexpr int kHeaderField = 1;
inline constexpr int kChunkField = 2;

// Returns the chunk in a request; empty if it has none.
absl::string_view ChunkOf(const google::protobuf::Message& request);

// A contiguous buffer for bytes that arrive piece by piece. Append may throw std::bad_alloc.
//
// Unlike a std::string it grows with realloc, which on Linux moves large blocks by remapping their
// pages: a graph of 2 GiB never exists twice, not even while it grows.
class GrowingBuffer {
 public:
  // Appends `bytes`. `expected_size` is the announced total: capacity doubles up to it and not
  // beyond, so it never exceeds twice the bytes that have arrived (or kFirstBytes), for any
  // announced size.
  void Append(absl::string_view bytes, size_t expected_size);

  // Frees the memory.
  void Clear();

  absl::string_view view() const { return absl::string_view(data_.get(), size_); }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }

  // The first allocation, if at least as much is announced: one chunk as clients send them.
  static constexpr size_t kFirstBytes = 64 << 10;

 private:
  struct Free {
    void operator()(char* data) const { std::free(data); }
  };
  std::unique_ptr<char, Free> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

class StreamAssembler {
 public:
  // Uses max_graph_bytes and max_chunk_bytes of `limits`.
  explicit StreamAssembler(const v1::Limits& limits)
      : max_graph_bytes_(limits.max_graph_bytes()), max_chunk_bytes_(limits.max_chunk_bytes()) {}

  // Adds the next message of any method: its header, which announces the graphs in its fields of
  // type GraphHeader, or a chunk.
  absl::Status Add(const google::protobuf::Message& request);

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

  const int64_t max_graph_bytes_;
  const int64_t max_chunk_bytes_;
  std::vector<Upload> graphs_;
  size_t current_ = 0;  // The graph that is currently being received.
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_STREAM_ASSEMBLER_H_
