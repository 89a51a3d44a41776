// A rate with savings, that may be overdrawn: what is taken is known only afterwards, and who took
// more than there was waits until it is paid off.
//
// Not thread-safe. Times are given, of a clock that never goes back (clock.h).
#ifndef SPILLWAY_SERVER_TOKEN_BUCKET_H_
#define SPILLWAY_SERVER_TOKEN_BUCKET_H_

#include <algorithm>

#include "absl/time/time.h"

namespace spillway::server {

class TokenBucket {
 public:
  // Fills at `per_second` (above 0) up to `most` (above 0). Full at first.
  TokenBucket(double per_second, double most, absl::Time now)
      : per_second_(per_second), most_(most), level_(most), filled_at_(now) {}

  // From now on at another rate. What it holds, or owes, stays as far as it has room.
  void SetRate(double per_second, double most, absl::Time now) {
    Fill(now);
    per_second_ = per_second;
    most_ = most;
    level_ = std::min(level_, most_);
  }

  // Takes `amount`, also where there is less.
  void Take(double amount, absl::Time now) {
    Fill(now);
    level_ -= amount;
  }

  // How long until it holds `amount` (at most `most`): zero if it does.
  absl::Duration WaitFor(double amount, absl::Time now) {
    Fill(now);
    const double missing = amount - level_;
    return missing <= kRounding ? absl::ZeroDuration() : absl::Seconds(missing / per_second_);
  }

 private:
  // Of sums of fractions: who came back when told to must be let in.
  static constexpr double kRounding = 1e-6;

  void Fill(absl::Time now) {
    const double passed = absl::ToDoubleSeconds(now - filled_at_);
    filled_at_ = now;
    level_ = std::min(most_, level_ + passed * per_second_);
  }

  double per_second_;
  double most_;
  double level_;  // Below 0: owed.
  absl::Time filled_at_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_TOKEN_BUCKET_H_
