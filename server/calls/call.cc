#include "server/calls/call.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/steady_time.h"
#include "rewrite_core/graph/graph_size.h"
#include "server/access/cpu_charge.h"
#include "server/access/credentials.h"
#include "server/base/logging.h"
#include "server/base/request_id.h"
#include "server/base/status_to_grpc.h"

namespace spillway::server {
namespace {

// How long gRPC clients with a retry policy wait before they retry on an overloaded server (gRFC
// A6): until the waiting requests have run, within these bounds.
constexpr char kRetryPushbackKey[] = "grpc-retry-pushback-ms";
constexpr absl::Duration kMinPushback = absl::Milliseconds(200);
constexpr absl::Duration kMaxPushback = absl::Seconds(30);
// For a quota the wait is exact; this bound fits into the clients' 32 bits.
constexpr absl::Duration kMaxQuotaPushback = absl::Hours(24);

// How much later a deadline may be here than at the client: a timeout counts from its arrival, and
// gRPC rounds it up by at most 1% on the wire.
constexpr absl::Duration kTransitSlack = absl::Milliseconds(50);
constexpr double kTimeoutRounding = 0.01;

// By SteadyNow.
absl::Time DeadlineOf(const grpc::CallbackServerContext& context) {
  const std::chrono::system_clock::time_point deadline = context.deadline();
  // gRPC's value for no deadline.
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteFuture();
  return core::SteadyNow() + (absl::FromChrono(deadline) - absl::Now());
}

}  // namespace

Call::Call(grpc::CallbackServerContext& context, ServiceState& state, Method method)
    : context_(context),
      state_(state),
      id_(state.pool.NewId()),
      kind_{method},
      caller_(CallerOf(context)),
      request_id_(RequestIdOf(context)),
      traceparent_(TraceparentOf(context)),
      job_(JobNamesOf(context)),
      start_(core::SteadyNow()),
      deadline_(DeadlineOf(context)),
      stop_(std::min(deadline_, start_ + state.options.max_request_time), &stopped_),
      first_message_(state.half_open, context, HalfOpenCalls::Message::kMayBeLarge) {
  state_.tracker.Begin();
  context_.AddTrailingMetadata(core::kRequestIdKey, request_id_);
  if (!traceparent_.empty()) {
    context_.AddTrailingMetadata(core::kTraceparentKey, traceparent_);
  }
}

Call::~Call() {
  const RequestRecord record = Record();
  Metrics& metrics = state_.metrics;
  metrics.CountRequest(record.method, record.strategy, record.code, record.duration);
  if (record.code != absl::StatusCode::kOk) metrics.CountError(record.reason);
  if (record.rewrite.has_value()) metrics.CountRewrite(record.strategy, *record.rewrite);
  Log(LogLevel::kInfo, "request", FieldsOf(record));
  if (state_.journal != nullptr) {
    state_.journal->Write(JournalLine(record, absl::Now()));
  }
  ticket_.Release();
  option_ticket_.Release();
  option_share_.Release();
  share_.Release();
  state_.admission.resident().Look();
  if (is_in_account_) caller_account_->End();
  state_.tracker.End();  // Last: a drain may end the server as soon as no request is in flight.
}

RequestRecord Call::Record() const {
  RequestRecord record;
  record.method = kind_.method;
  record.strategy = strategy_;
  record.code = FinalCode();
  record.bytes_in = input_bytes_;
  record.bytes_out = output_bytes_;
  record.duration = core::SteadyNow() - start_;
  record.caller = caller_;
  if (caller_account_ != nullptr) record.caller_name = caller_account_->name();
  record.id = request_id_;
  record.traceparent = traceparent_;
  record.job = job_;
  if (record.code == absl::StatusCode::kOk) {
    record.rewrite = rewrite_;
    return record;
  }
  // The server's own status for a disconnected caller would be misleading.
  record.reason = v1::ERROR_REASON_STOPPED;
  if (status_.code() != record.code) return record;
  record.reason = ReportedReason(status_);
  record.error = std::string(status_.message());
  if (record.reason == v1::ERROR_REASON_DOES_NOT_FIT) record.rewrite = rewrite_;
  return record;
}

absl::Status Call::Enter() {
  if (!first_message_.status().ok()) return first_message_.status();
  if (state_.access == nullptr) return absl::OkStatus();
  auto account = state_.access->Find(CredentialsOf(context_, caller_));
  if (!account.ok()) return Rejected(RejectReason::kUnknownCaller, account.status());
  caller_account_ = *std::move(account);
  absl::Status status = QuotaStatus(caller_account_->Begin(state_.access->now()));
  is_in_account_ = status.ok();
  return status;
}

absl::Status Call::Admit(v1::Strategy strategy, int64_t graph_bytes, int64_t first_bytes) {
  strategy_ = strategy;
  first_message_.End();
  if (state_.tracker.closed()) {
    return Rejected(RejectReason::kDraining,
                    core::Error(absl::StatusCode::kUnavailable, v1::ERROR_REASON_STOPPED,
                                "the server is stopping; try another one"));
  }
  auto share = state_.shares.Take(CallerKey(), graph_bytes);
  const bool has_share = share.ok();
  absl::StatusOr<Admission::Ticket> ticket =
      has_share ? state_.admission.Reserve(graph_bytes, first_bytes, Admission::Room::kShared)
                : absl::StatusOr<Admission::Ticket>(share.status());
  if (has_share) share_ = *std::move(share);
  if (!ticket.ok()) ticket = ReserveSmall(ticket.status(), graph_bytes, first_bytes, &share_);
  if (!ticket.ok()) {
    if (has_share) state_.shares.AskToYield(CallerKey());
    share_.Release();
    Refund();
    return Rejected(has_share ? RejectReason::kInflightBytes : RejectReason::kCallerBytes,
                    ticket.status());
  }
  if (caller_account_ != nullptr) {
    absl::Status status =
        QuotaStatus(caller_account_->ChargeGraphs(graph_bytes, state_.access->now()));
    if (!status.ok()) return status;
    charged_bytes_ = graph_bytes;
  }
  ticket_ = *std::move(ticket);
  return absl::OkStatus();
}

absl::Status Call::HoldGraphs(int64_t bytes) {
  absl::Status status = share_.yields() ? state_.shares.Yielded() : ticket_.GrowTo(bytes);
  if (status.ok()) return status;
  state_.shares.AskToYield(CallerKey());
  ticket_.Release();
  share_.Release();
  Refund();
  return Rejected(RejectReason::kInflightBytes, std::move(status));
}

absl::StatusOr<Admission::Ticket> Call::ReserveSmall(const absl::Status& shared, int64_t bytes,
                                                     int64_t first_bytes,
                                                     CallerShares::Share* share) {
  auto small = state_.small_shares.Take(CallerKey(), bytes);
  if (!small.ok()) return shared;
  absl::StatusOr<Admission::Ticket> ticket =
      state_.admission.Reserve(bytes, first_bytes, Admission::Room::kForSmall);
  if (!ticket.ok()) return shared;
  *share = *std::move(small);
  return ticket;
}

absl::Status Call::HoldOptions(int64_t bytes) {
  absl::StatusOr<Admission::Ticket> ticket = state_.admission.Reserve(bytes);
  if (!ticket.ok()) ticket = ReserveSmall(ticket.status(), bytes, bytes, &option_share_);
  if (!ticket.ok()) return Rejected(RejectReason::kInflightBytes, ticket.status());
  option_ticket_ = *std::move(ticket);
  return absl::OkStatus();
}

bool Call::Cancel() {
  cancelled_.store(true, std::memory_order_relaxed);
  stopped_.store(true, std::memory_order_relaxed);
  // It is in at most one of them.
  return state_.pool.Remove(id_) || state_.flights.Leave(id_);
}

absl::Status Call::StopStatus(absl::string_view stage) const {
  stop_.ShouldStop(1);
  return stop_.status(stage);
}

std::string Call::CallerKey() const {
  // A named caller has one share, regardless of its number of hosts.
  return caller_account_ != nullptr ? caller_account_->name() : caller_.host();
}

Work Call::NewWork() const {
  Work work;
  work.id = id_;
  work.caller = CallerKey();
  return work;
}

absl::Status Call::RunOnWorker(std::function<void()> work) {
  const Clock& clock = *state_.options.clock;
  const absl::Time queued_at = clock.Now();
  Work queued = NewWork();
  queued.expected = state_.costs.Expect(kind_, ticket_.bytes());
  queued.run = [queued_at, &clock, &metrics = state_.metrics, work = Charged(std::move(work))] {
    metrics.ObserveQueueWait(clock.Now() - queued_at);
    work();
  };
  const auto overloaded = [](absl::string_view why, absl::string_view limit) {
    return core::Error(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_OVERLOADED,
                       absl::StrCat("the server is full: ", why, "; try again later"),
                       {{"limit", std::string(limit)}});
  };
  const WorkQueue::Verdict verdict = state_.pool.TrySubmit(std::move(queued));
  // Once it waits, `this` may already be deleted.
  if (verdict == WorkQueue::Verdict::kWaits) return absl::OkStatus();
  Refund();
  if (verdict == WorkQueue::Verdict::kFull) {
    const std::string limit = absl::StrCat(state_.options.max_queued_requests);
    return Rejected(RejectReason::kQueueFull,
                    overloaded(absl::StrCat(limit, " requests already wait for a worker"), limit));
  }
  const std::string limit = absl::FormatDuration(state_.options.target_wait);
  return Rejected(
      RejectReason::kQueueWait,
      overloaded(absl::StrCat("a request waits for longer than ", limit, " (--target-wait)"),
                 limit));
}

void Call::Resume(std::function<void()> work) {
  const std::function<void()> charged = Charged(std::move(work));
  Work queued = NewWork();
  queued.run = charged;
  if (state_.pool.TrySubmit(std::move(queued)) != WorkQueue::Verdict::kWaits) charged();
}

// `this` may be deleted before the work has ended.
std::function<void()> Call::Charged(std::function<void()> work) const {
  if (caller_account_ == nullptr) return work;
  return [account = caller_account_, access = state_.access.get(), work = std::move(work)] {
    const CpuCharge charge(account, access);
    work();
  };
}

void Call::Refund() {
  if (caller_account_ == nullptr) return;
  caller_account_->Refund(charged_bytes_, state_.access->now());
}

absl::Status Call::BeginWork() {
  if (stop_.ShouldStop(1)) return stop_.status("queue");
  if (caller_account_ == nullptr) return absl::OkStatus();
  return QuotaStatus(caller_account_->MayWork(state_.access->now()));
}

absl::Status Call::RunCharged(absl::FunctionRef<absl::Status()> work) {
  absl::Status status;
  {
    const MemoryAccount::Scope scope(&account_);
    status = work();
  }
  absl::Status refused;
  const int64_t wanted = account_.TakeRefused();
  // The status of the stopped work does not mention the budget.
  if (!status.ok() && wanted > 0) refused = state_.admission.OutOfBudget(ticket_, wanted);
  account_.Settle();
  return refused.ok() ? status : Rejected(RejectReason::kMemory, refused);
}

absl::Status Call::RunWork(const std::vector<absl::string_view>& graphs, std::atomic<bool>& stopped,
                           absl::FunctionRef<absl::Status()> work) {
  const absl::Duration before = ThreadCpuTime();
  int64_t min_bytes = 0;
  for (absl::string_view graph : graphs) {
    min_bytes += core::MeasureGraph(graph, stop_).least_memory_bytes();
  }
  if (!account_.Expect(min_bytes)) {
    return Rejected(RejectReason::kMemory, state_.admission.OutOfBudget(ticket_, min_bytes));
  }
  account_.StopWith(&stopped);
  absl::Status status = RunCharged(work);
  account_.StopWith(nullptr);
  const absl::Duration took = ThreadCpuTime() - before;
  CpuCharge::Settle();
  // Work that fails early says nothing about the cost of successful work.
  if (status.ok() || took > state_.costs.Expect(kind_, ticket_.bytes())) {
    state_.costs.Learn(kind_, ticket_.bytes(), took);
  }
  return status;
}

void Call::AddInputBytes(int64_t bytes) {
  input_bytes_ += bytes;
  state_.metrics.AddInputBytes(kind_.method, bytes);
}

void Call::AddOutputBytes(int64_t bytes) {
  output_bytes_ += bytes;
  state_.metrics.AddOutputBytes(kind_.method, bytes);
}

grpc::Status Call::Conclude(const absl::Status& status) {
  status_ = status;
  const absl::Duration limit = state_.options.max_request_time;
  if (absl::IsDeadlineExceeded(status) && start_ + limit < deadline_) {
    status_ = core::WithMoreText(
        status, absl::StrCat("; no request may take longer than ", absl::FormatDuration(limit),
                             " here (--max-request-time)"));
  }
  if (core::GetErrorReason(status_) == v1::ERROR_REASON_OVERLOADED) {
    const absl::Duration pause =
        quota_wait_ > absl::ZeroDuration()
            ? std::min(absl::Ceil(quota_wait_, absl::Milliseconds(1)), kMaxQuotaPushback)
            : std::clamp(state_.pool.expected_wait(), kMinPushback, kMaxPushback);
    context_.AddTrailingMetadata(kRetryPushbackKey, absl::StrCat(absl::ToInt64Milliseconds(pause)));
  }
  return ToGrpcStatus(status_);
}

absl::Status Call::Rejected(RejectReason reason, absl::Status status) {
  state_.metrics.CountRejected(reason);
  return status;
}

absl::Status Call::QuotaStatus(CallerAccount::Verdict verdict) {
  if (verdict.status.ok()) return absl::OkStatus();
  quota_wait_ = verdict.wait;
  return Rejected(RejectReason::kQuota, std::move(verdict.status));
}

absl::StatusCode Call::FinalCode() const {
  if (!cancelled_.load(std::memory_order_relaxed)) return status_.code();
  if (deadline_ == absl::InfiniteFuture()) return absl::StatusCode::kCancelled;
  // A client whose deadline passes cancels, and its deadline started before the server's.
  const absl::Duration slack = kTransitSlack + (deadline_ - start_) * kTimeoutRounding;
  return core::SteadyNow() + slack >= deadline_ ? absl::StatusCode::kDeadlineExceeded
                                                : absl::StatusCode::kCancelled;
}

}  // namespace spillway::server
