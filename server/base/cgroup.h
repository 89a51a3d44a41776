// The limits that its cgroups (v2 or v1) set this process.
#ifndef SPILLWAY_SERVER_BASE_CGROUP_H_
#define SPILLWAY_SERVER_BASE_CGROUP_H_

#include <cstdint>
#include <string>

namespace spillway::server {

struct CgroupLimits {
  int64_t memory_bytes = 0;  // 0: no limit.
  double cpus = 0;           // Cores' worth of time; 0: no limit.
};

// Returns the limits of the cgroups that `proc_cgroup` names, in the tree at `root`. A container
// sees its own tree, so a cgroup that is not found by name is looked up at the root.
CgroupLimits ReadCgroupLimits(const std::string& proc_cgroup = "/proc/self/cgroup",
                              const std::string& root = "/sys/fs/cgroup");

// Returns the cores of a machine with so many that `limits` leaves: rounded up, at least 1.
int UsableCores(const CgroupLimits& limits, int cores);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_BASE_CGROUP_H_
