#include "server/work/stream_methods.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/inspect/graph_diff.h"
#include "rewrite_core/inspect/simulate_graph.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::server {
namespace {

using google::protobuf::Message;

// Sends `message` if one protobuf message can hold it.
absl::Status SendWithin(const Options& options, const Message& message, AnswerSink& sink) {
  const int64_t bytes = static_cast<int64_t>(message.ByteSizeLong());
  const int64_t limit = options.max_response_bytes;
  if (bytes <= limit) return sink.Send(message);
  return core::Error(
      absl::StatusCode::kOutOfRange, v1::ERROR_REASON_RESULT_TOO_LARGE,
      absl::StrCat("the answer has ", bytes, " bytes and one protobuf message holds at most ",
                   limit, ": ask for less (memory, trace, sizes), or about a smaller graph"),
      {{"value", absl::StrCat(bytes)}, {"limit", absl::StrCat(limit)}});
}

// Sends the summary, then lists of tensors.
absl::Status Inspect(const Message& request, const WorkContext& context, AnswerSink& sink) {
  const auto& header = static_cast<const v1::InspectRequest&>(request).header();
  absl::Status sent;
  absl::Status status =
      context.options.inspect(context.graphs[0], header.options(), context.options.limits,
                              context.stop, [&](const v1::InspectResponse& part) {
                                sent = SendWithin(context.options, part, sink);
                                return sent.ok();
                              });
  status.Update(sent);  // OK even if the rest is no longer taken.
  return status;
}

absl::Status Simulate(const Message& request, const WorkContext& context, AnswerSink& sink) {
  const auto& header = static_cast<const v1::SimulateRequest&>(request).header();
  auto report = core::SimulateGraph(context.graphs[0], header.options(), context.options.limits,
                                    context.stop);
  if (!report.ok()) return report.status();
  v1::SimulateResponse response;
  *response.mutable_report() = *std::move(report);
  return SendWithin(context.options, response, sink);
}

// Sends each size as it is found, then the report. A client that does not read blocks the search
// (message_queue.h); memory stays bounded, because the number of sizes is bounded: those in the
// options, which are limited, and those of two bisections.
absl::Status Explore(const Message& request, const WorkContext& context, AnswerSink& sink) {
  const auto& header = static_cast<const v1::ExploreRequest&>(request).header();
  absl::Status sent;
  auto report = context.options.explore(context.graphs[0], header.options(), context.options.limits,
                                        context.stop, [&](const v1::ExploredSize& size) {
                                          if (!sent.ok()) return;
                                          v1::ExploreResponse row;
                                          *row.mutable_size() = size;
                                          sent = SendWithin(context.options, row, sink);
                                        });
  if (!sent.ok()) return sent;
  if (!report.ok()) return report.status();
  v1::ExploreResponse last;
  *last.mutable_report() = *std::move(report);
  return SendWithin(context.options, last, sink);
}

absl::Status Diff(const Message&, const WorkContext& context, AnswerSink& sink) {
  auto diff =
      core::DiffGraphs(context.graphs[0], context.graphs[1], context.options.limits, context.stop);
  if (!diff.ok()) return diff.status();
  v1::DiffResponse response;
  *response.mutable_diff() = *std::move(diff);
  return SendWithin(context.options, response, sink);
}

}  // namespace

absl::Span<const StreamMethod> StreamMethods() {
  static const StreamMethod kMethods[] = {
      {Method::kStreamRewrite, v1::StreamRewriteRequest::default_instance(), nullptr},
      {Method::kInspect, v1::InspectRequest::default_instance(), &Inspect},
      {Method::kSimulate, v1::SimulateRequest::default_instance(), &Simulate},
      {Method::kExplore, v1::ExploreRequest::default_instance(), &Explore},
      {Method::kDiff, v1::DiffRequest::default_instance(), &Diff},
  };
  return kMethods;
}

}  // namespace spillway::server
