// A second simulator, written to be obviously what simulate/simulator.h says and nothing else: at
// every event it looks at all operations and adds up all buffers anew. For small workloads.
#ifndef SPILLWAY_TESTS_TESTING_NAIVE_SIMULATOR_H_
#define SPILLWAY_TESTS_TESTING_NAIVE_SIMULATOR_H_

#include "rewrite_core/simulate/simulator.h"

namespace spillway::testing {

// REQUIRES: the workload keeps the rules of workload.h.
core::SimulationResult NaiveSimulate(const core::Workload& workload,
                                     const core::SimulationOptions& options);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_NAIVE_SIMULATOR_H_
