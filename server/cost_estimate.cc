#include "server/cost_estimate.h"

#include <algorithm>

namespace spillway::server {
namespace {

// Before anything is known: about what the graphs of tests/graphs take on a machine of 2020.
constexpr double kPlainRate = 20;
constexpr double kSimulatingRate = 100;

// The weight of the newest: some ten pieces of work make the average.
constexpr double kNewest = 0.1;

// By so much at most a piece of work is believed to cost more or less than those before.
constexpr double kMaxChange = 8;

// What every request costs as much as.
constexpr int64_t kLeastBytes = 4 << 10;

}  // namespace

CostEstimate::CostEstimate() {
  for (auto& rates : rates_) {
    rates[0] = kPlainRate;
    rates[1] = kSimulatingRate;
  }
}

absl::Duration CostEstimate::Expect(WorkKind kind, int64_t graph_bytes) const {
  const double rate =
      rates_[static_cast<int>(kind.method)][kind.simulates].load(std::memory_order_relaxed);
  return absl::Nanoseconds(rate * static_cast<double>(std::max(graph_bytes, kLeastBytes)));
}

void CostEstimate::Learn(WorkKind kind, int64_t graph_bytes, absl::Duration cpu_time) {
  std::atomic<double>& rate = rates_[static_cast<int>(kind.method)][kind.simulates];
  const double before = rate.load(std::memory_order_relaxed);
  // One graph that is unlike all others must not make everybody look like it.
  const double found = std::clamp(
      absl::ToDoubleNanoseconds(cpu_time) / static_cast<double>(std::max(graph_bytes, kLeastBytes)),
      before / kMaxChange, before * kMaxChange);
  // Of two at once one may be lost, which does no harm.
  rate.store(before + kNewest * (found - before), std::memory_order_relaxed);
}

}  // namespace spillway::server
