// The process_* metrics that Prometheus expects of every process, read from /proc at scrape time.
// prometheus-cpp does not provide them.
//
// Thread-safe. A figure that cannot be read is left out, never 0.
#ifndef SPILLWAY_SERVER_OBSERVE_PROCESS_METRICS_H_
#define SPILLWAY_SERVER_OBSERVE_PROCESS_METRICS_H_

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <vector>

namespace spillway::server {

class ProcessMetrics : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_OBSERVE_PROCESS_METRICS_H_
