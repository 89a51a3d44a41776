// What every call about graphs has in common, whatever its shape on the wire: its stop token, its
// place in the budget, its turn on a worker, and its entry in metrics and log when it ends.
//
// One per request, owned by its reactor. Cancel() may run beside everything else; the rest is
// called by one thread at a time.
#ifndef SPILLWAY_SERVER_CALL_H_
#define SPILLWAY_SERVER_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rewrite_core/base/stop_token.h"
#include "server/admission.h"
#include "server/metrics.h"
#include "server/service_state.h"
#include "spillway/v1/report.pb.h"

namespace spillway::server {

class Call {
 public:
  Call(grpc::CallbackServerContext& context, ServiceState& state, Method method);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Counts and logs the request and gives its budget back.
  ~Call();

  // The caller went away or its deadline passed. True: the request waited for a worker and does so
  // no more; who called this is to end it, with StopStatus.
  bool Cancel();
  absl::Status StopStatus(absl::string_view stage) const;

  // Lets the request in, which asks for `strategy` (unspecified: for none, or for one that this
  // build does not know): reserves `graph_bytes`, of all its graphs, of the budget. Errors:
  // UNAVAILABLE while the server drains; those of Admission::Reserve. All of them are counted as
  // rejections.
  absl::Status Admit(v1::Strategy strategy, int64_t graph_bytes);

  // Runs `work` on a worker. Error: RESOURCE_EXHAUSTED, OVERLOADED if too many requests wait.
  absl::Status RunOnWorker(std::function<void()> work);

  // Graph bytes that arrived; and graph bytes, or bytes of another answer, handed to gRPC.
  void AddInputBytes(int64_t bytes);
  void AddOutputBytes(int64_t bytes);

  // Notes how the request ends and gives the status to finish it with. Called once.
  grpc::Status Conclude(const absl::Status& status);

  const core::StopToken& stop() const { return stop_; }
  ServiceState& state() { return state_; }

 private:
  absl::Status Rejected(RejectReason reason, absl::Status status);
  // What the caller saw: its own cancellation or deadline hides what we answered.
  absl::StatusCode FinalCode() const;

  grpc::CallbackServerContext& context_;
  ServiceState& state_;
  const Method method_;
  const std::string peer_;
  const std::string request_id_;
  const absl::Time start_;
  const absl::Time deadline_;  // The caller's.
  std::atomic<bool> cancelled_{false};
  const core::StopToken stop_;
  std::atomic<uint64_t> queue_id_{0};  // Of its task in the pool.
  Admission::Ticket ticket_;
  v1::Strategy strategy_ = v1::STRATEGY_UNSPECIFIED;
  int64_t input_bytes_ = 0;
  int64_t output_bytes_ = 0;
  absl::Status status_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALL_H_
