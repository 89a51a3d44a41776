// The methods that take graphs in chunks: one row for each, with which streamed_call.h serves it. A
// row's function is independent of gRPC.
//
// Thread-safe.
#ifndef SPILLWAY_SERVER_WORK_STREAM_METHODS_H_
#define SPILLWAY_SERVER_WORK_STREAM_METHODS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "google/protobuf/message.h"
#include "rewrite_core/base/stop_token.h"
#include "server/base/options.h"
#include "server/observe/metrics.h"

namespace spillway::server {

// The inputs of a method besides its request.
struct WorkContext {
  std::vector<absl::string_view> graphs;  // As announced by the header.
  const Options& options;
  const core::StopToken& stop;
  Metrics& metrics;
};

// Takes the messages of an answer, in order. For one thread.
class AnswerSink {
 public:
  // May block until the client has taken earlier messages. Errors: messages are no longer taken;
  // the work should end with the error.
  virtual absl::Status Send(const google::protobuf::Message& message) = 0;

  // After the messages sent, and once the work has ended successfully, sends `bytes` as field
  // `field` of further messages, a part in each. No worker has to wait for the client.
  virtual void SendBytes(int field, std::shared_ptr<const std::string> bytes) = 0;

 protected:
  ~AnswerSink() = default;
};

struct StreamMethod {
  Method method;
  const google::protobuf::Message& request;  // The type of its messages.
  // Answers the message with the header; null for StreamRewrite, since identical requests share the
  // work (shared_rewrite.h). Errors: those of the functions in rewrite_core/inspect/; OUT_OF_RANGE
  // (RESULT_TOO_LARGE) if a message would exceed Options::max_response_bytes.
  absl::Status (*run)(const google::protobuf::Message& request, const WorkContext& context,
                      AnswerSink& sink);
};

absl::Span<const StreamMethod> StreamMethods();

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_WORK_STREAM_METHODS_H_
