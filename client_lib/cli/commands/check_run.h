// Compares what is simulated of a graph's step with what a traced step of it did.
#ifndef SPILLWAY_CLIENT_LIB_CLI_COMMANDS_CHECK_RUN_H_
#define SPILLWAY_CLIENT_LIB_CLI_COMMANDS_CHECK_RUN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spillway/client.h"
#include "spillway/v1/check.pb.h"
#include "spillway/v1/step.pb.h"

namespace spillway::cli {

struct CheckedRun {
  v1::RunCheck check;
  // The graph as it was before Spillway rewrote it; as it ran, if it was not.
  std::string original;
};

// `graph_def` is the graph that ran, `run_metadata` the trace of one step of it. What it swaps is
// what its own record says, or, where `original` is not empty, what differs from that graph,
// whoever rewrote it. `options` has a step
// without a profile, and no_budget. `call.timeout`
// holds for all that is asked of `client`.
//
// Errors: BAD_OPTION if `run_metadata` is no trace or of another graph; those of Client::Strip,
// Diff and Simulate.
absl::StatusOr<CheckedRun> CheckRun(const Client& client, absl::string_view graph_def,
                                    absl::string_view original, v1::SimulateOptions options,
                                    absl::string_view run_metadata, const CallOptions& call);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_COMMANDS_CHECK_RUN_H_
