#include "server/observe/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

#include "server/base/gauges.h"

namespace spillway::server {
namespace {

using prometheus::MetricType;

// The fields read from /proc/self/stat, with their numbers in proc(5).
struct Stat {
  uint64_t user_ticks = 0;      // 14
  uint64_t system_ticks = 0;    // 15
  uint64_t start_ticks = 0;     // 22, since boot
  uint64_t virtual_bytes = 0;   // 23
  uint64_t resident_pages = 0;  // 24
};

std::optional<Stat> ReadStat() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // Field 2 is the program's name in parentheses and may contain anything, so count from its end.
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(line.substr(name_end + 1));
  const std::vector<std::string> fields{std::istream_iterator<std::string>(rest), {}};
  constexpr int kFirst = 3;  // The number of the field after the name.
  if (fields.size() <= 24 - kFirst) return std::nullopt;
  const auto number = [&](int field) {
    return std::strtoull(fields[field - kFirst].c_str(), nullptr, 10);
  };
  return Stat{number(14), number(15), number(22), number(23), number(24)};
}

// Seconds since the epoch.
std::optional<double> BootTime() {
  std::ifstream file("/proc/stat");
  std::string word;
  while (file >> word) {
    double seconds = 0;
    if (word == "btime" && file >> seconds) return seconds;
  }
  return std::nullopt;
}

std::optional<int64_t> OpenFds() {
  std::error_code error;
  const std::filesystem::directory_iterator fds("/proc/self/fd", error);
  if (error) return std::nullopt;
  return std::distance(begin(fds), end(fds)) - 1;  // Without the one that lists them.
}

}  // namespace

std::vector<prometheus::MetricFamily> ProcessMetrics::Collect() const {
  std::vector<prometheus::MetricFamily> families;
  const auto add = [&](const char* name, const char* help, double value, MetricType type) {
    families.push_back(SingleMetric(name, help, value, type));
  };
  const double ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  if (const std::optional<Stat> stat = ReadStat()) {
    add("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.",
        static_cast<double>(stat->user_ticks + stat->system_ticks) / ticks_per_second,
        MetricType::Counter);
    add("process_virtual_memory_bytes", "Virtual memory size in bytes.",
        static_cast<double>(stat->virtual_bytes), MetricType::Gauge);
    add("process_resident_memory_bytes", "Resident memory size in bytes.",
        static_cast<double>(stat->resident_pages) * static_cast<double>(sysconf(_SC_PAGESIZE)),
        MetricType::Gauge);
    if (const std::optional<double> boot = BootTime()) {
      add("process_start_time_seconds", "Start time of the process since unix epoch in seconds.",
          *boot + static_cast<double>(stat->start_ticks) / ticks_per_second, MetricType::Gauge);
    }
  }
  if (const std::optional<int64_t> fds = OpenFds()) {
    add("process_open_fds", "Number of open file descriptors.", static_cast<double>(*fds),
        MetricType::Gauge);
  }
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    add("process_max_fds", "Maximum number of open file descriptors.",
        static_cast<double>(limit.rlim_cur), MetricType::Gauge);
  }
  return families;
}

}  // namespace spillway::server
