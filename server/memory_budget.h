// How much memory requests may take where nobody said it: a part of what this process may have, by
// its cgroup (v2 or v1) or by the machine.
#ifndef SPILLWAY_SERVER_MEMORY_BUDGET_H_
#define SPILLWAY_SERVER_MEMORY_BUDGET_H_

#include <cstdint>
#include <string>

namespace spillway::server {

// What the process takes beyond the budget: code, threads, gRPC's own buffers, fragments. The peak
// of resident memory is at most the budget and this.
inline constexpr int64_t kOverheadBytes = int64_t{256} << 20;

// With less, not even small graphs are answered.
inline constexpr int64_t kLeastMemoryBudget = int64_t{64} << 20;

// The memory limit, in bytes, of the cgroups that `proc_cgroup` (/proc/self/cgroup) names, in the
// tree at `root` (/sys/fs/cgroup); 0 if there is none. A container sees its own tree: what is not
// found under its name is looked for at the root.
int64_t CgroupLimit(const std::string& proc_cgroup, const std::string& root);

// Of `cgroup_bytes` (0: no limit), less kOverheadBytes and a tenth; otherwise half of
// `machine_bytes`. At least kLeastMemoryBudget.
int64_t BudgetOf(int64_t cgroup_bytes, int64_t machine_bytes);

// That of this process.
int64_t DefaultMemoryBudget();

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_MEMORY_BUDGET_H_
