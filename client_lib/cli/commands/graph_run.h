// What `rewrite`, `apply` and `strip` share: read a graph, have it rewritten, write what was asked
// for.
#ifndef SPILLWAY_CLIENT_LIB_CLI_COMMANDS_GRAPH_RUN_H_
#define SPILLWAY_CLIENT_LIB_CLI_COMMANDS_GRAPH_RUN_H_

#include "absl/status/statusor.h"
#include "client_lib/cli/files/saved_plans.h"
#include "client_lib/cli/flags/connection_flags.h"
#include "client_lib/cli/flags/file_flags.h"
#include "client_lib/cli/flags/stored_profile.h"
#include "client_lib/cli/session.h"
#include "spillway/v1/options.pb.h"

namespace spillway::cli {

// Reads files.input, rewrites it as `options` say, and writes all of `files` or, where anything
// fails, none of them. `options.outputs` is set from `files`. `plans`, unless it is null, are
// applied. `profiles`, unless it is null, has profiles of runs. kFitUnknown: a plan was made for a
// budget, and it is not known whether the step fits.
absl::StatusOr<ExitCode> RunOnGraph(const GraphFiles& files, v1::RewriteOptions options,
                                    const ConnectionFlags& connection, const Session& session,
                                    const SavedPlans* plans = nullptr,
                                    const StoredProfiles* profiles = nullptr);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_COMMANDS_GRAPH_RUN_H_
