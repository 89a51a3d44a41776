// The default memory budget of requests: a part of the memory that the process's cgroup
// (base/cgroup.h) or the machine allows.
#ifndef SPILLWAY_SERVER_MEMORY_MEMORY_BUDGET_H_
#define SPILLWAY_SERVER_MEMORY_MEMORY_BUDGET_H_

#include <cstdint>

namespace spillway::server {

// Memory of the process beyond the budget: code, threads, gRPC's buffers, fragmentation. Peak
// resident memory is at most the budget plus this.
inline constexpr int64_t kOverheadBytes = int64_t{256} << 20;

// The minimum budget; with less, not even small graphs can be rewritten.
inline constexpr int64_t kMinMemoryBudget = int64_t{64} << 20;

// Returns `cgroup_bytes` minus kOverheadBytes and a tenth; or half of `machine_bytes` if
// `cgroup_bytes` is 0 (no limit). At least kMinMemoryBudget.
int64_t BudgetOf(int64_t cgroup_bytes, int64_t machine_bytes);

// Returns the default budget of this process.
int64_t DefaultMemoryBudget();

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_MEMORY_MEMORY_BUDGET_H_
