// The resources used by the callers of one name, counted and charged to their quotas
// (access_file.proto).
//
// Requests are charged when they begin, graph bytes when they are known, CPU time after it was
// spent. So concurrent requests may overdraw bytes and CPU time; no more are then admitted until
// the debt is paid off.
//
// Thread-safe. Shared by the calls of the name, which may outlive its entry in the file.
#ifndef SPILLWAY_SERVER_ACCESS_CALLER_ACCOUNT_H_
#define SPILLWAY_SERVER_ACCESS_CALLER_ACCOUNT_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "server/access/access_file.pb.h"
#include "server/access/token_bucket.h"
#include "server/observe/metrics.h"

namespace spillway::server {

class CallerAccount {
 public:
  // The decision on a request.
  struct Verdict {
    absl::Status status;  // OK, or RESOURCE_EXHAUSTED, OVERLOADED with the quota in its metadata.
    absl::Duration wait;  // Until it may be admitted; zero if unknown.
  };

  // REQUIRES: `quota` is valid, as ParseAccessFile checks.
  CallerAccount(std::string name, CallerCounters counters, const AccessFile::Quota& quota,
                absl::Time now)
      : name_(std::move(name)), counters_(counters) {
    SetQuota(quota, now);
  }
  CallerAccount(const CallerAccount&) = delete;
  CallerAccount& operator=(const CallerAccount&) = delete;

  const std::string& name() const { return name_; }

  // Sets the quota from now on. Past use still counts.
  void SetQuota(const AccessFile::Quota& quota, absl::Time now);

  // Begins a request. If it is admitted, End must be called when it has ended.
  Verdict Begin(absl::Time now);
  void End();

  // Charges the bytes of its graphs, unless the byte quota is overdrawn.
  Verdict ChargeGraphs(int64_t bytes, absl::Time now);

  // Refunds the charges of Begin and ChargeGraphs, for a request that the server had no capacity
  // for. The counters still count it.
  void Refund(int64_t graph_bytes, absl::Time now);

  // Called before the request's work begins: whether the CPU quota is overdrawn by now.
  Verdict MayWork(absl::Time now);
  void ChargeCpu(absl::Duration cpu_time, absl::Time now);

 private:
  Verdict Refused(QuotaKind kind, absl::Duration wait) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string name_;
  const CallerCounters counters_;
  absl::Mutex mu_;
  AccessFile::Quota quota_ ABSL_GUARDED_BY(mu_);
  int64_t in_flight_ ABSL_GUARDED_BY(mu_) = 0;
  // None: unlimited.
  absl::optional<TokenBucket> requests_ ABSL_GUARDED_BY(mu_);
  absl::optional<TokenBucket> graph_bytes_ ABSL_GUARDED_BY(mu_);
  absl::optional<TokenBucket> cpu_seconds_ ABSL_GUARDED_BY(mu_);
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_ACCESS_CALLER_ACCOUNT_H_
