// The common part of `rewrite`, `apply` and `strip`: reads a graph, rewrites it, and writes the
// requested outputs.
#ifndef SPILLWAY_CLIENT_LIB_CLI_COMMANDS_GRAPH_RUN_H_
#define SPILLWAY_CLIENT_LIB_CLI_COMMANDS_GRAPH_RUN_H_

#include "absl/status/statusor.h"
#include "client_lib/cli/base/session.h"
#include "client_lib/cli/flags/connection_flags.h"
#include "client_lib/cli/flags/file_flags.h"
#include "client_lib/cli/rewrite/saved_plans.h"
#include "client_lib/cli/rewrite/stored_profile.h"
#include "spillway/v1/options.pb.h"

namespace spillway::cli {

// Reads files.input, rewrites it as `options` specify, and writes all of `files`, or none if
// anything fails. Sets `options.outputs` from `files`. Applies `plans`, if not null. `profiles`, if
// not null, provides profiles of runs. Returns kFitUnknown if a plan was made for a budget and it
// is unknown whether the step fits. `keep_best`: see CallOptions; returns kStoppedEarly if a search
// was ended. A dry run writes no graph.
absl::StatusOr<ExitCode> RunOnGraph(GraphFiles files, v1::RewriteOptions options,
                                    const ConnectionFlags& connection, const Session& session,
                                    const SavedPlans* plans = nullptr,
                                    const StoredProfiles* profiles = nullptr,
                                    bool keep_best = false);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_COMMANDS_GRAPH_RUN_H_
