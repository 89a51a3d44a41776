// The parts common to the tasks of all calls: their inputs and the sinks of their answers. A task
// is the work of a call on a worker once its graphs have arrived; it is independent of gRPC. Each
// is a struct of types and static functions, with which the reactors (upload_call.h) are
// instantiated:
//
//   using Request, Response    the messages of its stream
//   using Sink                 one of the two below
//   kMethod                    its name in metrics and log
//   Strategy(header)           for its label, unspecified if it has none
//   Simulates(header)          whether it simulates plans, which takes long
//   SentBytes(response)        the bytes of a message that count as sent
//   kIsShared                  whether it is a rewrite, shared by identical requests:
//   Respond(answer, header, context, sink) then sends it; otherwise
//   Run(header, context, sink) does the work
#ifndef SPILLWAY_SERVER_WORK_GRAPH_TASK_H_
#define SPILLWAY_SERVER_WORK_GRAPH_TASK_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"
#include "server/base/options.h"
#include "server/observe/metrics.h"

namespace spillway::server {

// A task's inputs besides its header. Outlives Run.
struct TaskContext {
  std::vector<absl::string_view> graphs;  // As announced by the header.
  const Options& options;
  const core::StopToken& stop;
  Metrics& metrics;
};

// Takes a task's messages, in order. For one thread.
template <typename Message>
class MessageSink {
 public:
  // May block until the client has taken earlier messages. Errors: messages are no longer taken;
  // the task should end with the error.
  virtual absl::Status Send(Message message) = 0;

 protected:
  ~MessageSink() = default;
};

// The sink of a call that answers with a stream.
template <typename Message>
class StreamSink : public MessageSink<Message> {
 public:
  // After the messages sent, and once the task has ended successfully, sends `bytes` as field
  // `field` of further messages, a part in each. No worker has to wait for the client.
  virtual void SendBytes(int field, std::shared_ptr<const std::string> bytes) = 0;

 protected:
  ~StreamSink() = default;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_WORK_GRAPH_TASK_H_
