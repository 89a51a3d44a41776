// A rewrite on a worker, for one call or for all identical concurrent ones. Its states:
//
//   cached     an earlier request's answer is in the cache (answer_cache.h)
//   waiting    an identical request, or one for the same plan, does the work (flights.h)
//   leading    this one does the work, for itself and those that wait
//   landed     the leader's answer is there: it is used, or a further attempt begins
//   gone       the caller disconnected in the meantime
//
// For one thread at a time.
#ifndef SPILLWAY_SERVER_CALLS_SHARED_REWRITE_H_
#define SPILLWAY_SERVER_CALLS_SHARED_REWRITE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/calls/call.h"
#include "server/observe/rewrite_record.h"
#include "server/work/flights.h"
#include "server/work/rewrite_answer.h"
#include "spillway/v1/options.pb.h"

namespace spillway::server {

class SharedRewrite {
 public:
  using Done = std::function<void(const std::shared_ptr<RewriteAnswer>&)>;

  // `call` must outlive it.
  explicit SharedRewrite(Call& call) : call_(call) {}

  // Rewrites `graph`, or waits for a rewrite in progress; then calls `done`, either on this thread
  // or later on another worker. `done` must not throw, and may destroy this; graph and options must
  // live until then. Does not throw. Called once, on a worker.
  void Run(absl::string_view graph, const v1::RewriteOptions& options, Done done);

 private:
  enum class State { kCached, kWaiting, kLeading, kGone };

  // An attempt with `plan`, unless null, instead of making one. Several if the leader's answer is
  // of no use.
  void Attempt(std::shared_ptr<const core::PlannedStep> plan, Flights::Sharing sharing);
  // Finds the state of an attempt, and `cached`. With kWaiting, this may already be destroyed.
  absl::Status Enter(Flights::Sharing sharing, State* state,
                     std::shared_ptr<RewriteAnswer>* cached);
  void Lead();
  // On a worker again. `is_same`: the leader's graph has the same bytes.
  void Land(const std::shared_ptr<RewriteAnswer>& answer, bool is_same);

  // Ends with `answer`, or with an error. This may be destroyed when they return.
  void Finish(const std::shared_ptr<RewriteAnswer>& answer, AnsweredFrom from);
  void Fail(absl::Status status);

  Call& call_;
  absl::string_view graph_;
  const v1::RewriteOptions* options_ = nullptr;
  Done done_;
  bool is_known_ = false;  // Small enough for the cache and other requests' rewrites.
  bool by_plan_ = false;   // Shares a plan, regardless of the graph's encoding.
  std::string options_key_, plan_key_;
  std::shared_ptr<const core::PlannedStep> plan_;
  std::atomic<bool>* abandoned_ = nullptr;  // While leading.
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_SHARED_REWRITE_H_
