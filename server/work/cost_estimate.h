// Estimates the CPU time of work on a graph from past work of the same kind, in proportion to the
// graph's bytes. Used for the order of the queue and the bound on waits. Off by a factor of two or
// three, as graphs differ, but the right order of magnitude.
//
// Thread-safe, lock-free.
#ifndef SPILLWAY_SERVER_WORK_COST_ESTIMATE_H_
#define SPILLWAY_SERVER_WORK_COST_ESTIMATE_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "server/observe/metrics.h"

namespace spillway::server {

// Work of similar cost per byte.
struct WorkKind {
  Method method = Method::kRewrite;
  bool simulates = false;  // Its strategy simulates plans: tens of times the cost.
};

class CostEstimate {
 public:
  CostEstimate();

  absl::Duration Expect(WorkKind kind, int64_t graph_bytes) const;
  // Records that work of this kind took `cpu_time`.
  void Learn(WorkKind kind, int64_t graph_bytes, absl::Duration cpu_time);

 private:
  // Nanoseconds per byte, by method and whether it simulates.
  std::array<std::array<std::atomic<double>, 2>, kMethodCount> rates_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_WORK_COST_ESTIMATE_H_
