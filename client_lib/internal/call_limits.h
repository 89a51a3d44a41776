// Internal. The deadline and cancellation of one call, the same for every connection.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_CALL_LIMITS_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_CALL_LIMITS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "rewrite_core/base/steady_time.h"
#include "rewrite_core/base/stop_token.h"
#include "spillway/connection.h"

namespace spillway::internal {

// Created when the call starts, which fixes the deadline for all attempts of the call. Must outlive
// the tokens it makes. Thread-safe.
class CallLimits {
 public:
  explicit CallLimits(const CallOptions& call)
      : CallLimits(core::SteadyNow() + call.timeout, call.cancellation) {}
  CallLimits(absl::Time deadline, CancellationToken cancellation)
      : deadline_(deadline), cancellation_(std::move(cancellation)) {}

  absl::Time deadline() const { return deadline_; }
  const CancellationToken& cancellation() const { return cancellation_; }
  core::StopToken MakeStopToken() const { return core::StopToken(deadline_, cancellation_.flag()); }

  // Returns an error if the call is over before it starts. Every call checks this first: neither
  // gRPC nor the loops of the core check immediately, so a short call might otherwise succeed.
  absl::Status CheckStart() const {
    const core::StopToken stop = MakeStopToken();
    return stop.ShouldStop(1) ? stop.status("start") : absl::OkStatus();
  }

 private:
  const absl::Time deadline_;
  const CancellationToken cancellation_;
};

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_CALL_LIMITS_H_
