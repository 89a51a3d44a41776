// The work on a worker once all graphs of an upload have arrived (upload_call.h).
#ifndef SPILLWAY_SERVER_CALLS_UPLOADED_TASK_H_
#define SPILLWAY_SERVER_CALLS_UPLOADED_TASK_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "server/calls/call.h"
#include "server/calls/rewrite_once.h"
#include "server/calls/service_state.h"
#include "server/calls/stream_assembler.h"
#include "server/memory/guarded.h"
#include "server/work/graph_task.h"
#include "server/work/rewrite_task.h"

namespace spillway::server {

// Runs the task, frees the graphs, then calls `done` with the final status: on this thread, or on
// the one that made a rewrite that it waited for (rewrite_once.h). `Task`: see graph_task.h. All
// arguments except `done` must live until then.
template <typename Task, typename Header>
void RunUploaded(const Header& header, Call& call, StreamAssembler& assembler,
                 typename Task::Sink& sink, std::function<void(const absl::Status&)> done) {
  if (absl::Status status = call.BeginWork(); !status.ok()) return done(status);
  const core::StopToken& stop = call.stop();
  if (absl::Status status = assembler.VerifyGraphs(stop); !status.ok()) return done(status);
  ServiceState& state = call.state();
  if constexpr (Task::kIsShared) {
    RewriteOnce(call, assembler.graphs()[0], header.options(),
                [&, done = std::move(done)](const std::shared_ptr<RewriteAnswer>& answer) {
                  assembler.ReleaseGraphs();
                  const TaskContext context = {{}, state.options, call.stop(), state.metrics};
                  done(call.RunCharged([&] {
                    return Guarded([&] { return Task::Respond(answer, header, context, sink); });
                  }));
                });
  } else {
    const TaskContext context = {assembler.graphs(), state.options, stop, state.metrics};
    const absl::Status status = call.RunWork(context.graphs, call.stopped(), [&] {
      return Guarded([&] { return Task::Run(header, context, sink); });
    });
    assembler.ReleaseGraphs();
    done(status);
  }
}

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_UPLOADED_TASK_H_
