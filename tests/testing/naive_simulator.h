// A naive simulator that follows the rules of simulate/simulator.h literally: at every event it
// examines all operations and adds up all buffers again. For small workloads.
#ifndef SPILLWAY_TESTS_TESTING_NAIVE_SIMULATOR_H_
#define SPILLWAY_TESTS_TESTING_NAIVE_SIMULATOR_H_

#include "rewrite_core/simulate/simulator.h"

namespace spillway::testing {

// REQUIRES: the workload follows the rules of workload.h.
core::SimulationResult NaiveSimulate(const core::Workload& workload,
                                     const core::SimulationOptions& options);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_NAIVE_SIMULATOR_H_
