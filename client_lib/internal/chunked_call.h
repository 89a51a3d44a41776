// Internal. One call whose request is a header and then graphs in chunks: StreamRewrite, Inspect,
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

// What one attempt of a call has, whatever its method. All must outlive it.
struct Attempt {
  const CallLimits& limits;
  const CallHeaders& headers;
  const std::string& target;  // The server, for errors.
  int64_t chunk_bytes;
  ProgressReporter* progress;  // Told of every chunk that is sent, on the thread that sends it.
  Pushback* pushback;          // Gets what the server said about coming back.
};

// The stream of one method, without its types. One thread may write while another reads.
class ChunkStream {
 public:
  virtual ~ChunkStream() = default;

  // False: the call is over, and Finish says why.
  virtual bool WriteHeader() = 0;
  virtual bool WriteChunk(absl::string_view chunk) = 0;
  virtual void WritesDone() = 0;

  // Takes one message of the answer; false: there is no other, or `*fault` says what is wrong with
  // this one.
  virtual bool Read(absl::Status* fault) = 0;
  virtual grpc::Status Finish() = 0;
};

using OpenStream = std::function<std::unique_ptr<ChunkStream>(grpc::ClientContext* context)>;

// Sends header and graphs on a thread of its own while this one reads, as the protocol demands: the
// server may answer early. Holds one chunk besides the caller's bytes. Graphs come one after the
// other; a chunk belongs to one.
//
// Too little memory, or no thread, is RESOURCE_EXHAUSTED. The fault of a message ends the call.
absl::Status CallInChunks(const std::vector<absl::string_view>& graphs, const OpenStream& open,
                          const Attempt& attempt);

// Size and CRC-32C of `graph_def`. The caller's limits hold here, too.
absl::Status Announce(absl::string_view graph_def, const CallLimits& limits,
                      v1::GraphHeader* header);

// INTERNAL (BAD_STREAM): an answer that is not what the protocol has.
absl::Status BadAnswer(absl::string_view what);

// A method whose request has a header or a chunk as its part; the base of the two below.
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

// A method that answers with one message, which gRPC fills in at the end.
template <typename Request>
using OneAnswerStream = StreamOf<Request, grpc::ClientWriterInterface<Request>>;

// A method that answers with a stream: `take` gets each message, and gives its fault. A part that
// only newer servers have is passed over: answers may grow.
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
