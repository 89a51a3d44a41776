// What the tasks of all calls have in common: what they are given, where their answers go, and that
// no exception leaves them. A task is what a call does on a worker once its graphs are there; it
// knows nothing of gRPC. Each is a struct of types and static functions, for the reactors
// (upload_call.h) to be made of:
//
//   using Request, Response    the messages of its stream
//   using Sink                 the one of the two below that it needs
//   kMethod                    its name in metrics and log
//   Strategy(header)           that its label tells, unspecified if it has none
//   Simulates(header)          whether that simulates plans, which takes long
//   SentBytes(response)        what of a message counts as sent
//   kIsShared                  whether it is a rewrite, made once for all who ask the same:
//   Respond(answer, header, context, sink) then tells it; otherwise
//   Run(header, context, sink) does the work
#ifndef SPILLWAY_SERVER_GRAPH_TASK_H_
#define SPILLWAY_SERVER_GRAPH_TASK_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"
#include "server/metrics.h"
#include "server/options.h"

namespace spillway::server {

// What a task is given besides its header. Outlives Run.
struct TaskContext {
  std::vector<absl::string_view> graphs;  // As many as the header announces.
  const Options& options;
  const core::StopToken& stop;
  Metrics& metrics;
};

// Where a task's messages go, in order. For one thread.
template <typename Message>
class MessageSink {
 public:
  // May wait until the client has taken earlier ones. Errors: nobody takes messages any more; the
  // task should end with it.
  virtual absl::Status Send(Message message) = 0;

 protected:
  ~MessageSink() = default;
};

// The sink of a call that answers with a stream.
template <typename Message>
class StreamSink : public MessageSink<Message> {
 public:
  // After those sent, and once the task has ended well: `bytes` as field `field` of further
  // messages, a part in each. No worker waits for the client so.
  virtual void SendBytes(int field, std::shared_ptr<const std::string> bytes) = 0;

 protected:
  ~StreamSink() = default;
};

// The exception being handled as an error: RESOURCE_EXHAUSTED (OVERLOADED) if memory ran out,
// otherwise INTERNAL. REQUIRES: called in a catch block.
absl::Status CaughtException();

// The result of `work`, or the error that its exception is.
template <typename Work>
auto Guarded(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (...) {
    return CaughtException();
  }
}

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_GRAPH_TASK_H_
