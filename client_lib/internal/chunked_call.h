// Internal. Calls whose request is a header followed by graphs in chunks: StreamRewrite, Inspect,
// Simulate, Explore and Diff.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_CHUNKED_CALL_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_CHUNKED_CALL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client_lib/internal/progress_reporter.h"
#include "client_lib/internal/remote_call.h"
#include "grpcpp/support/sync_stream.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::internal {

// The parts of an attempt that do not depend on its method. All must outlive it.
struct Attempt {
  const CallLimits& limits;
  const CallHeaders& headers;
  const std::string& target;  // The server, for errors.
  int64_t chunk_bytes;
  ProgressReporter* progress;  // Receives every chunk sent, on the sending thread.
  Pushback* pushback;          // Receives the server's pushback.
};

// The stream of one method, without its types. One thread may write while another reads.
class ChunkStream {
 public:
  virtual ~ChunkStream() = default;

  // Returns false if the call is over; Finish returns the reason.
  virtual bool WriteHeader() = 0;
  virtual bool WriteChunk(absl::string_view chunk) = 0;
  virtual void WritesDone() = 0;

  // Reads and handles one message of the answer. Returns false if none follows, or with an error in
  // `*fault` if this one is invalid.
  virtual bool Read(absl::Status* fault) = 0;
  virtual grpc::Status Finish() = 0;
};

using OpenStream = std::function<std::unique_ptr<ChunkStream>(grpc::ClientContext* context)>;

// Sends header and graphs on a separate thread while this one reads, as the protocol requires: the
// server may answer early. Holds one chunk besides the caller's bytes. Graphs are sent one after
// another; a chunk belongs to one graph.
//
// RESOURCE_EXHAUSTED if memory or a thread is not available. An invalid message ends the call.
absl::Status CallInChunks(const std::vector<absl::string_view>& graphs, const OpenStream& open,
                          const Attempt& attempt);

// Returns size and CRC-32C of `graph_def`, within the limits of the call.
absl::Status Announce(absl::string_view graph_def, const CallLimits& limits,
                      v1::GraphHeader* header);

// Returns INTERNAL (BAD_STREAM), for an answer that violates the protocol.
absl::Status BadAnswer(absl::string_view what);

// A method whose request consists of a header and chunks; the base of the two below.
template <typename Request, typename Stream>
class StreamOf : public ChunkStream {
 public:
  StreamOf(Request header, std::unique_ptr<Stream> stream)
      : request_(std::move(header)), stream_(std::move(stream)) {}

  bool WriteHeader() override { return stream_->Write(request_); }
  bool WriteChunk(absl::string_view chunk) override {
    request_.mutable_chunk()->assign(chunk.data(), chunk.size());
    return stream_->Write(request_);
  }
  void WritesDone() override { stream_->WritesDone(); }
  bool Read(absl::Status*) override { return false; }
  grpc::Status Finish() override { return stream_->Finish(); }

 protected:
  Stream* stream() { return stream_.get(); }

 private:
  Request request_;  // The header, then each chunk.
  const std::unique_ptr<Stream> stream_;
};

// A method with a single response message, which gRPC fills in at the end.
template <typename Request>
using OneAnswerStream = StreamOf<Request, grpc::ClientWriterInterface<Request>>;

// A method with a stream of responses: `take` handles each message and returns its error. Parts
// that only newer servers send are skipped, so that answers may grow.
template <typename Request, typename Response>
class ManyAnswersStream
    : public StreamOf<Request, grpc::ClientReaderWriterInterface<Request, Response>> {
 public:
  using Take = std::function<absl::Status(Response* message)>;

  ManyAnswersStream(Request header,
                    std::unique_ptr<grpc::ClientReaderWriterInterface<Request, Response>> stream,
                    Take take)
      : StreamOf<Request, grpc::ClientReaderWriterInterface<Request, Response>>(std::move(header),
                                                                                std::move(stream)),
        take_(std::move(take)) {}

  bool Read(absl::Status* fault) override {
    do {
      if (!this->stream()->Read(&message_)) return false;
    } while (IsUnknownPart());
    *fault = take_(&message_);
    return fault->ok();
  }

 private:
  bool IsUnknownPart() const {
    return message_.part_case() == Response::PART_NOT_SET &&
           !message_.GetReflection()->GetUnknownFields(message_).empty();
  }

  const Take take_;
  Response message_;
};

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_CHUNKED_CALL_H_
