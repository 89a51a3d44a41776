#include "server/net/connection_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

namespace spillway::server {
namespace {

// Descriptors beside connections: a dozen of gRPC and the log, the listeners, scrapes (8 threads
// and as many waiting), files being read.
constexpr rlim_t kReserved = 128;

// gRPC 1.51 takes some 16 KiB per idle connection (measured with 2,000, plain text): 64 MiB for
// these, which are part of kOverheadBytes of memory_budget.h.
constexpr int kDefaultMaxConnections = 4096;

}  // namespace

int MaxConnections() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kDefaultMaxConnections;
  const rlim_t left = limit.rlim_cur - std::min(kReserved, limit.rlim_cur / 2);
  return static_cast<int>(
      std::clamp<rlim_t>(left, 1, static_cast<rlim_t>(std::numeric_limits<int>::max())));
}

int DefaultMaxConnections() { return std::min(MaxConnections(), kDefaultMaxConnections); }

}  // namespace spillway::server
