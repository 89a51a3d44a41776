// What work on a graph will take of one core, learned from what came before: work of its kind in
// proportion to its bytes. For the order of the queue and the bound on waits; wrong by a factor of
// two or three as graphs differ, right by orders of magnitude.
//
// Thread-safe, lock-free.
#ifndef SPILLWAY_SERVER_COST_ESTIMATE_H_
#define SPILLWAY_SERVER_COST_ESTIMATE_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "server/metrics.h"

namespace spillway::server {

// Work that costs alike.
struct WorkKind {
  Method method = Method::kRewrite;
  bool simulates = false;  // Its strategy simulates plans: tens of times as much.
};

class CostEstimate {
 public:
  CostEstimate();

  absl::Duration Expect(WorkKind kind, int64_t graph_bytes) const;
  // Work of that kind took `cpu_time`.
  void Learn(WorkKind kind, int64_t graph_bytes, absl::Duration cpu_time);

 private:
  // Nanoseconds per byte, by method and whether it simulates.
  std::array<std::array<std::atomic<double>, 2>, kMethodCount> rates_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_COST_ESTIMATE_H_
