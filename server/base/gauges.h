// A Prometheus Collectable whose values are read from their source at scrape time, so that they
// cannot drift from it.
#ifndef SPILLWAY_SERVER_BASE_GAUGES_H_
#define SPILLWAY_SERVER_BASE_GAUGES_H_

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::server {

// Returns one metric without labels, ready for a scrape. `type` is Gauge or Counter.
inline prometheus::MetricFamily SingleMetric(std::string name, std::string help, double value,
                                             prometheus::MetricType type) {
  prometheus::ClientMetric metric;
  metric.gauge.value = value;
  metric.counter.value = value;
  prometheus::MetricFamily family;
  family.name = std::move(name);
  family.help = std::move(help);
  family.type = type;
  family.metric.push_back(std::move(metric));
  return family;
}

// Gauges given by functions. Thread-safe if the functions are.
class Gauges : public prometheus::Collectable {
 public:
  struct Gauge {
    std::string name;
    std::string help;
    std::function<double()> read;
  };

  explicit Gauges(std::vector<Gauge> gauges) : gauges_(std::move(gauges)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    std::vector<prometheus::MetricFamily> families;
    for (const Gauge& gauge : gauges_) {
      families.push_back(
          SingleMetric(gauge.name, gauge.help, gauge.read(), prometheus::MetricType::Gauge));
    }
    return families;
  }

 private:
  const std::vector<Gauge> gauges_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_BASE_GAUGES_H_
