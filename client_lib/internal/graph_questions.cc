#include "client_lib/internal/graph_questions.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/types/optional.h"

namespace spillway::internal {
namespace {

// Passes on the tensors of `piece` that were not yet delivered. The first delivered->tensors were
// delivered, and `*seen` have been received in this attempt.
void DeliverNewTensors(v1::TensorList* piece, const TensorsCallback& on_tensors, int64_t* seen,
                       Delivered* delivered) {
  const int64_t count = piece->tensors_size();
  const int64_t known = std::clamp<int64_t>(delivered->tensors - *seen, 0, count);
  *seen += count;
  if (known == count) return;
  piece->mutable_tensors()->DeleteSubrange(0, static_cast<int>(known));
  delivered->tensors = *seen;
  if (on_tensors) on_tensors(*piece);
}

}  // namespace

absl::StatusOr<v1::GraphSummary> Inspect(v1::RewriteService::StubInterface* stub,
                                         absl::string_view graph_def,
                                         const v1::InspectOptions& options,
                                         const TensorsCallback& on_tensors, const Attempt& attempt,
                                         Delivered* delivered) {
  v1::InspectRequest request;
  v1::InspectHeader& header = *request.mutable_header();
  absl::Status status = Announce(graph_def, attempt.limits, header.mutable_graph());
  if (!status.ok()) return status;
  *header.mutable_options() = options;
  absl::optional<v1::GraphSummary> summary;
  int64_t seen = 0;
  const auto take = [&](v1::InspectResponse* message) {
    if (message->has_summary() == summary.has_value()) {
      return BadAnswer(summary.has_value() ? "it has two summaries" : "it has no summary");
    }
    if (message->has_summary()) {
      summary.emplace().Swap(message->mutable_summary());
    } else {
      DeliverNewTensors(message->mutable_tensors(), on_tensors, &seen, delivered);
    }
    return absl::OkStatus();
  };
  const auto open = [&](grpc::ClientContext* context) {
    return std::make_unique<ManyAnswersStream<v1::InspectRequest, v1::InspectResponse>>(
        std::move(request), stub->Inspect(context), take);
  };
  status = CallInChunks({graph_def}, open, attempt);
  if (!status.ok()) return status;
  if (!summary.has_value()) return BadAnswer("it has no summary");
  return *std::move(summary);
}

absl::StatusOr<v1::SimulateReport> Simulate(v1::RewriteService::StubInterface* stub,
                                            absl::string_view graph_def,
                                            const v1::SimulateOptions& options,
                                            const Attempt& attempt) {
  v1::SimulateRequest request;
  v1::SimulateHeader& header = *request.mutable_header();
  absl::Status status = Announce(graph_def, attempt.limits, header.mutable_graph());
  if (!status.ok()) return status;
  *header.mutable_options() = options;
  v1::SimulateResponse response;
  const auto open = [&](grpc::ClientContext* context) {
    return std::make_unique<OneAnswerStream<v1::SimulateRequest>>(
        std::move(request), stub->Simulate(context, &response));
  };
  status = CallInChunks({graph_def}, open, attempt);
  if (!status.ok()) return status;
  if (!response.has_report()) return BadAnswer("it has no report");
  return std::move(*response.mutable_report());
}

absl::StatusOr<v1::ExploreReport> Explore(v1::RewriteService::StubInterface* stub,
                                          absl::string_view graph_def,
                                          const v1::ExploreOptions& options,
                                          const SizeCallback& on_size, const Attempt& attempt,
                                          Delivered* delivered) {
  v1::ExploreRequest request;
  v1::ExploreHeader& header = *request.mutable_header();
  absl::Status status = Announce(graph_def, attempt.limits, header.mutable_graph());
  if (!status.ok()) return status;
  *header.mutable_options() = options;
  absl::optional<v1::ExploreReport> report;
  const auto take = [&](v1::ExploreResponse* message) {
    if (report.has_value()) return BadAnswer("it goes on after its report");
    if (message->has_report()) {
      report.emplace().Swap(message->mutable_report());
    } else if (!message->has_size()) {
      return BadAnswer("a part of it is empty");
    } else if (delivered->sizes.insert(message->size().size()).second && on_size) {
      on_size(message->size());
    }
    return absl::OkStatus();
  };
  const auto open = [&](grpc::ClientContext* context) {
    return std::make_unique<ManyAnswersStream<v1::ExploreRequest, v1::ExploreResponse>>(
        std::move(request), stub->Explore(context), take);
  };
  status = CallInChunks({graph_def}, open, attempt);
  if (!status.ok()) return status;
  if (!report.has_value()) return BadAnswer("it has no report");
  return *std::move(report);
}

absl::StatusOr<v1::GraphDiff> Diff(v1::RewriteService::StubInterface* stub,
                                   absl::string_view graph_a, absl::string_view graph_b,
                                   const Attempt& attempt) {
  v1::DiffRequest request;
  v1::DiffHeader& header = *request.mutable_header();
  absl::Status status = Announce(graph_a, attempt.limits, header.mutable_graph_a());
  if (status.ok()) status = Announce(graph_b, attempt.limits, header.mutable_graph_b());
  if (!status.ok()) return status;
  v1::DiffResponse response;
  const auto open = [&](grpc::ClientContext* context) {
    return std::make_unique<OneAnswerStream<v1::DiffRequest>>(std::move(request),
                                                              stub->Diff(context, &response));
  };
  status = CallInChunks({graph_a, graph_b}, open, attempt);
  if (!status.ok()) return status;
  if (!response.has_diff()) return BadAnswer("it has no diff");
  return std::move(*response.mutable_diff());
}

}  // namespace spillway::internal
