// What the scheduler that started this process says of its job: Slurm, or Kubernetes.
#ifndef SPILLWAY_CLIENT_LIB_CLI_RUN_SCHEDULER_NAMES_H_
#define SPILLWAY_CLIENT_LIB_CLI_RUN_SCHEDULER_NAMES_H_

#include "spillway/connection.h"

namespace spillway::cli {

// Adds the names of the job to the metadata of `call`: each that neither `call` has already nor a
// variable SPILLWAY_* says. Of a task of a Slurm array the job is ARRAY_TASK; in a pod it is the
// pod's name. What is not of the form that is sent is made so.
void AddSchedulerNames(CallOptions* call);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_RUN_SCHEDULER_NAMES_H_
