#include "server/observe/process_metrics.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <string>

#include "absl/time/clock.h"

namespace spillway::server {
namespace {

std::map<std::string, double> Values() {
  std::map<std::string, double> values;
  for (const prometheus::MetricFamily& family : ProcessMetrics().Collect()) {
    const bool counter = family.type == prometheus::MetricType::Counter;
    const prometheus::ClientMetric& metric = family.metric.at(0);
    values[family.name] = counter ? metric.counter.value : metric.gauge.value;
  }
  return values;
}

TEST(ProcessMetricsTest, HasTheStandardOnesWithPlausibleValues) {
  std::map<std::string, double> values = Values();
  EXPECT_EQ(values.size(), 6u);
  EXPECT_GT(values["process_resident_memory_bytes"], 1e6);
  EXPECT_GT(values["process_virtual_memory_bytes"], values["process_resident_memory_bytes"]);
  EXPECT_GT(values["process_open_fds"], 2);
  EXPECT_GE(values["process_max_fds"], values["process_open_fds"]);
  EXPECT_EQ(values.count("process_cpu_seconds_total"), 1u);
  const double now = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  // Ticks and the boot time are whole units of 10 ms and 1 s; a test runs for at most minutes.
  EXPECT_LT(values["process_start_time_seconds"], now + 2);
  EXPECT_GT(values["process_start_time_seconds"], now - 3600);
}

TEST(ProcessMetricsTest, CountsAnOpenedFile) {
  const double before = Values()["process_open_fds"];
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(Values()["process_open_fds"], before + 1);
  close(fd);
  EXPECT_EQ(Values()["process_open_fds"], before);
}

TEST(ProcessMetricsTest, CpuTimeGrows) {
  const double before = Values()["process_cpu_seconds_total"];
  volatile unsigned work = 0;
  double after = before;
  // A tick is 10 ms.
  while (after <= before) {
    for (int i = 0; i < 1'000'000; ++i) work = work + 1;
    after = Values()["process_cpu_seconds_total"];
  }
  EXPECT_GT(after, before);
}

}  // namespace
}  // namespace spillway::server
