// The tasks of Inspect, Simulate, Explore and Diff, the read-only queries about graphs. See
// graph_task.h.
//
// Errors: those of the functions in rewrite_core/inspect/; OUT_OF_RANGE (RESULT_TOO_LARGE) if a
// message would exceed Options::max_response_bytes.
#ifndef SPILLWAY_SERVER_WORK_QUESTION_TASKS_H_
#define SPILLWAY_SERVER_WORK_QUESTION_TASKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "server/observe/metrics.h"
#include "server/work/graph_task.h"
#include "spillway/v1/report.pb.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::server {

// The parts common to all of them.
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
    return false;  // Fixed per method, so no distinction needed.
  }
  static int64_t SentBytes(const Response& response) {
    return static_cast<int64_t>(response.ByteSizeLong());
  }
};

// Sends the summary, then lists of tensors.
struct InspectTask : QuestionTask<Method::kInspect, v1::InspectRequest, v1::InspectResponse> {
  static absl::Status Run(const v1::InspectHeader& header, const TaskContext& context, Sink& sink);
};

struct SimulateTask : QuestionTask<Method::kSimulate, v1::SimulateRequest, v1::SimulateResponse> {
  static absl::Status Run(const v1::SimulateHeader& header, const TaskContext& context, Sink& sink);
};

// Sends each size as it is found, then the report. A client that does not read blocks the search
// (message_queue.h); memory stays bounded, because the number of sizes is bounded: those in the
// options, which are limited, and those of two bisections.
struct ExploreTask : QuestionTask<Method::kExplore, v1::ExploreRequest, v1::ExploreResponse> {
  static absl::Status Run(const v1::ExploreHeader& header, const TaskContext& context, Sink& sink);
};

struct DiffTask : QuestionTask<Method::kDiff, v1::DiffRequest, v1::DiffResponse> {
  static absl::Status Run(const v1::DiffHeader& header, const TaskContext& context, Sink& sink);
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_WORK_QUESTION_TASKS_H_
