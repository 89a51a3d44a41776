// A token bucket that may be overdrawn: the amount taken is only known afterwards, and the level
// may become negative until it has refilled.
//
// Not thread-safe. Times are passed in, from a monotonic clock.
#ifndef SPILLWAY_SERVER_ACCESS_TOKEN_BUCKET_H_
#define SPILLWAY_SERVER_ACCESS_TOKEN_BUCKET_H_

#include <algorithm>

#include "absl/time/time.h"

namespace spillway::server {

class TokenBucket {
 public:
  // Fills at `per_second` (above 0) up to `capacity` (above 0). Full at first.
  TokenBucket(double per_second, double capacity, absl::Time now)
      : per_second_(per_second), capacity_(capacity), level_(capacity), filled_at_(now) {}

  // Changes the rate from now on. The level, which may be negative, is kept, up to the new maximum.
  void SetRate(double per_second, double capacity, absl::Time now) {
    Fill(now);
    per_second_ = per_second;
    capacity_ = capacity;
    level_ = std::min(level_, capacity_);
  }

  // Takes `amount`, even if there is less.
  void Take(double amount, absl::Time now) {
    Fill(now);
    level_ -= amount;
  }

  // Returns how long until it holds `amount` (at most the capacity); zero if it already does.
  absl::Duration WaitFor(double amount, absl::Time now) {
    Fill(now);
    const double missing = amount - level_;
    return missing <= kRounding ? absl::ZeroDuration() : absl::Seconds(missing / per_second_);
  }

 private:
  // Tolerance for rounding: a caller that retries after the reported wait must be admitted.
  static constexpr double kRounding = 1e-6;

  void Fill(absl::Time now) {
    const double passed = absl::ToDoubleSeconds(now - filled_at_);
    filled_at_ = now;
    level_ = std::min(capacity_, level_ + passed * per_second_);
  }

  double per_second_;
  double capacity_;
  double level_;  // Below 0: overdrawn.
  absl::Time filled_at_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_ACCESS_TOKEN_BUCKET_H_
