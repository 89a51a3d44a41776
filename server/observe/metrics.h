// The server's metrics. The constructor creates every family and child, so that each series exists,
// at zero, from the first scrape, and counting is an atomic add without a lookup. No label comes
// from a user: label values are the enums below, and callers' names from the operator's file.
// README.md has the table.
//
// Thread-safe. The registry must outlive it.
#ifndef SPILLWAY_SERVER_OBSERVE_METRICS_H_
#define SPILLWAY_SERVER_OBSERVE_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/observe/rewrite_record.h"
#include "server/observe/rewrite_statistics.h"
#include "spillway/v1/error.pb.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/report.pb.h"

namespace spillway::server {

// The calls about graphs.
enum class Method { kRewrite, kStreamRewrite, kInspect, kSimulate, kExplore, kDiff };
inline constexpr int kMethodCount = 6;
const char* MethodName(Method method);

// Returns the strategy that `options` select, the default one if they name none, or unspecified if
// this build does not know it.
v1::Strategy StrategyOf(const v1::RewriteOptions& options);
// Returns the strategy label of a request of `method`: `level`, `scope`, ...; for the unspecified
// one `unknown`, or `none` if the method does not rewrite.
std::string StrategyLabel(Method method, v1::Strategy strategy);

// Why a request was rejected before any work, or for lack of memory during it.
enum class RejectReason {
  kInflightBytes,
  kQueueFull,
  kDraining,
  kMemory,
  kQueueWait,
  kUnknownCaller,
  kQuota,
  kCallerBytes,
  kHalfOpen,
};
inline constexpr int kRejectReasonCount = 9;

// The quotas of a named caller: the fields of AccessFile::Quota.
enum class QuotaKind { kRequests, kRequestsInFlight, kGraphBytes, kCpu };
inline constexpr int kQuotaKindCount = 4;
const char* QuotaName(QuotaKind kind);

// The counters of one named caller.
struct CallerCounters {
  prometheus::Counter* requests;
  prometheus::Counter* graph_bytes;
  prometheus::Counter* cpu_seconds;
  std::array<prometheus::Counter*, kQuotaKindCount> rejected;
};

class Metrics {
 public:
  // `version` becomes a label of build_info.
  Metrics(prometheus::Registry& registry, const std::string& version);

  // Counts a request that ended, successful or not. `duration`: from its first message to its last.
  void CountRequest(Method method, v1::Strategy strategy, absl::StatusCode code,
                    absl::Duration duration);

  // Counts a request that failed with this reason, as reported to its caller; CountRequest counts
  // it as well.
  void CountError(v1::ErrorReason reason);

  // Counts a rejected request; CountRequest counts it as well.
  void CountRejected(RejectReason reason) { rejected_[static_cast<int>(reason)]->Increment(); }

  // Returns the counters of the caller `name`, which is from the operator's file (access_file.h).
  // Created on the first call; later calls return the same ones.
  CallerCounters OfCaller(const std::string& name);

  // Counts a rewrite answered with the result of a concurrent request.
  void CountShared() { shared_->Increment(); }
  // Counts a rewrite answered from the cache (answer_cache.h).
  void CountCached() { cached_->Increment(); }
  // Counts a rewrite that used the plan of another (plan_key.h).
  void CountReusedPlan() { reused_plans_->Increment(); }

  // Counts a connection closed on arrival because of the limit, and one that could not be accepted.
  void CountRefusedConnection() { refused_connections_->Increment(); }
  void CountAcceptFailure() { accept_failures_->Increment(); }

  // Counts graph bytes that arrived, and bytes sent: of graphs, or of other answers.
  void AddInputBytes(Method method, int64_t bytes);
  void AddOutputBytes(Method method, int64_t bytes);

  // Records how long a request waited for a worker.
  void ObserveQueueWait(absl::Duration wait) { queue_wait_->Observe(absl::ToDoubleSeconds(wait)); }

  // Records the time of each stage of a rewrite: once, however many requests it answers.
  void CountStages(const v1::RewriteReport& report);

  // Counts the swaps, nodes and outcome of a rewrite's report, once per request that it answers.
  void CountReport(v1::Strategy strategy, const v1::RewriteReport& report);

  // Records the result of a rewrite that its caller got, or that does not fit:
  // rewrite_statistics.h.
  void CountRewrite(v1::Strategy strategy, const RewriteRecord& record);

  // Counts journal lines that were written, and that were lost (journal.h).
  void CountJournalLine() { journal_lines_->Increment(); }
  void CountLostJournalLines(int64_t lines) {
    lost_journal_lines_->Increment(static_cast<double>(lines));
  }

 private:
  // By strategy; null for unused numbers.
  using CounterPerStrategy = std::array<prometheus::Counter*, v1::Strategy_ARRAYSIZE>;

  CounterPerStrategy CountersPerStrategy(prometheus::Registry& registry, const std::string& name,
                                         const std::string& help);
  void BuildRequestMetrics(prometheus::Registry& registry);
  void BuildRewriteMetrics(prometheus::Registry& registry);
  void BuildErrorMetrics(prometheus::Registry& registry);

  // By method, strategy (unspecified for methods that do not rewrite) and code; see CodeIndex in
  // metrics.cc.
  static constexpr int kCodeCount = 11;
  prometheus::Counter* requests_[kMethodCount][v1::Strategy_ARRAYSIZE][kCodeCount] = {};
  std::array<prometheus::Histogram*, kMethodCount> durations_ = {};
  std::array<prometheus::Counter*, kMethodCount> input_bytes_ = {};
  std::array<prometheus::Counter*, kMethodCount> output_bytes_ = {};
  std::array<prometheus::Counter*, kRejectReasonCount> rejected_ = {};
  prometheus::Histogram* queue_wait_ = nullptr;
  prometheus::Counter* shared_ = nullptr;
  prometheus::Counter* cached_ = nullptr;
  prometheus::Counter* reused_plans_ = nullptr;
  prometheus::Counter* refused_connections_ = nullptr;
  prometheus::Counter* accept_failures_ = nullptr;
  prometheus::Counter* journal_lines_ = nullptr;
  prometheus::Counter* lost_journal_lines_ = nullptr;
  std::map<v1::ErrorReason, prometheus::Counter*> errors_;
  prometheus::Family<prometheus::Counter>* caller_requests_ = nullptr;
  prometheus::Family<prometheus::Counter>* caller_graph_bytes_ = nullptr;
  prometheus::Family<prometheus::Counter>* caller_cpu_seconds_ = nullptr;
  prometheus::Family<prometheus::Counter>* caller_rejected_ = nullptr;

  std::map<v1::Stage, prometheus::Histogram*> stages_;
  std::map<v1::Outcome, CounterPerStrategy> outcomes_;  // Unspecified: DOES_NOT_FIT.
  CounterPerStrategy swapped_tensors_ = {};
  CounterPerStrategy unknown_size_tensors_ = {};
  CounterPerStrategy swap_out_nodes_ = {};
  CounterPerStrategy swap_in_nodes_ = {};
  CounterPerStrategy swap_out_bytes_ = {};
  CounterPerStrategy swap_in_bytes_ = {};
  CounterPerStrategy recomputed_nodes_ = {};
  CounterPerStrategy recomputed_bytes_ = {};
  CounterPerStrategy recompute_seconds_ = {};
  CounterPerStrategy nodes_added_ = {};
  RewriteStatistics rewrites_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_OBSERVE_METRICS_H_
