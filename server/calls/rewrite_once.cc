#include "server/calls/rewrite_once.h"

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "server/memory/guarded.h"
#include "server/observe/rewrite_record.h"
#include "server/work/graph_task.h"
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

// Records the rewrite for statistics, which must not make it fail.
void Note(Call& call, const RewriteAnswer& made, const v1::RewriteOptions& options,
          AnsweredFrom from) {
  (void)Guarded([&] {
    call.NoteRewrite(RecordOf(made.status, made.report(), options, from));
    return absl::OkStatus();
  });
}

// The state of a further attempt after another has ended.
struct Attempt {
  std::shared_ptr<const core::PlannedStep> plan;  // To be applied instead of making one.
  bool is_alone = false;                          // Neither waits for others nor vice versa.
};

void Make(Call& call, absl::string_view graph, const v1::RewriteOptions& options, Attempt attempt,
          std::function<void(const std::shared_ptr<RewriteAnswer>&)> answer) {
  ServiceState& state = call.state();
  const uint64_t member = call.id();
  std::atomic<bool>* abandoned = nullptr;
  Flights::Role role = Flights::Role::kGone;
  std::shared_ptr<RewriteAnswer> made;
  std::string options_key, plan_key;
  bool is_known = false;  // Can use the cache and other requests' rewrites.
  // Requests with the same plan key share one plan, regardless of encoding.
  bool by_plan = false;
  const absl::Status joined = Guarded([&] {
    // Comparisons are not charged.
    is_known = graph.size() <= Flights::kMaxGraphBytes &&
               options.ByteSizeLong() <= Flights::kMaxOptionBytes;
    if (is_known) {
      options_key = CanonicalBytes(options);
      made = state.answers.Find(graph, options_key);
      if (made != nullptr) return absl::OkStatus();
    }
    if (is_known && Simulates(options)) {
      absl::StatusOr<std::string> key = PlanKey(graph, options_key, call.stop());
      if (!key.ok()) return key.status();
      plan_key = *std::move(key);
      if (attempt.plan == nullptr) attempt.plan = state.answers.FindPlan(plan_key);
      by_plan = attempt.plan == nullptr;
    }
    role = state.flights.Join(
        member, by_plan ? plan_key : graph, by_plan ? kByPlan : options_key,
        is_known && !attempt.is_alone ? Flights::Sharing::kShared : Flights::Sharing::kAlone,
        call.cancelled(),
        [&call, graph, &options, answer, by_plan](const std::shared_ptr<RewriteAnswer>& landed,
                                                  absl::string_view their_graph) {
          const bool is_same = !by_plan || graph == their_graph;
          call.Resume([&call, graph, &options, answer, landed, is_same] {
            // The leader's deadline passed, not this one's.
            if (absl::IsDeadlineExceeded(landed->status) && !call.stop().ShouldStop(1)) {
              if (absl::Status s = call.BeginWork(); !s.ok()) return answer(Failed(s));
              return Make(call, graph, options, {}, answer);
            }
            if (landed->status.ok() && !is_same) {
              if (absl::Status s = call.BeginWork(); !s.ok()) return answer(Failed(s));
              return Make(call, graph, options, {landed->plan, landed->plan == nullptr}, answer);
            }
            call.state().metrics.CountShared();
            Note(call, *landed, options, AnsweredFrom::kShared);
            answer(landed);
          });
        },
        &abandoned);
    return absl::OkStatus();
  });
  if (!joined.ok()) return answer(Failed(joined));
  if (made != nullptr) {
    state.metrics.CountCached();
    Note(call, *made, options, AnsweredFrom::kCache);
    return answer(made);
  }
  switch (role) {
    case Flights::Role::kWaits:
      return;  // `call` may already be deleted.
    case Flights::Role::kGone:
      return answer(Failed(call.StopStatus("queue")));
    case Flights::Role::kLeads:
      break;
  }
  const bool reuses = attempt.plan != nullptr;
  if (reuses) call.SkipSimulation();
  // Not the caller's own token: its deadline must not end a rewrite that others wait for.
  const core::StopToken stop(call.latest(), abandoned);
  absl::Status status = call.RunWork({graph}, *abandoned, [&] {
    return Guarded([&] {
      made = MakeAnswer(graph, options, state.options, stop, std::move(attempt.plan));
      return made->status;
    });
  });
  if (made == nullptr) made = Failed(status);
  made->status = std::move(status);
  made->memory = call.TakeWork();
  if (made->status.ok()) state.metrics.CountStages(made->report());
  if (reuses && made->status.ok()) state.metrics.CountReusedPlan();
  if (is_known && made->status.ok()) {
    // An answer that cannot be cached is still an answer.
    (void)Guarded([&] {
      state.answers.Keep(graph, options_key, plan_key, made);
      return absl::OkStatus();
    });
  }
  const std::vector<Flights::Landed> waiting = state.flights.Land(member);
  if (!waiting.empty()) made->is_shared = true;
  for (const Flights::Landed& landed : waiting) landed(made, graph);
  Note(call, *made, options, reuses ? AnsweredFrom::kPlan : AnsweredFrom::kWork);
  answer(std::move(made));
}

}  // namespace

void RewriteOnce(Call& call, absl::string_view graph, const v1::RewriteOptions& options,
                 std::function<void(const std::shared_ptr<RewriteAnswer>&)> answer) {
  Make(call, graph, options, {}, std::move(answer));
}

}  // namespace spillway::server
