#include "server/calls/stream_assembler.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/base/crc32c.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/sha256.h"
#include "server/base/limit_error.h"

namespace spillway::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

absl::Status BadStream(absl::string_view message,
                       std::initializer_list<core::ErrorDetail> details = {}) {
  return core::InvalidError(v1::ERROR_REASON_BAD_STREAM, message, details);
}

absl::Status AboveLimit(absl::string_view message, absl::string_view field, int64_t value,
                        int64_t limit) {
  return core::WithDetail(LimitError(message, value, limit), "field", field);
}

// Prefix of an error about one of several graphs.
std::string Prefix(const std::string& name) {
  return name.empty() ? "" : absl::StrCat("graph ", name, ": ");
}

// Returns the graphs that a header announces, in order of arrival.
std::vector<const v1::GraphHeader*> GraphsOf(const Message& header) {
  std::vector<const v1::GraphHeader*> graphs;
  const google::protobuf::Descriptor& type = *header.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    if (type.field(i)->message_type() != v1::GraphHeader::descriptor()) continue;
    const Message& graph = header.GetReflection()->GetMessage(header, type.field(i));
    graphs.push_back(&static_cast<const v1::GraphHeader&>(graph));
  }
  return graphs;
}

const FieldDescriptor* Field(const Message& request, int number) {
  return request.GetDescriptor()->FindFieldByNumber(number);
}

bool Has(const Message& request, const FieldDescriptor* field) {
  return request.GetReflection()->HasField(request, field);
}

}  // namespace

void GrowingBuffer::Append(absl::string_view bytes, size_t expected_size) {
  const size_t needed = size_ + bytes.size();
  if (needed > capacity_) {
    const size_t doubled = std::max({kFirstBytes, 2 * capacity_, needed});
    const size_t capacity = std::max(needed, std::min(doubled, expected_size));
    char* grown = static_cast<char*>(std::realloc(data_.get(), capacity));
    if (grown == nullptr) throw std::bad_alloc();
    (void)data_.release();  // realloc has freed it.
    data_.reset(grown);
    capacity_ = capacity;
  }
  if (!bytes.empty()) std::memcpy(data_.get() + size_, bytes.data(), bytes.size());
  size_ = needed;
}

void GrowingBuffer::Clear() {
  data_.reset();
  size_ = capacity_ = 0;
}

absl::string_view ChunkOf(const Message& request) {
  std::string unused;
  return request.GetReflection()->GetStringReference(request, Field(request, kChunkField), &unused);
}

absl::Status StreamAssembler::Add(const Message& request) {
  const FieldDescriptor* const header = Field(request, kHeaderField);
  if (Has(request, header)) {
    return AddHeader(GraphsOf(request.GetReflection()->GetMessage(request, header)));
  }
  if (Has(request, Field(request, kChunkField))) return AddChunk({ChunkOf(request)});
  return BadStream("a message of the stream has neither header nor chunk; send one of them");
}

absl::Status StreamAssembler::AddHeader(const std::vector<const v1::GraphHeader*>& graphs) {
  if (has_header()) {
    return BadStream("the stream has a second header; send one header, then chunks");
  }
  std::vector<Upload> announced;
  for (const v1::GraphHeader* graph : graphs) {
    Upload& upload = announced.emplace_back();
    if (graphs.size() > 1)
      upload.name = std::string(1, static_cast<char>('A' + announced.size() - 1));
    if (absl::Status status = CheckHeader(upload.name, *graph); !status.ok()) return status;
    upload.size_bytes = graph->total_size_bytes();
    upload.sha256 = graph->sha256();
    if (graph->has_crc32c()) upload.crc32c = graph->crc32c();
  }
  graphs_ = std::move(announced);
  return absl::OkStatus();
}

absl::Status StreamAssembler::CheckHeader(const std::string& name,
                                          const v1::GraphHeader& graph) const {
  const int64_t size = graph.total_size_bytes();
  if (size < 1) {
    return BadStream(absl::StrCat(Prefix(name), "total_size_bytes is ", size,
                                  "; announce the size of the graph, at least 1"),
                     {{"field", "total_size_bytes"}, {"value", absl::StrCat(size)}});
  }
  if (size > max_graph_bytes_) {
    return AboveLimit(absl::StrCat(Prefix(name), "the graph has ", size,
                                   " bytes and this server takes at most ", max_graph_bytes_,
                                   ": keep weights in checkpoints, not in the "
                                   "graph, or raise --max-graph-bytes"),
                      "total_size_bytes", size, max_graph_bytes_);
  }
  const size_t digest_size = graph.sha256().size();
  if (digest_size != 0 && digest_size != core::kSha256Bytes) {
    return BadStream(absl::StrCat(Prefix(name), "sha256 has ", digest_size, " bytes; send the ",
                                  core::kSha256Bytes, " raw bytes, or leave it out"),
                     {{"field", "sha256"}, {"value", absl::StrCat(digest_size)}});
  }
  return absl::OkStatus();
}

absl::Status StreamAssembler::AddChunk(absl::Span<const absl::string_view> pieces) {
  if (!has_header()) {
    return BadStream("the stream starts with a chunk; send the header first");
  }
  int64_t size = 0;
  for (absl::string_view piece : pieces) size += static_cast<int64_t>(piece.size());
  if (size == 0) {
    return BadStream("a chunk is empty; send at least 1 byte in each, and none after the last");
  }
  if (size > max_chunk_bytes_) {
    return AboveLimit(absl::StrCat("a chunk has ", size, " bytes and this server takes at most ",
                                   max_chunk_bytes_, ": send chunks of 256 KiB to 1 MiB"),
                      "chunk", size, max_chunk_bytes_);
  }
  if (graphs_[current_].missing() == 0 && current_ + 1 < graphs_.size()) ++current_;
  Upload& graph = graphs_[current_];
  if (size > graph.missing()) {
    const bool more_follow = current_ + 1 < graphs_.size();
    return BadStream(
        absl::StrCat(Prefix(graph.name), "more bytes arrived than the ", graph.size_bytes,
                     " announced; ",
                     more_follow ? "end its last chunk with it, and begin the next graph in another"
                                 : "set total_size_bytes to the size of the graph"),
        {{"field", "total_size_bytes"}, {"value", absl::StrCat(graph.size_bytes)}});
  }
  for (absl::string_view piece : pieces) graph.bytes.Append(piece, graph.size_bytes);
  return absl::OkStatus();
}

absl::Status StreamAssembler::FinishUpload() const {
  if (!has_header()) {
    return BadStream("the stream ended without a header; send the header first");
  }
  for (const Upload& graph : graphs_) {
    if (graph.missing() == 0) continue;
    const std::string received = absl::StrCat(graph.bytes.size());
    return BadStream(
        absl::StrCat(Prefix(graph.name), "the stream ended after ", received, " of the ",
                     graph.size_bytes, " bytes announced; send the whole graph, then half-close"),
        {{"field", "total_size_bytes"},
         {"value", absl::StrCat(graph.size_bytes)},
         {"received", received}});
  }
  return absl::OkStatus();
}

absl::Status StreamAssembler::VerifyGraphs(const core::StopToken& stop) const {
  for (const Upload& graph : graphs_) {
    const auto damaged = [&](absl::string_view kind, absl::string_view field,
                             const std::string& announced, const std::string& received) {
      return BadStream(
          absl::StrCat(Prefix(graph.name), "the graph that arrived has another ", kind,
                       " than announced; send it again"),
          {{"field", std::string(field)}, {"value", announced}, {"received", received}});
    };
    if (graph.crc32c.has_value()) {
      const absl::StatusOr<uint32_t> crc32c = core::Crc32cOf(graph.bytes.view(), stop);
      if (!crc32c.ok()) return crc32c.status();
      if (*crc32c != *graph.crc32c) {
        const auto hex = [](uint32_t value) {
          return absl::StrCat(absl::Hex(value, absl::kZeroPad8));
        };
        return damaged("CRC-32C", "crc32c", hex(*graph.crc32c), hex(*crc32c));
      }
    }
    if (!graph.sha256.empty()) {
      const absl::StatusOr<std::string> digest = core::Sha256Of(graph.bytes.view(), stop);
      if (!digest.ok()) return digest.status();
      if (*digest != graph.sha256) {
        return damaged("SHA-256", "sha256", absl::BytesToHexString(graph.sha256),
                       absl::BytesToHexString(*digest));
      }
    }
  }
  return absl::OkStatus();
}

int64_t StreamAssembler::total_size_bytes() const {
  int64_t total = 0;  // At most two graphs, each within a limit below 2 GiB.
  for (const Upload& graph : graphs_) total += graph.size_bytes;
  return total;
}

std::vector<absl::string_view> StreamAssembler::graphs() const {
  std::vector<absl::string_view> views;
  for (const Upload& graph : graphs_) views.push_back(graph.bytes.view());
  return views;
}

size_t StreamAssembler::capacity_bytes() const {
  size_t total = 0;
  for (const Upload& graph : graphs_) total += graph.bytes.capacity();
  return total;
}

void StreamAssembler::ReleaseGraphs() {
  for (Upload& graph : graphs_) graph.bytes.Clear();
}

}  // namespace spillway::server
