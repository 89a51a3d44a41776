// The state that the handlers share. Owned by the Server; outlives every request.
#ifndef SPILLWAY_SERVER_SERVICE_STATE_H_
#define SPILLWAY_SERVER_SERVICE_STATE_H_

#include <memory>

#include "server/access_list.h"
#include "server/admission.h"
#include "server/answer_cache.h"
#include "server/cost_estimate.h"
#include "server/flights.h"
#include "server/journal.h"
#include "server/metrics.h"
#include "server/options.h"
#include "server/request_tracker.h"
#include "server/worker_pool.h"

namespace spillway::server {

struct ServiceState {
  // `all_options` with the number of workers and the memory budget resolved (at least 1).
  ServiceState(const Options& all_options, Metrics& shared_metrics)
      : options(all_options),
        metrics(shared_metrics),
        admission(all_options.limits.max_inflight_bytes(), all_options.memory_budget_bytes),
        answers(all_options.cache_bytes, admission),
        pool(all_options.limits.max_concurrent_requests(), all_options.max_queued_requests,
             all_options.target_wait) {}

  const Options options;
  Metrics& metrics;
  std::unique_ptr<AccessList> access;  // Null: anyone who can connect may call.
  std::unique_ptr<Journal> journal;    // Null: no journal.
  Admission admission;
  AnswerCache answers;
  RequestTracker tracker;
  CostEstimate costs;
  Flights flights;
  WorkerPool pool;  // Last, so that its threads end first.
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_SERVICE_STATE_H_
