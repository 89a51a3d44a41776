// The tasks of Inspect, Simulate, Explore and Diff: the questions about graphs, which change
// nothing. See graph_task.h.
//
// Errors: those of the functions in rewrite_core/inspect/; OUT_OF_RANGE (RESULT_TOO_LARGE) if a
// message would be above Options::max_response_bytes.
#ifndef SPILLWAY_SERVER_QUESTION_TASKS_H_
#define SPILLWAY_SERVER_QUESTION_TASKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "server/graph_task.h"
#include "server/metrics.h"
#include "spillway/v1/report.pb.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::server {

// What they have in common.
template <Method kTheMethod, typename TheRequest, typename TheResponse>
struct QuestionTask {
  using Request = TheRequest;
  using Response = TheResponse;
  using Sink = MessageSink<Response>;
  static constexpr Method kMethod = kTheMethod;
  static constexpr bool kIsShared = false;

  template <typename Header>
  static v1::Strategy Strategy(const Header&) {
    return v1::STRATEGY_UNSPECIFIED;
  }
  template <typename Header>
  static bool Simulates(const Header&) {
    return false;  // All of a method do, or none.
  }
  static int64_t SentBytes(const Response& response) {
    return static_cast<int64_t>(response.ByteSizeLong());
  }
};

// The summary, then lists of tensors.
struct InspectTask : QuestionTask<Method::kInspect, v1::InspectRequest, v1::InspectResponse> {
  static absl::Status Run(const v1::InspectHeader& header, const TaskContext& context, Sink& sink);
};

struct SimulateTask : QuestionTask<Method::kSimulate, v1::SimulateRequest, v1::SimulateResponse> {
  static absl::Status Run(const v1::SimulateHeader& header, const TaskContext& context, Sink& sink);
};

// Each size as it is found, then the report. A client that does not read makes the search wait
// (message_queue.h), and does not make it grow: sizes are at most those of the options, of which
// there is a limit, and two searches by bisection.
struct ExploreTask : QuestionTask<Method::kExplore, v1::ExploreRequest, v1::ExploreResponse> {
  static absl::Status Run(const v1::ExploreHeader& header, const TaskContext& context, Sink& sink);
};

struct DiffTask : QuestionTask<Method::kDiff, v1::DiffRequest, v1::DiffResponse> {
  static absl::Status Run(const v1::DiffHeader& header, const TaskContext& context, Sink& sink);
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_QUESTION_TASKS_H_
