// What `rewrite` and `strip` share: read a graph, have it rewritten, write what was asked for.
#ifndef SPILLWAY_CLIENT_LIB_CLI_GRAPH_RUN_H_
#define SPILLWAY_CLIENT_LIB_CLI_GRAPH_RUN_H_

#include <string>

#include "absl/status/statusor.h"
#include "client_lib/cli/connection_flags.h"
#include "client_lib/cli/session.h"
#include "spillway/v1/options.pb.h"

namespace spillway::cli {

// Paths; "-" is standard input or output, empty means not asked for.
struct GraphFiles {
  std::string input;
  std::string output;  // The graph.
  std::string report;  // JSON.
  std::string patch;   // JSON.
  bool quiet = false;  // No summary on standard error.
};

// OK unless two of `files` cannot go together: an output over the input, two outputs in one place,
// or no output at all (CONFLICTING_OPTIONS).
absl::Status CheckFiles(const GraphFiles& files);

// Reads files.input, rewrites it as `options` say, and writes all of `files` or, where anything
// fails, none of them. `options.outputs` is set from `files`.
absl::StatusOr<ExitCode> RunOnGraph(const GraphFiles& files, v1::RewriteOptions options,
                                    const ConnectionFlags& connection, const Session& session);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_GRAPH_RUN_H_
