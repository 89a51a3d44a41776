#include "server/access/caller_account.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "server/access/access_file.h"

namespace spillway::server {
namespace {

using Bucket = absl::optional<TokenBucket>;

void SetBucket(bool is_limited, double per_second, double burst_seconds, double min_capacity,
               absl::Time now, Bucket* bucket) {
  const double capacity = std::max(per_second * burst_seconds, min_capacity);
  if (!is_limited) {
    bucket->reset();
  } else if (bucket->has_value()) {
    (*bucket)->SetRate(per_second, capacity, now);
  } else {
    bucket->emplace(per_second, capacity, now);
  }
}

absl::Duration WaitOn(Bucket& bucket, double amount, absl::Time now) {
  return bucket.has_value() ? bucket->WaitFor(amount, now) : absl::ZeroDuration();
}

void TakeFrom(Bucket& bucket, double amount, absl::Time now) {
  if (bucket.has_value()) bucket->Take(amount, now);
}

}  // namespace

void CallerAccount::SetQuota(const AccessFile::Quota& quota, absl::Time now) {
  const absl::MutexLock lock(&mu_);
  quota_ = quota;
  const double burst = quota.has_burst_seconds() ? quota.burst_seconds() : kDefaultBurstSeconds;
  SetBucket(quota.has_requests_per_second(), quota.requests_per_second(), burst, 1, now,
            &requests_);
  SetBucket(quota.has_graph_bytes_per_second(), quota.graph_bytes_per_second(), burst, 0, now,
            &graph_bytes_);
  SetBucket(quota.has_cpu_seconds_per_second(), quota.cpu_seconds_per_second(), burst, 0, now,
            &cpu_seconds_);
}

CallerAccount::Verdict CallerAccount::Begin(absl::Time now) {
  const absl::MutexLock lock(&mu_);
  if (quota_.has_requests_in_flight() && in_flight_ >= quota_.requests_in_flight()) {
    return Refused(QuotaKind::kRequestsInFlight, absl::ZeroDuration());
  }
  absl::Duration wait = WaitOn(requests_, 1, now);
  if (wait > absl::ZeroDuration()) return Refused(QuotaKind::kRequests, wait);
  wait = WaitOn(graph_bytes_, 0, now);
  if (wait > absl::ZeroDuration()) return Refused(QuotaKind::kGraphBytes, wait);
  wait = WaitOn(cpu_seconds_, 0, now);
  if (wait > absl::ZeroDuration()) return Refused(QuotaKind::kCpu, wait);
  TakeFrom(requests_, 1, now);
  ++in_flight_;
  counters_.requests->Increment();
  return {};
}

void CallerAccount::End() {
  const absl::MutexLock lock(&mu_);
  --in_flight_;
}

CallerAccount::Verdict CallerAccount::ChargeGraphs(int64_t bytes, absl::Time now) {
  const absl::MutexLock lock(&mu_);
  const absl::Duration wait = WaitOn(graph_bytes_, 0, now);
  if (wait > absl::ZeroDuration()) return Refused(QuotaKind::kGraphBytes, wait);
  TakeFrom(graph_bytes_, static_cast<double>(bytes), now);
  counters_.graph_bytes->Increment(static_cast<double>(bytes));
  return {};
}

void CallerAccount::Refund(int64_t graph_bytes, absl::Time now) {
  const absl::MutexLock lock(&mu_);
  TakeFrom(requests_, -1, now);
  TakeFrom(graph_bytes_, -static_cast<double>(graph_bytes), now);
}

CallerAccount::Verdict CallerAccount::MayWork(absl::Time now) {
  const absl::MutexLock lock(&mu_);
  const absl::Duration wait = WaitOn(cpu_seconds_, 0, now);
  return wait > absl::ZeroDuration() ? Refused(QuotaKind::kCpu, wait) : Verdict();
}

void CallerAccount::ChargeCpu(absl::Duration cpu_time, absl::Time now) {
  const absl::MutexLock lock(&mu_);
  TakeFrom(cpu_seconds_, absl::ToDoubleSeconds(cpu_time), now);
  counters_.cpu_seconds->Increment(absl::ToDoubleSeconds(cpu_time));
}

CallerAccount::Verdict CallerAccount::Refused(QuotaKind kind, absl::Duration wait) {
  counters_.rejected[static_cast<int>(kind)]->Increment();
  double limit = quota_.requests_in_flight();
  if (kind == QuotaKind::kRequests) limit = quota_.requests_per_second();
  if (kind == QuotaKind::kGraphBytes) limit = quota_.graph_bytes_per_second();
  if (kind == QuotaKind::kCpu) limit = quota_.cpu_seconds_per_second();
  const std::string when =
      kind == QuotaKind::kRequestsInFlight
          ? "when one of its requests has ended"
          : absl::StrCat("in ", absl::FormatDuration(absl::Ceil(wait, absl::Milliseconds(1))));
  return {core::Error(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_OVERLOADED,
                      absl::StrCat("the caller ", name_, " has used up its quota ", QuotaName(kind),
                                   " of ", limit, "; try again ", when),
                      {{"quota", QuotaName(kind)}, {"limit", absl::StrCat(limit)}}),
          wait};
}

}  // namespace spillway::server
