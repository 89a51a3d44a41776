// Costs and savings of rewrites, as histograms by strategy and outcome. One observation per
// answered request, whichever request did the work, and per request whose graph does not fit.
// Values that were not simulated are not observed.
//
// The constructor creates all series that can occur: no label comes from a user. Thread-safe. The
// registry must outlive it.
#ifndef SPILLWAY_SERVER_OBSERVE_REWRITE_STATISTICS_H_
#define SPILLWAY_SERVER_OBSERVE_REWRITE_STATISTICS_H_

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <map>
#include <optional>
#include <string>

#include "server/observe/rewrite_record.h"
#include "spillway/v1/report.pb.h"

namespace spillway::server {

class RewriteStatistics {
 public:
  explicit RewriteStatistics(prometheus::Registry& registry);

  // Counts a request that was answered, or rejected because nothing fits.
  void Count(v1::Strategy strategy, const RewriteRecord& record);

 private:
  // By strategy and outcome, with DOES_NOT_FIT as the unspecified one; null for unused ones.
  using Histograms =
      std::array<std::array<prometheus::Histogram*, v1::Outcome_ARRAYSIZE>, v1::Strategy_ARRAYSIZE>;

  static void Observe(const Histograms& histograms, v1::Strategy strategy, v1::Outcome outcome,
                      std::optional<double> value);

  Histograms slowdown_ = {};
  Histograms peak_before_ = {};
  Histograms peak_after_ = {};
  Histograms host_memory_ = {};
  Histograms swap_bytes_ = {};
  Histograms need_ratio_ = {};
  std::map<std::string, prometheus::Counter*> machines_;  // By preset, and kCustomMachine.
  prometheus::Counter* no_machine_ = nullptr;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_OBSERVE_REWRITE_STATISTICS_H_
