#include "server/work/question_tasks.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/inspect/graph_diff.h"
#include "rewrite_core/inspect/simulate_graph.h"

namespace spillway::server {
namespace {

// Sends `message` if one protobuf message can hold it.
template <typename Message>
absl::Status SendWithin(const Options& options, Message message, MessageSink<Message>& sink) {
  const int64_t bytes = static_cast<int64_t>(message.ByteSizeLong());
  const int64_t limit = options.max_response_bytes;
  if (bytes <= limit) return sink.Send(std::move(message));
  return core::Error(
      absl::StatusCode::kOutOfRange, v1::ERROR_REASON_RESULT_TOO_LARGE,
      absl::StrCat("the answer has ", bytes, " bytes and one protobuf message holds at most ",
                   limit, ": ask for less (memory, trace, sizes), or about a smaller graph"),
      {{"value", absl::StrCat(bytes)}, {"limit", absl::StrCat(limit)}});
}

}  // namespace

absl::Status InspectTask::Run(const v1::InspectHeader& header, const TaskContext& context,
                              Sink& sink) {
  absl::Status sent;
  absl::Status status =
      context.options.inspect(context.graphs[0], header.options(), context.options.limits,
                              context.stop, [&](v1::InspectResponse&& part) {
                                sent = SendWithin(context.options, std::move(part), sink);
                                return sent.ok();
                              });
  status.Update(sent);  // OK even if the rest is no longer taken.
  return status;
}

absl::Status SimulateTask::Run(const v1::SimulateHeader& header, const TaskContext& context,
                               Sink& sink) {
  auto report = core::SimulateGraph(context.graphs[0], header.options(), context.options.limits,
                                    context.stop);
  if (!report.ok()) return report.status();
  Response response;
  *response.mutable_report() = *std::move(report);
  return SendWithin(context.options, std::move(response), sink);
}

absl::Status ExploreTask::Run(const v1::ExploreHeader& header, const TaskContext& context,
                              Sink& sink) {
  absl::Status sent;
  auto report = context.options.explore(context.graphs[0], header.options(), context.options.limits,
                                        context.stop, [&](const v1::ExploredSize& size) {
                                          if (!sent.ok()) return;
                                          Response row;
                                          *row.mutable_size() = size;
                                          sent = SendWithin(context.options, std::move(row), sink);
                                        });
  if (!sent.ok()) return sent;
  if (!report.ok()) return report.status();
  Response last;
  *last.mutable_report() = *std::move(report);
  return SendWithin(context.options, std::move(last), sink);
}

absl::Status DiffTask::Run(const v1::DiffHeader&, const TaskContext& context, Sink& sink) {
  auto diff =
      core::DiffGraphs(context.graphs[0], context.graphs[1], context.options.limits, context.stop);
  if (!diff.ok()) return diff.status();
  Response response;
  *response.mutable_diff() = *std::move(diff);
  return SendWithin(context.options, std::move(response), sink);
}

}  // namespace spillway::server
