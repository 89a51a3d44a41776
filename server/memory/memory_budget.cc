#include "server/memory/memory_budget.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace spillway::server {
namespace {

// Returns a limit as the kernel writes it; 0 if the file does not exist or says `max`. Version 1
// writes a number near 2^63 for no limit.
int64_t ReadLimit(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  int64_t bytes = 0;
  if (!(file >> text) || !absl::SimpleAtoi(text, &bytes)) return 0;
  constexpr int64_t kNoMachineHasAsMuch = int64_t{1} << 60;
  return bytes >= kNoMachineHasAsMuch ? 0 : bytes;
}

int64_t Tighter(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

// Returns the minimum limit of the group `name` (`/a/b`) and its ancestors, all of which apply.
int64_t LimitUpFrom(absl::string_view name, const std::string& folder, const char* file) {
  int64_t limit = 0;
  while (true) {
    limit = Tighter(limit, ReadLimit(absl::StrCat(folder, name, "/", file)));
    if (name.empty() || name == "/") return limit;
    name = name.substr(0, name.rfind('/'));
  }
}

}  // namespace

int64_t CgroupLimit(const std::string& proc_cgroup, const std::string& root) {
  int64_t limit = 0;
  std::ifstream file(proc_cgroup);
  // Lines such as `0::/user.slice` (version 2) and `9:memory:/docker/1a2b` (version 1).
  for (std::string line; std::getline(file, line);) {
    const std::vector<absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(absl::ByChar(':'), 2));
    if (parts.size() != 3 || parts[2].empty() || parts[2][0] != '/') continue;
    if (parts[0] == "0" && parts[1].empty()) {
      limit = Tighter(limit, LimitUpFrom(parts[2], root, "memory.max"));
      continue;
    }
    const std::vector<absl::string_view> controllers = absl::StrSplit(parts[1], ',');
    if (std::find(controllers.begin(), controllers.end(), "memory") == controllers.end()) continue;
    limit = Tighter(limit,
                    LimitUpFrom(parts[2], absl::StrCat(root, "/memory"), "memory.limit_in_bytes"));
  }
  return limit;
}

int64_t BudgetOf(int64_t cgroup_bytes, int64_t machine_bytes) {
  const int64_t budget = cgroup_bytes > 0 && cgroup_bytes < machine_bytes
                             ? cgroup_bytes - kOverheadBytes - cgroup_bytes / 10
                             : machine_bytes / 2;
  return std::max(budget, kMinMemoryBudget);
}

int64_t DefaultMemoryBudget() {
  const int64_t machine_bytes =
      static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  return BudgetOf(CgroupLimit("/proc/self/cgroup", "/sys/fs/cgroup"), machine_bytes);
}

}  // namespace spillway::server
