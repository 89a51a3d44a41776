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
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rewrite_core/base/stop_token.h"
#include "server/admission.h"
#include "server/caller.h"
#include "server/caller_account.h"
#include "server/memory_account.h"
#include "server/metrics.h"
#include "server/request_id.h"
#include "server/request_record.h"
#include "server/rewrite_record.h"
#include "server/service_state.h"
#include "spillway/v1/report.pb.h"

namespace spillway::server {

class Call {
 public:
  Call(grpc::CallbackServerContext& context, ServiceState& state, Method method);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Counts and logs the request, writes it into the journal and gives its budget back.
  ~Call();

  // The caller went away or its deadline passed. True: the request waited for a worker and does so
  // no more; who called this is to end it, with StopStatus.
  bool Cancel();
  absl::Status StopStatus(absl::string_view stage) const;

  // Lets the caller in: the server knows it, and none of its quotas is used up. Comes first, before
  // anything is read. Errors: UNAUTHENTICATED (UNKNOWN_CALLER); RESOURCE_EXHAUSTED, OVERLOADED.
  // Both are counted as rejections.
  absl::Status Enter();

  // Lets the request in, which asks for `strategy` (unspecified: for none, or for one that this
  // build does not know): reserves `graph_bytes`, of all its graphs, of
  // the budget, and charges them to the caller's quota. Errors: UNAVAILABLE while the server
  // drains; those of Admission::Reserve; RESOURCE_EXHAUSTED, OVERLOADED beyond the quota. All of
  // them are counted as rejections.
  absl::Status Admit(v1::Strategy strategy, int64_t graph_bytes);

  // Reserves memory for the request's options. The errors of Reserve.
  absl::Status HoldOptions(int64_t bytes);

  // On a worker, before anything else: that the caller still waits and owes no CPU time to its
  // quota. Error: the request is to end with it.
  absl::Status BeginWork();

  // Runs `work` here, and charges what it allocates to the request's memory. Error: also
  // RESOURCE_EXHAUSTED if that was more than there is (Admission::OutOfBudget). REQUIRES: admitted.
  absl::Status RunCharged(absl::FunctionRef<absl::Status()> work);
  // The same for the work on `graphs`. Sets what it takes at least aside, first; sets `stopped`,
  // the flag of its stop token, where it takes more than there is; learns from its time what such
  // work costs.
  absl::Status RunWork(const std::vector<absl::string_view>& graphs, std::atomic<bool>& stopped,
                       absl::FunctionRef<absl::Status()> work);
  // The request simulates plans, which takes long; by default it does not.
  void ExpectSimulation() { kind_.simulates = true; }
  // Its plan is there already: it takes no longer than work that simulates none.
  void SkipSimulation() { kind_.simulates = false; }
  // What was allocated there was freed by another thread. Thread-safe.
  void GiveBack(int64_t bytes) { account_.GiveBack(bytes); }

  // What the work so far has left in memory, for who holds it from now on.
  Admission::Ticket TakeWork() { return account_.TakeWork(); }

  // Goes on on a worker, after a wait without one. Nobody refuses it.
  void Resume(std::function<void()> work);

  // Runs `work` on a worker. Error: RESOURCE_EXHAUSTED, OVERLOADED if too many requests wait, or
  // for too long.
  absl::Status RunOnWorker(std::function<void()> work);

  // What came of the rewrite, for statistics, log and journal; told where the caller gets it.
  void NoteRewrite(std::optional<RewriteRecord> rewrite) { rewrite_ = std::move(rewrite); }

  // Graph bytes that arrived; and graph bytes, or bytes of another answer, handed to gRPC.
  void AddInputBytes(int64_t bytes);
  void AddOutputBytes(int64_t bytes);

  // Notes how the request ends and gives the status to finish it with. Called once.
  grpc::Status Conclude(const absl::Status& status);

  // Names the call within the server. Never 0.
  uint64_t id() const { return id_; }
  const std::atomic<bool>& cancelled() const { return cancelled_; }
  // When it must have ended, whatever its caller's deadline.
  absl::Time latest() const { return start_ + state_.options.max_request_time; }
  const core::StopToken& stop() const { return stop_; }
  std::atomic<bool>& stopped() { return stopped_; }
  ServiceState& state() { return state_; }

 private:
  Work NewWork() const;  // Of this call, with nothing to run yet.
  // `work`, with its CPU time charged to the caller.
  std::function<void()> Charged(std::function<void()> work) const;
  // The server has no room for it: the caller keeps what it was charged for the request.
  void Refund();
  absl::Status Rejected(RejectReason reason, absl::Status status);
  // What an account of the caller's says; counted as a rejection if that is no.
  absl::Status Judged(CallerAccount::Verdict verdict);
  // What the caller saw: its own cancellation or deadline hides what we answered.
  absl::StatusCode FinalCode() const;
  // All that is told of it at its end.
  RequestRecord Record() const;

  grpc::CallbackServerContext& context_;
  ServiceState& state_;
  const uint64_t id_;
  WorkKind kind_;
  const Caller caller_;
  const std::string request_id_;
  const std::string traceparent_;  // Empty: the caller gave none.
  const JobNames job_;
  std::shared_ptr<CallerAccount> caller_account_;  // Null: without --access-file, or unknown.
  bool is_in_account_ = false;
  int64_t charged_bytes_ = 0;
  absl::Duration quota_wait_;  // Until a quota that is used up has something again.
  const absl::Time start_;
  const absl::Time deadline_;           // The caller's.
  std::atomic<bool> cancelled_{false};  // The caller has gone.
  std::atomic<bool> stopped_{false};    // That, or it takes more memory than there is.
  const core::StopToken stop_;
  Admission::Ticket option_ticket_;
  Admission::Ticket ticket_;
  MemoryAccount account_{ticket_};
  v1::Strategy strategy_ = v1::STRATEGY_UNSPECIFIED;
  int64_t input_bytes_ = 0;
  int64_t output_bytes_ = 0;
  absl::Status status_;
  std::optional<RewriteRecord> rewrite_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALL_H_
