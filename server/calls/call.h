// The part common to all graph calls, independent of their wire format: the stop token, the memory
// reservation, the turn on a worker, and the entry in metrics and log at the end.
//
// One per request, owned by its reactor. Cancel() may run concurrently with everything else; the
// rest is called by one thread at a time.
#ifndef SPILLWAY_SERVER_CALLS_CALL_H_
#define SPILLWAY_SERVER_CALLS_CALL_H_

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
#include "server/access/caller_account.h"
#include "server/base/caller.h"
#include "server/base/request_id.h"
#include "server/calls/service_state.h"
#include "server/memory/admission.h"
#include "server/memory/caller_shares.h"
#include "server/memory/memory_account.h"
#include "server/observe/metrics.h"
#include "server/observe/request_record.h"
#include "server/observe/rewrite_record.h"
#include "spillway/v1/report.pb.h"

namespace spillway::server {

class Call {
 public:
  Call(grpc::CallbackServerContext& context, ServiceState& state, Method method);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Counts and logs the request, writes it to the journal and releases its memory budget.
  ~Call();

  // Handles a caller that disconnected or whose deadline passed. Returns true if the request was
  // waiting, for a worker or for another's rewrite, and no longer does; the caller of this function
  // must then end it with StopStatus.
  bool Cancel();
  absl::Status StopStatus(absl::string_view stage) const;

  // Admits the caller: the server must know it, and none of its quotas may be used up. Called
  // first, before anything is read. Errors: UNAUTHENTICATED (UNKNOWN_CALLER); RESOURCE_EXHAUSTED
  // (OVERLOADED). Both count as rejections.
  absl::Status Enter();

  // Admits the request: reserves the `first_bytes` of `graph_bytes`, the total of its graphs, in
  // the budget (the rest: HoldGraphs), and charges all of them to the caller's quota. `strategy` is
  // the requested one (unspecified: none, or unknown to this build). Errors: UNAVAILABLE while the
  // server drains; those of Admission::Reserve; RESOURCE_EXHAUSTED (OVERLOADED) beyond the quota.
  // All of them count as rejections.
  absl::Status Admit(v1::Strategy strategy, int64_t graph_bytes, int64_t first_bytes);

  // Raises the reservation for the graphs to `bytes`, as they arrive. An error (OVERLOADED)
  // releases all that is held for them: they no longer fit, or others need the bytes above the
  // caller's share.
  absl::Status HoldGraphs(int64_t bytes);

  // Reserves memory for the request's options. Errors: those of Admission::Reserve.
  absl::Status HoldOptions(int64_t bytes);

  // Called on a worker before anything else: checks that the caller still waits and that its CPU
  // quota is not overdrawn. An error ends the request.
  absl::Status BeginWork();

  // Runs `work` on this thread and charges its allocations to the request's memory. Errors: those
  // of `work`; RESOURCE_EXHAUSTED if the budget is exceeded (Admission::OutOfBudget). REQUIRES:
  // admitted.
  absl::Status RunCharged(absl::FunctionRef<absl::Status()> work);
  // The same for the work on `graphs`. First reserves the minimum that the work will take. Sets
  // `stopped`, the flag of its stop token, if the budget is exceeded. Its time updates the cost
  // estimate of such work.
  absl::Status RunWork(const std::vector<absl::string_view>& graphs, std::atomic<bool>& stopped,
                       absl::FunctionRef<absl::Status()> work);
  // Notes that the request simulates plans, which takes long.
  void ExpectSimulation() { kind_.simulates = true; }
  // Notes that a plan is already available, so the request costs no more than one that does not
  // simulate.
  void SkipSimulation() { kind_.simulates = false; }
  // Reports that another thread freed memory that was allocated in RunCharged or RunWork.
  // Thread-safe.
  void GiveBack(int64_t bytes) { account_.GiveBack(bytes); }

  // Returns a ticket for the memory that the work so far has left allocated, for its new owner.
  Admission::Ticket TakeWork() { return account_.TakeWork(); }

  // Continues on a worker after a wait without one. Never rejected.
  void Resume(std::function<void()> work);

  // Whether requests wait for a worker.
  bool OthersWait() const { return state_.pool.queued() > 0; }

  // Runs `work` on a worker. Error: RESOURCE_EXHAUSTED (OVERLOADED) if too many requests wait, or
  // waits are too long.
  absl::Status RunOnWorker(std::function<void()> work);

  // Sets the result of the rewrite for statistics, log and journal; reported if the caller gets it.
  void NoteRewrite(std::optional<RewriteRecord> rewrite) { rewrite_ = std::move(rewrite); }

  // Counts graph bytes that arrived, and graph bytes (or bytes of another answer) handed to gRPC.
  void AddInputBytes(int64_t bytes);
  void AddOutputBytes(int64_t bytes);

  // Records how the request ends and returns the status to finish it with. Called once.
  grpc::Status Conclude(const absl::Status& status);

  // Identifies the call within the server. Never 0.
  uint64_t id() const { return id_; }
  const std::atomic<bool>& cancelled() const { return cancelled_; }
  // In SteadyNow's time, like start_ and deadline_: its latest end, regardless of the caller's
  // deadline.
  absl::Time latest() const { return start_ + state_.options.max_request_time; }
  const core::StopToken& stop() const { return stop_; }
  std::atomic<bool>& stopped() { return stopped_; }
  ServiceState& state() const { return state_; }

 private:
  Work NewWork() const;  // For this call, without a function to run yet.
  // The key of the caller's limits: the account, otherwise the address (behind a proxy, the one
  // that it reports).
  std::string CallerKey() const;
  // Returns `work` with its CPU time charged to the caller.
  std::function<void()> Charged(std::function<void()> work) const;
  // Reserves memory for a small request if the rest is taken. Error: `shared`.
  absl::StatusOr<Admission::Ticket> ReserveSmall(const absl::Status& shared, int64_t bytes,
                                                 int64_t first_bytes, CallerShares::Share* share);
  // Refunds the caller's quota charges for a request that the server has no capacity for.
  void Refund();
  absl::Status Rejected(RejectReason reason, absl::Status status);
  // Returns the verdict's status; counts a rejection if it is an error.
  absl::Status QuotaStatus(CallerAccount::Verdict verdict);
  // The code that the caller saw: its cancellation or deadline hides the server's answer.
  absl::StatusCode FinalCode() const;
  // Returns the record of the ended request.
  RequestRecord Record() const;

  grpc::CallbackServerContext& context_;
  ServiceState& state_;
  const uint64_t id_;
  WorkKind kind_;
  const Caller caller_;
  const std::string request_id_;
  const std::string traceparent_;  // Empty: none given.
  const JobNames job_;
  std::shared_ptr<CallerAccount> caller_account_;  // Null: no --access-file, or unknown caller.
  bool is_in_account_ = false;
  int64_t charged_bytes_ = 0;
  absl::Duration quota_wait_;  // Until a used-up quota has refilled.
  const absl::Time start_;
  const absl::Time deadline_;           // The caller's.
  std::atomic<bool> cancelled_{false};  // The caller disconnected.
  std::atomic<bool> stopped_{false};    // Cancelled, or out of memory.
  const core::StopToken stop_;
  HalfOpenCalls::Wait first_message_;
  CallerShares::Share option_share_;
  Admission::Ticket option_ticket_;
  CallerShares::Share share_;
  Admission::Ticket ticket_;
  MemoryAccount account_{ticket_};
  v1::Strategy strategy_ = v1::STRATEGY_UNSPECIFIED;
  int64_t input_bytes_ = 0;
  int64_t output_bytes_ = 0;
  absl::Status status_;
  std::optional<RewriteRecord> rewrite_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_CALL_H_
