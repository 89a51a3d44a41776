// The machine that a command plans for: if the flags leave it open, that of this machine's GPUs
// (internal/this_machine.h).
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_MACHINE_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_MACHINE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client_lib/internal/this_machine.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/simulate.pb.h"

namespace spillway::cli {

using internal::kNvidiaSmiTime;

// Replace a preset that is a file (hardware_file.h) by its content, `auto` by the preset of this
// machine's GPUs, and without a preset, fill in the values from nvidia-smi; wait at most `limit`
// for it. Return a sentence for the user, or empty if the options name the machine. BAD_OPTION if
// the preset is `auto` and this machine has none.
absl::StatusOr<std::string> FillHardware(absl::Duration limit, v1::RewriteOptions* options);
absl::StatusOr<std::string> FillHardware(absl::Duration limit, v1::SimulateOptions* options);
absl::StatusOr<std::string> FillHardware(absl::Duration limit, v1::ExploreOptions* options);

// Of the machine that trains (internal/this_machine.h), after FillHardware.
std::string LimitToFreeMemory(v1::RewriteOptions* options);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_MACHINE_H_
