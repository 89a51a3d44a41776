#include "server/base/cgroup.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace spillway::server {
namespace {

// Returns the words of a file of the kernel as numbers; 0 for those that are none (`max`) or below
// 0 (version 1: no limit), and for a file that does not exist.
std::vector<int64_t> ReadNumbers(const std::string& path) {
  std::ifstream file(path);
  std::vector<int64_t> numbers;
  for (std::string word; file >> word;) {
    int64_t number = 0;
    numbers.push_back(absl::SimpleAtoi(word, &number) ? std::max<int64_t>(number, 0) : 0);
  }
  numbers.resize(2);
  return numbers;
}

template <typename Number>
Number Tighter(Number a, Number b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

void LimitMemory(const std::string& path, CgroupLimits* limits) {
  const int64_t bytes = ReadNumbers(path)[0];
  // Version 1 writes a number near 2^63 for no limit.
  constexpr int64_t kNoMachineHasAsMuch = int64_t{1} << 60;
  if (bytes < kNoMachineHasAsMuch) limits->memory_bytes = Tighter(limits->memory_bytes, bytes);
}

// Time that may be used within each period.
void LimitCpus(int64_t quota, int64_t period, CgroupLimits* limits) {
  if (quota == 0 || period == 0) return;
  limits->cpus = Tighter(limits->cpus, static_cast<double>(quota) / static_cast<double>(period));
}

// Calls `limit` with the folders of the group `name` (`/a/b`) and its ancestors, whose limits all
// apply.
template <typename Limit>
void UpFrom(absl::string_view name, const std::string& root, const Limit& limit) {
  while (true) {
    limit(absl::StrCat(root, name, "/"));
    if (name.empty() || name == "/") return;
    name = name.substr(0, name.rfind('/'));
  }
}

}  // namespace

CgroupLimits ReadCgroupLimits(const std::string& proc_cgroup, const std::string& root) {
  CgroupLimits limits;
  std::ifstream file(proc_cgroup);
  // Lines such as `0::/user.slice` (version 2) and `9:memory:/docker/1a2b` (version 1).
  for (std::string line; std::getline(file, line);) {
    const std::vector<absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(absl::ByChar(':'), 2));
    if (parts.size() != 3 || parts[2].empty() || parts[2][0] != '/') continue;
    if (parts[0] == "0" && parts[1].empty()) {
      UpFrom(parts[2], root, [&limits](const std::string& folder) {
        LimitMemory(folder + "memory.max", &limits);
        const std::vector<int64_t> quota_and_period = ReadNumbers(folder + "cpu.max");
        LimitCpus(quota_and_period[0], quota_and_period[1], &limits);
      });
      continue;
    }
    for (absl::string_view controller : absl::StrSplit(parts[1], ',')) {
      if (controller == "memory") {
        UpFrom(parts[2], root + "/memory", [&limits](const std::string& folder) {
          LimitMemory(folder + "memory.limit_in_bytes", &limits);
        });
      } else if (controller == "cpu") {
        UpFrom(parts[2], root + "/cpu", [&limits](const std::string& folder) {
          LimitCpus(ReadNumbers(folder + "cpu.cfs_quota_us")[0],
                    ReadNumbers(folder + "cpu.cfs_period_us")[0], &limits);
        });
      }
    }
  }
  return limits;
}

int UsableCores(const CgroupLimits& limits, int cores) {
  if (limits.cpus > 0 && limits.cpus < cores) cores = static_cast<int>(std::ceil(limits.cpus));
  return std::max(cores, 1);
}

}  // namespace spillway::server
