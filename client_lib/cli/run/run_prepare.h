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

// What to prepare.
struct PrepareRequest {
  std::string input;                           // Path of the graph.
  absl::optional<format::GraphFormat> format;  // Of the input; none: recognised.
  std::string cache_dir;                       // Empty: a default (run_cache.h).
  // Where a copy of the report goes, as JSON; empty: nowhere. The graph itself is refused.
  std::string report;
  std::string server;  // Which one the client asks; empty: none.
  // How it is asked: runs that give the same here and want the same fail for the same reasons.
  std::string connection;
  // What the server is told of who asks. It plays no part in what is done, and in none of the keys.
  CallOptions call;
  v1::RewriteOptions options;
  // Whether profiles of runs that are stored beside the graph are used.
  bool stored_profiles = true;
  // Called in the child: a connection has threads, and this process may not.
  std::function<Client()> connect;
};

struct PreparedGraph {
  // Absolute. Empty: the input itself, since the rewrite left it as it was.
  std::string graph_path;
  std::string report_path;  // JSON; absolute.
  bool cached = false;      // It was there already: nothing was rewritten.
  // Without its lists of tensors. Of several graphs counts are their sum, and forecasts, fits and
  // hardware those of the one that is worst off.
  v1::RewriteReport report;
};

// That `path`, the value of `flag`, is the file of `other_flag`.
absl::Status OverwritesError(absl::string_view flag, const std::string& path,
                             absl::string_view other_flag);

// Prepares the graph in a child process, until `deadline`. One of several that want the same at
// once rewrites, the others wait for it and take what it stored, or its failure: a server that is
// away is waited for once, not once by each. Errors: those of Client::Rewrite,
// of reading and writing files, and of RunInChild.
absl::StatusOr<PreparedGraph> PrepareGraph(const PrepareRequest& request,
                                           const internal::Deadline& deadline);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_RUN_PREPARE_H_
