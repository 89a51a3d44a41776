#include "server/calls/shared_rewrite.h"

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "server/memory/guarded.h"
#include "server/work/plan_key.h"

namespace spillway::server {
namespace {

// Returns the same bytes for the same options, including maps.
std::string CanonicalBytes(const v1::RewriteOptions& options) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    options.SerializeToCodedStream(&coded);
  }  // The destructor trims the bytes.
  return bytes;
}

// Used with a plan key in place of the options with a graph, which never have these bytes.
constexpr char kByPlan[] = "plan";

std::shared_ptr<RewriteAnswer> Failed(absl::Status status) {
  auto answer = std::make_shared<RewriteAnswer>();
  answer->status = std::move(status);
  return answer;
}

}  // namespace

void SharedRewrite::Run(absl::string_view graph, const v1::RewriteOptions& options, Done done) {
  graph_ = graph;
  options_ = &options;
  done_ = std::move(done);
  is_known_ =
      graph.size() <= Flights::kMaxGraphBytes && options.ByteSizeLong() <= Flights::kMaxOptionBytes;
  Attempt(nullptr, is_known_ ? Flights::Sharing::kShared : Flights::Sharing::kAlone);
}

void SharedRewrite::Attempt(std::shared_ptr<const core::PlannedStep> plan,
                            Flights::Sharing sharing) {
  plan_ = std::move(plan);
  State state = State::kGone;
  std::shared_ptr<RewriteAnswer> cached;
  absl::Status status = Guarded([&] { return Enter(sharing, &state, &cached); });
  if (!status.ok()) return Fail(std::move(status));
  switch (state) {
    case State::kCached:
      call_.state().metrics.CountCached();
      return Finish(cached, AnsweredFrom::kCache);
    case State::kWaiting:
      return;
    case State::kLeading:
      return Lead();
    case State::kGone:
      return Fail(call_.StopStatus("queue"));
  }
}

// Comparisons are not charged.
absl::Status SharedRewrite::Enter(Flights::Sharing sharing, State* state,
                                  std::shared_ptr<RewriteAnswer>* cached) {
  ServiceState& server = call_.state();
  by_plan_ = false;
  if (is_known_) {
    options_key_ = CanonicalBytes(*options_);
    *cached = server.answers.Find(graph_, options_key_);
    if (*cached != nullptr) {
      *state = State::kCached;
      return absl::OkStatus();
    }
    if (Simulates(*options_)) {
      absl::StatusOr<std::string> key = PlanKey(graph_, options_key_, call_.stop());
      if (!key.ok()) return key.status();
      plan_key_ = *std::move(key);
      if (plan_ == nullptr) plan_ = server.answers.FindPlan(plan_key_);
      by_plan_ = plan_ == nullptr;
    }
  }
  const Flights::Role role = server.flights.Join(
      call_.id(), by_plan_ ? plan_key_ : graph_, by_plan_ ? kByPlan : options_key_, sharing,
      call_.cancelled(),
      [this](const std::shared_ptr<RewriteAnswer>& answer, absl::string_view their_graph) {
        const bool is_same = !by_plan_ || graph_ == their_graph;
        call_.Resume([this, answer, is_same] { Land(answer, is_same); });
      },
      &abandoned_);
  *state = role == Flights::Role::kLeads   ? State::kLeading
           : role == Flights::Role::kWaits ? State::kWaiting
                                           : State::kGone;
  return absl::OkStatus();
}

void SharedRewrite::Lead() {
  ServiceState& server = call_.state();
  const bool reuses = plan_ != nullptr;
  if (reuses) call_.SkipSimulation();
  // Not the caller's own token: its deadline must not end a rewrite that others wait for.
  const core::StopToken stop(call_.latest(), abandoned_);
  std::shared_ptr<RewriteAnswer> made;
  absl::Status status = call_.RunWork({graph_}, *abandoned_, [&] {
    return Guarded([&] {
      made = MakeAnswer(graph_, *options_, server.options, stop, std::move(plan_));
      return made->status;
    });
  });
  if (made == nullptr) made = Failed(status);
  made->status = std::move(status);
  made->memory = call_.TakeWork();
  if (made->status.ok()) {
    server.metrics.CountStages(made->report());
    if (reuses) server.metrics.CountReusedPlan();
    // An answer that cannot be cached is still an answer.
    if (is_known_) {
      (void)Guarded([&] {
        server.answers.Keep(graph_, options_key_, plan_key_, made);
        return absl::OkStatus();
      });
    }
  }
  const std::vector<Flights::Landed> waiting = server.flights.Land(call_.id());
  // An answer in the cache is shared already; others may be reading it.
  if (!waiting.empty() && !made->is_shared) made->is_shared = true;
  for (const Flights::Landed& landed : waiting) landed(made, graph_);
  Finish(made, reuses ? AnsweredFrom::kPlan : AnsweredFrom::kWork);
}

void SharedRewrite::Land(const std::shared_ptr<RewriteAnswer>& answer, bool is_same) {
  // The leader's deadline passed, not this one's.
  const bool again = absl::IsDeadlineExceeded(answer->status) && !call_.stop().ShouldStop(1);
  if (!again && (is_same || !answer->status.ok())) {
    call_.state().metrics.CountShared();
    return Finish(answer, AnsweredFrom::kShared);
  }
  if (absl::Status status = call_.BeginWork(); !status.ok()) return Fail(std::move(status));
  if (again) return Attempt(nullptr, Flights::Sharing::kShared);
  // The leader may have made no plan for this one to apply: others need not wait for that again.
  Attempt(answer->plan,
          answer->plan == nullptr ? Flights::Sharing::kAlone : Flights::Sharing::kShared);
}

void SharedRewrite::Finish(const std::shared_ptr<RewriteAnswer>& answer, AnsweredFrom from) {
  // For statistics, which must not make the rewrite fail.
  (void)Guarded([&] {
    call_.NoteRewrite(RecordOf(answer->status, answer->report(), *options_, from));
    return absl::OkStatus();
  });
  const Done done = std::move(done_);
  done(answer);
}

void SharedRewrite::Fail(absl::Status status) {
  const Done done = std::move(done_);
  done(Failed(std::move(status)));
}

}  // namespace spillway::server
