#include "server/connection_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

namespace spillway::server {
namespace {

// What is open beside connections: a dozen descriptors of gRPC and the log, the listeners, scrapes
// (8 threads and as many that wait), files that are read.
constexpr rlim_t kReserved = 128;

// An idle connection takes gRPC 1.51 some 16 KiB (seen with 2,000, plain text): 64 MiB for these,
// which memory_budget.h leaves beside the budget.
constexpr int kDefaultMost = 4096;

}  // namespace

int MaxConnections() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kDefaultMost;
  const rlim_t left = limit.rlim_cur - std::min(kReserved, limit.rlim_cur / 2);
  return static_cast<int>(
      std::clamp<rlim_t>(left, 1, static_cast<rlim_t>(std::numeric_limits<int>::max())));
}

int DefaultMaxConnections() { return std::min(MaxConnections(), kDefaultMost); }

}  // namespace spillway::server
