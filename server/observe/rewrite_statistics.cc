#include "server/observe/rewrite_statistics.h"

#include <cstdint>
#include <vector>

#include "rewrite_core/analysis/machine/hardware.h"
#include "rewrite_core/base/names.h"

namespace spillway::server {
namespace {

using Outcomes = std::vector<v1::Outcome>;

constexpr v1::Outcome kDoesNotFit = v1::OUTCOME_UNSPECIFIED;

// From unnoticeable to unacceptable.
const prometheus::Histogram::BucketBoundaries kSlowdownBuckets = {1,   1.01, 1.02, 1.05, 1.1, 1.2,
                                                                  1.5, 2,    3,    5,    10};
// Finest around 1, the boundary of fitting.
const prometheus::Histogram::BucketBoundaries kNeedBuckets = {0.1, 0.25, 0.5, 0.75, 0.9, 1,
                                                              1.1, 1.25, 1.5, 2,    4};

// By factors of four up to 1 GiB, then by two: GPUs have some 8 to 192 GiB.
prometheus::Histogram::BucketBoundaries ByteBuckets() {
  constexpr int64_t kMiB = int64_t{1} << 20, kGiB = int64_t{1} << 30;
  prometheus::Histogram::BucketBoundaries bounds;
  for (int64_t bytes = kMiB; bytes < kGiB; bytes *= 4) bounds.push_back(static_cast<double>(bytes));
  for (int64_t bytes = kGiB; bytes <= 256 * kGiB; bytes *= 2) {
    bounds.push_back(static_cast<double>(bytes));
  }
  return bounds;
}

}  // namespace

RewriteStatistics::RewriteStatistics(prometheus::Registry& registry) {
  const auto add = [&registry](const char* name, const char* help, const Outcomes& outcomes,
                               const prometheus::Histogram::BucketBoundaries& buckets,
                               Histograms* histograms) {
    auto& family = prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
    for (const v1::Strategy strategy : core::AllStrategies()) {
      if (strategy == v1::STRATEGY_STRIP) continue;  // It simulates nothing.
      for (const v1::Outcome outcome : outcomes) {
        (*histograms)[strategy][outcome] = &family.Add(
            {{"strategy", core::StrategyName(strategy)}, {"outcome", OutcomeName(outcome)}},
            buckets);
      }
    }
  };
  const Outcomes answered = {v1::OUTCOME_REWRITTEN, v1::OUTCOME_NOTHING_TO_DO, v1::OUTCOME_KEPT,
                             v1::OUTCOME_FOREIGN, v1::OUTCOME_DRY_RUN};
  Outcomes all = answered;
  all.push_back(kDoesNotFit);
  add("spillway_rewrite_slowdown_ratio",
      "Simulated step time of the returned graph divided by that of the original graph with "
      "unlimited memory.",
      {v1::OUTCOME_REWRITTEN, v1::OUTCOME_NOTHING_TO_DO, v1::OUTCOME_DRY_RUN}, kSlowdownBuckets,
      &slowdown_);
  add("spillway_rewrite_peak_before_bytes",
      "Simulated peak of memory on the fullest GPU, of the original graph.", answered,
      ByteBuckets(), &peak_before_);
  add("spillway_rewrite_peak_after_bytes",
      "Simulated peak of memory on the same GPU, of the returned graph.", answered, ByteBuckets(),
      &peak_after_);
  add("spillway_rewrite_host_memory_bytes",
      "Simulated peak of host memory for copies to and from GPUs, of the returned graph.", answered,
      ByteBuckets(), &host_memory_);
  add("spillway_rewrite_swap_bytes_per_step",
      "Bytes that a step copies for swaps, in both directions, of returned graphs that swap.",
      {v1::OUTCOME_REWRITTEN, v1::OUTCOME_DRY_RUN}, ByteBuckets(), &swap_bytes_);
  add("spillway_rewrite_need_ratio",
      "Memory that the returned graph needs divided by the budget, on the fullest GPU; for "
      "does_not_fit, the smallest sufficient budget divided by the budget.",
      all, kNeedBuckets, &need_ratio_);
  auto& machines =
      prometheus::BuildCounter()
          .Name("spillway_rewrites_by_machine_total")
          .Help("Rewrites answered, or rejected because they do not fit, by the machine requested.")
          .Register(registry);
  for (const core::HardwarePreset& preset : core::HardwarePresets()) {
    machines_[preset.hardware.preset] = &machines.Add({{"machine", preset.hardware.preset}});
  }
  const std::string custom(core::kCustomMachine);
  machines_[custom] = &machines.Add({{"machine", custom}});
  no_machine_ = &machines.Add({{"machine", "none"}});
}

void RewriteStatistics::Observe(const Histograms& histograms, v1::Strategy strategy,
                                v1::Outcome outcome, std::optional<double> value) {
  if (!value.has_value()) return;
  if (prometheus::Histogram* const histogram = histograms[strategy][outcome];
      histogram != nullptr) {
    histogram->Observe(*value);
  }
}

void RewriteStatistics::Count(v1::Strategy strategy, const RewriteRecord& record) {
  const core::RewriteFigures& figures = record.figures;
  const auto observe = [&](const Histograms& histograms, std::optional<double> value) {
    Observe(histograms, strategy, record.outcome, value);
  };
  observe(slowdown_, record.slowdown());
  observe(need_ratio_, record.need_ratio());
  observe(host_memory_, figures.host_peak_bytes);
  if (const core::GpuFigures* const gpu = figures.fullest(); gpu != nullptr) {
    observe(peak_before_, gpu->peak_before_bytes);
    observe(peak_after_, gpu->peak_after_bytes);
  }
  if (figures.swapped_tensors > 0) {
    observe(swap_bytes_, static_cast<double>(figures.swap_out_bytes) +
                             static_cast<double>(figures.swap_in_bytes));
  }
  if (figures.machine.empty()) {
    no_machine_->Increment();
    return;
  }
  const auto machine = machines_.find(figures.machine);
  (machine != machines_.end() ? machine->second : machines_.at(std::string(core::kCustomMachine)))
      ->Increment();
}

}  // namespace spillway::server
