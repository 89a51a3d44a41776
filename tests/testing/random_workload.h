// Small random workloads that follow the rules of workload.h: kernels, host operations and copies
// on one to three GPUs, swaps with triggers, deadline and pace edges, operations without duration,
// workspace, outputs that may reuse inputs in place, ids in no order.
#ifndef SPILLWAY_TESTS_TESTING_RANDOM_WORKLOAD_H_
#define SPILLWAY_TESTS_TESTING_RANDOM_WORKLOAD_H_

#include "tests/testing/random.h"
#include "tests/testing/workload_maker.h"

namespace spillway::testing {

struct RandomWorkloadOptions {
  int max_devices = 3;
  int max_steps = 12;         // A step adds one operation, or the four of a swap.
  bool long_copies = true;    // Occasionally one of some seconds.
  bool kernels_only = false;  // No host operations and no copies.
  int max_units = 9;          // Buffers are 0 to this many times unit_bytes,
  bool odd_sizes = true;      // or one byte less.
  int64_t unit_bytes = 256;
};

core::Workload RandomWorkload(const RandomWorkloadOptions& options, Random* random);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_RANDOM_WORKLOAD_H_
