// The time by a clock that nobody sets, for deadlines and durations.
//
// Thread-safe.
#ifndef SPILLWAY_REWRITE_CORE_BASE_STEADY_TIME_H_
#define SPILLWAY_REWRITE_CORE_BASE_STEADY_TIME_H_

#include <chrono>

#include "absl/time/time.h"

namespace spillway::core {

// Monotonic, with an arbitrary epoch: not a date, and not to be compared with absl::Now().
inline absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_STEADY_TIME_H_
