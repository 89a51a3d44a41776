// The line that describes the rewrite of `spillway run` and its cost to the job.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_CLIENT_LIB_CLI_RUN_TEXT_H_
#define SPILLWAY_CLIENT_LIB_CLI_RUN_TEXT_H_

#include <string>

#include "client_lib/cli/run/run_prepare.h"

namespace spillway::cli {

// Returns the line. `graph`: the input file.
std::string RunText(const std::string& graph, const PreparedGraph& prepared);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_RUN_TEXT_H_
