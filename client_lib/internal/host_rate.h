// The rate of this machine's memory, measured.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_HOST_RATE_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_HOST_RATE_H_

#include <cstdint>

namespace spillway::internal {

// The bytes per second that threads on all processors of this process read and write together, as
// Hardware.host_mem_bytes_per_s has them: two reads and a write per number, over `bytes` of memory,
// which caches must not hold. 0: there is not so much memory.
double MeasureHostRate(int64_t bytes);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_HOST_RATE_H_
