#include "server/memory/memory_budget.h"

#include <unistd.h>

#include <algorithm>

#include "server/base/cgroup.h"

namespace spillway::server {

int64_t BudgetOf(int64_t cgroup_bytes, int64_t machine_bytes) {
  const int64_t budget = cgroup_bytes > 0 && cgroup_bytes < machine_bytes
                             ? cgroup_bytes - kOverheadBytes - cgroup_bytes / 10
                             : machine_bytes / 2;
  return std::max(budget, kMinMemoryBudget);
}

int64_t DefaultMemoryBudget() {
  const int64_t machine_bytes =
      static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  return BudgetOf(ReadCgroupLimits().memory_bytes, machine_bytes);
}

}  // namespace spillway::server
