// The state that the handlers share. Owned by the Server; outlives every request.
#ifndef SPILLWAY_SERVER_CALLS_SERVICE_STATE_H_
#define SPILLWAY_SERVER_CALLS_SERVICE_STATE_H_

#include <algorithm>
#include <memory>

#include "server/access/access_list.h"
#include "server/base/options.h"
#include "server/calls/half_open_calls.h"
#include "server/memory/admission.h"
#include "server/memory/caller_shares.h"
#include "server/observe/journal.h"
#include "server/observe/metrics.h"
#include "server/work/answer_cache.h"
#include "server/work/cost_estimate.h"
#include "server/work/flights.h"
#include "server/work/request_tracker.h"
#include "server/work/worker_pool.h"

namespace spillway::server {

struct ServiceState {
  // `all_options`: machine-dependent values are resolved (at least 1).
  ServiceState(const Options& all_options, Metrics& shared_metrics)
      : options(all_options),
        metrics(shared_metrics),
        admission(all_options.limits.max_inflight_bytes(), all_options.memory_budget_bytes),
        shares(all_options.max_caller_bytes),
        small_shares(
            std::min(all_options.max_caller_bytes, all_options.limits.max_inflight_bytes()) /
                CallerShares::kPartOfShare,
            CallerShares::Single::kMayNot),
        answers(all_options.cache_bytes, admission),
        pool(all_options.limits.max_concurrent_requests(), all_options.max_queued_requests,
             all_options.target_wait, *all_options.clock),
        half_open(*all_options.clock, shared_metrics,
                  std::max(options.limits.max_unary_bytes(), options.limits.max_chunk_bytes()),
                  all_options.min_upload_rate) {}

  const Options options;
  Metrics& metrics;
  std::unique_ptr<AccessList> access;  // Null: anyone who can connect may call.
  std::unique_ptr<Journal> journal;    // Null: no journal.
  Admission admission;
  CallerShares shares;
  CallerShares small_shares;  // For small requests if the rest is taken.
  AnswerCache answers;
  RequestTracker tracker;
  CostEstimate costs;
  Flights flights;
  WorkerPool pool;
  HalfOpenCalls half_open;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_SERVICE_STATE_H_
