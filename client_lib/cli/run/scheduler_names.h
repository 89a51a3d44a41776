// The job of this process according to its scheduler: Slurm or Kubernetes.
#ifndef SPILLWAY_CLIENT_LIB_CLI_RUN_SCHEDULER_NAMES_H_
#define SPILLWAY_CLIENT_LIB_CLI_RUN_SCHEDULER_NAMES_H_

#include "spillway/connection.h"

namespace spillway::cli {

// Adds the names of the job to the metadata of `call`, except those that `call` already has or a
// variable SPILLWAY_* sets. For a task of a Slurm array the job is ARRAY_TASK; in a pod it is the
// pod's name. Names are converted to the form that can be sent.
void AddSchedulerNames(CallOptions* call);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_RUN_SCHEDULER_NAMES_H_
