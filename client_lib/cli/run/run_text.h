// The line that describes the rewrite of `spillway run` and its cost to the job.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_CLIENT_LIB_CLI_RUN_TEXT_H_
#define SPILLWAY_CLIENT_LIB_CLI_RUN_TEXT_H_

#include <string>

#include "client_lib/cli/run/run_prepare.h"

namespace spillway::cli {

// `fits with 14 swaps, 3.10 GiB, 5 % slower, host memory 3.20 GiB`; of a graph that is
// returned unchanged `fits, 8.10 GiB of 14.40 GiB`. A fit that was not computed is reported as
// unknown, never as fitting. The bytes are those that a step copies to the host.
std::string CostText(const v1::RewriteReport& report);

// Returns the line. `graph`: the input file.
std::string RunText(const std::string& graph, const PreparedGraph& prepared);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_RUN_TEXT_H_
