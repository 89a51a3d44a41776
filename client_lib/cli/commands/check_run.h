// Compares the simulated step of a graph with a traced one.
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
  // The graph before Spillway rewrote it; as it ran, if it was not rewritten.
  std::string original;
};

// `graph_def` is the graph that ran, `run_metadata` the trace of one step of it. Its swaps are read
// from its own records, or if `original` is not empty, from the difference to that graph, whichever
// program rewrote it. `step` has no profile; `no_budget` as in SimulateOptions. `call.timeout`
// covers all calls of `client`.
//
// Errors: BAD_OPTION if `run_metadata` is not a trace or of another graph; those of Client::Strip,
// Diff and Simulate.
absl::StatusOr<CheckedRun> CheckRun(const Client& client, absl::string_view graph_def,
                                    absl::string_view original, const v1::Step& step,
                                    bool no_budget, absl::string_view run_metadata,
                                    const CallOptions& call);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_COMMANDS_CHECK_RUN_H_
