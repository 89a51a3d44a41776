// The graph that `spillway run` gives to its command: from the cache, or rewritten and stored
// there.
#ifndef SPILLWAY_CLIENT_LIB_CLI_RUN_PREPARE_H_
#define SPILLWAY_CLIENT_LIB_CLI_RUN_PREPARE_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "client_lib/cli/run/run_child.h"
#include "client_lib/format/graph_format.h"
#include "spillway/client.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/report.pb.h"

namespace spillway::cli {

// The graph to prepare, and how.
struct PrepareRequest {
  std::string input;                           // Path of the graph.
  absl::optional<format::GraphFormat> format;  // Of the input; absent: recognised.
  std::string cache_dir;                       // Empty: a default (run_cache.h).
  // The path for a copy of the report, as JSON; empty: none. Must not be the graph's path.
  std::string report;
  std::string server;  // The server of the client; empty: none.
  // The connection settings: runs that agree in these and in the request fail for the same reasons.
  std::string connection;
  // Identifies the caller to the server. Affects neither the result nor any key.
  CallOptions call;
  v1::RewriteOptions options;
  // Whether to use the profiles of runs that are stored beside the graph.
  bool stored_profiles = true;
  // Called in the child: a connection has threads, which this process must not have.
  std::function<Client()> connect;
};

struct PreparedGraph {
  // Absolute. Empty: the input itself, which the rewrite left unchanged.
  std::string graph_path;
  std::string report_path;  // JSON; absolute.
  bool cached = false;      // From the cache: nothing was rewritten.
  std::string warning;      // Of the machine's memory, or empty.
  // Without its lists of tensors. For several graphs, counts are summed, and forecasts, fits and
  // hardware are those of the worst one.
  v1::RewriteReport report;
};

// Returns the error for `path`, the value of `flag`, being the same file as that of `other_flag`.
absl::Status OverwritesError(absl::string_view flag, const std::string& path,
                             absl::string_view other_flag);

// Prepares the graph in a child process, until `deadline`. Of several concurrent identical
// requests, one rewrites, and the others wait for it and take its result or its failure: the
// timeout of an unreachable server passes once, not once for each. Errors: those of
// Client::Rewrite, of reading and writing files, and of RunInChild.
absl::StatusOr<PreparedGraph> PrepareGraph(const PrepareRequest& request,
                                           const internal::Deadline& deadline);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_RUN_PREPARE_H_
