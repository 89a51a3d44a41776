#include "server/rewrite_once.h"

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "server/graph_task.h"

namespace spillway::server {
namespace {

// The same bytes for the same options, maps included.
std::string CanonicalBytes(const v1::RewriteOptions& options) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    options.SerializeToCodedStream(&coded);
  }  // Which trims the bytes.
  return bytes;
}

std::shared_ptr<RewriteAnswer> Failed(absl::Status status) {
  auto answer = std::make_shared<RewriteAnswer>();
  answer->status = std::move(status);
  return answer;
}

}  // namespace

void RewriteOnce(Call& call, absl::string_view graph, const v1::RewriteOptions& options,
                 std::function<void(const std::shared_ptr<RewriteAnswer>&)> answer) {
  ServiceState& state = call.state();
  const uint64_t member = call.id();
  std::atomic<bool>* abandoned = nullptr;
  Flights::Role role = Flights::Role::kGone;
  const absl::Status joined = Guarded([&] {
    // Neither is charged for what is compared.
    const bool is_shared = graph.size() <= Flights::kMaxGraphBytes &&
                           options.ByteSizeLong() <= Flights::kMaxOptionBytes;
    role = state.flights.Join(
        member, graph, is_shared ? CanonicalBytes(options) : "", is_shared, call.cancelled(),
        [&call, graph, &options, answer](const std::shared_ptr<RewriteAnswer>& made) {
          call.Resume([&call, graph, &options, answer, made] {
            // The leader's time was up, not this one's.
            if (absl::IsDeadlineExceeded(made->status) && !call.stop().ShouldStop(1)) {
              return RewriteOnce(call, graph, options, answer);
            }
            call.state().metrics.CountShared();
            answer(made);
          });
        },
        &abandoned);
    return absl::OkStatus();
  });
  if (!joined.ok()) return answer(Failed(joined));
  switch (role) {
    case Flights::Role::kWaits:
      return;  // `call` may be gone.
    case Flights::Role::kGone:
      return answer(Failed(call.StopStatus("queue")));
    case Flights::Role::kLeads:
      break;
  }
  std::shared_ptr<RewriteAnswer> made;
  // Not the caller's own: its deadline ends no rewrite that others wait for.
  const core::StopToken stop(call.latest(), abandoned);
  absl::Status status = call.RunWork({graph}, *abandoned, [&] {
    return Guarded([&] {
      made = MakeAnswer(graph, options, state.options, stop);
      return made->status;
    });
  });
  if (made == nullptr) made = Failed(status);
  made->status = std::move(status);
  made->memory = call.TakeWork();
  const std::vector<Flights::Landed> waiting = state.flights.Land(member);
  made->is_shared = !waiting.empty();
  for (const Flights::Landed& landed : waiting) landed(made);
  answer(std::move(made));
}

}  // namespace spillway::server
