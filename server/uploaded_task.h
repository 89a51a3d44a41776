// What a worker does once all graphs of an upload are there (upload_call.h).
#ifndef SPILLWAY_SERVER_UPLOADED_TASK_H_
#define SPILLWAY_SERVER_UPLOADED_TASK_H_

#include "absl/status/status.h"
#include "server/call.h"
#include "server/graph_task.h"
#include "server/service_state.h"
#include "server/stream_assembler.h"

namespace spillway::server {

// `Task`: see graph_task.h. Frees the graphs at its end.
template <typename Task, typename Header>
absl::Status RunUploaded(const Header& header, Call& call, StreamAssembler& assembler,
                         typename Task::Sink& sink) {
  const core::StopToken& stop = call.stop();
  // The caller may have gone while the request waited for a worker.
  if (stop.ShouldStop(1)) return stop.status("queue");
  if (absl::Status status = assembler.VerifyDigests(stop); !status.ok()) return status;
  const TaskContext context = {assembler.graphs(), call.state().options, stop,
                               call.state().metrics};
  absl::Status status = Guarded([&] { return Task::Run(header, context, sink); });
  assembler.ReleaseGraphs();
  return status;
}

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_UPLOADED_TASK_H_
