#include "server/call.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "rewrite_core/base/error.h"
#include "server/logging.h"
#include "server/request_id.h"
#include "server/status_to_grpc.h"

namespace spillway::server {
namespace {

// What gRPC clients with a retry policy wait for before they try an overloaded server again
// (gRFC A6). A graph of some MiB takes about as long.
constexpr char kRetryPushbackKey[] = "grpc-retry-pushback-ms";
constexpr char kRetryPushbackMs[] = "500";

// How much later than at the client a deadline may be here: a timeout counts from its arrival, and
// gRPC rounds it up by at most 1% on the wire.
constexpr absl::Duration kTransitSlack = absl::Milliseconds(50);
constexpr double kTimeoutRounding = 0.01;

absl::Time DeadlineOf(const grpc::CallbackServerContext& context) {
  const std::chrono::system_clock::time_point deadline = context.deadline();
  // gRPC's way to say that there is none.
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteFuture();
  return absl::FromChrono(deadline);
}

}  // namespace

Call::Call(grpc::CallbackServerContext& context, ServiceState& state, Method method)
    : context_(context),
      state_(state),
      method_(method),
      peer_(context.peer()),
      request_id_(RequestIdOf(context)),
      start_(absl::Now()),
      deadline_(DeadlineOf(context)),
      stop_(std::min(deadline_, start_ + state.options.max_request_time), &cancelled_) {
  state_.tracker.Begin();
  context_.AddTrailingMetadata(kRequestIdKey, request_id_);
}

Call::~Call() {
  const absl::StatusCode code = FinalCode();
  const absl::Duration duration = absl::Now() - start_;
  state_.metrics.CountRequest(method_, strategy_, code, duration);
  LogFields fields = {
      {"method", MethodName(method_)},
      {"strategy", StrategyLabel(method_, strategy_)},
      {"code", CodeName(code)},
      {"bytes_in", input_bytes_},
      {"bytes_out", output_bytes_},
      {"ms", std::round(absl::ToDoubleMilliseconds(duration) * 10) / 10},
      {"peer", peer_},
      {"id", request_id_},
  };
  // What we made of a caller that went away would mislead.
  if (!status_.ok() && status_.code() == code) fields["error"] = std::string(status_.message());
  Log(LogLevel::kInfo, "request", fields);
  ticket_.Release();
  state_.tracker.End();  // Last: a drain may end the server as soon as no request is in flight.
}

absl::Status Call::Admit(v1::Strategy strategy, int64_t graph_bytes) {
  strategy_ = strategy;
  if (state_.tracker.closed()) {
    return Rejected(RejectReason::kDraining,
                    core::Error(absl::StatusCode::kUnavailable, v1::ERROR_REASON_STOPPED,
                                "the server is stopping; try another one"));
  }
  absl::StatusOr<Admission::Ticket> ticket = state_.admission.Reserve(graph_bytes);
  if (!ticket.ok()) return Rejected(RejectReason::kInflightBytes, ticket.status());
  ticket_ = *std::move(ticket);
  return absl::OkStatus();
}

bool Call::Cancel() {
  cancelled_.store(true, std::memory_order_relaxed);
  return state_.pool.Remove(queue_id_.load(std::memory_order_relaxed));
}

absl::Status Call::StopStatus(absl::string_view stage) const {
  stop_.ShouldStop(1);
  return stop_.status(stage);
}

absl::Status Call::RunOnWorker(std::function<void()> work) {
  const absl::Time queued_at = absl::Now();
  Metrics& metrics = state_.metrics;  // `this` may be gone when the task has run.
  // Before it is queued. Who cancels in between finds nothing to remove; the worker then sees it.
  const uint64_t id = state_.pool.NewId();
  queue_id_.store(id, std::memory_order_relaxed);
  const bool accepted = state_.pool.TrySubmit(
      [queued_at, &metrics, work = std::move(work)] {
        metrics.ObserveQueueWait(absl::Now() - queued_at);
        work();
      },
      id);
  if (accepted) return absl::OkStatus();
  return Rejected(
      RejectReason::kQueueFull,
      core::Error(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_OVERLOADED,
                  absl::StrCat("the server is full: ", state_.options.max_queued_requests,
                               " requests wait for a worker already; try again later"),
                  {{"limit", absl::StrCat(state_.options.max_queued_requests)}}));
}

void Call::AddInputBytes(int64_t bytes) {
  input_bytes_ += bytes;
  state_.metrics.AddInputBytes(method_, bytes);
}

void Call::AddOutputBytes(int64_t bytes) {
  output_bytes_ += bytes;
  state_.metrics.AddOutputBytes(method_, bytes);
}

grpc::Status Call::Conclude(const absl::Status& status) {
  status_ = status;
  const absl::Duration most = state_.options.max_request_time;
  if (absl::IsDeadlineExceeded(status) && start_ + most < deadline_) {
    status_ = core::WithMoreText(
        status, absl::StrCat("; no request may take longer than ", absl::FormatDuration(most),
                             " here (--max-request-time)"));
  }
  return ToGrpcStatus(status_);
}

absl::Status Call::Rejected(RejectReason reason, absl::Status status) {
  state_.metrics.CountRejected(reason);
  if (core::GetErrorReason(status) == v1::ERROR_REASON_OVERLOADED) {
    context_.AddTrailingMetadata(kRetryPushbackKey, kRetryPushbackMs);
  }
  return status;
}

absl::StatusCode Call::FinalCode() const {
  if (!cancelled_.load(std::memory_order_relaxed)) return status_.code();
  if (deadline_ == absl::InfiniteFuture()) return absl::StatusCode::kCancelled;
  // A client whose deadline passes cancels, and its clock started before ours.
  const absl::Duration slack = kTransitSlack + (deadline_ - start_) * kTimeoutRounding;
  return absl::Now() + slack >= deadline_ ? absl::StatusCode::kDeadlineExceeded
                                          : absl::StatusCode::kCancelled;
}

}  // namespace spillway::server
