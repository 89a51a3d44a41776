#include "server/work/cost_estimate.h"

#include <algorithm>

namespace spillway::server {
namespace {

// Initial rates: about those of the graphs of tests/graphs on a machine of 2020.
constexpr double kPlainRate = 20;
constexpr double kSimulatingRate = 100;

// The weight of the newest observation: the average covers some ten.
constexpr double kNewest = 0.1;

// The maximum factor by which an observation may differ from the average; clamped beyond it.
constexpr double kMaxChange = 8;

// Every request costs at least as much as a graph of this size.
constexpr int64_t kMinBytes = 4 << 10;

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
  return absl::Nanoseconds(rate * static_cast<double>(std::max(graph_bytes, kMinBytes)));
}

void CostEstimate::Learn(WorkKind kind, int64_t graph_bytes, absl::Duration cpu_time) {
  std::atomic<double>& rate = rates_[static_cast<int>(kind.method)][kind.simulates];
  const double before = rate.load(std::memory_order_relaxed);
  // A single unusual graph must not distort the estimate for all others.
  const double found = std::clamp(
      absl::ToDoubleNanoseconds(cpu_time) / static_cast<double>(std::max(graph_bytes, kMinBytes)),
      before / kMaxChange, before * kMaxChange);
  // One of two concurrent updates may be lost, which is harmless.
  rate.store(before + kNewest * (found - before), std::memory_order_relaxed);
}

}  // namespace spillway::server
