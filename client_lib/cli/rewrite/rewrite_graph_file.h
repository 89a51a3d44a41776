// Rewrites the graphs of a file of any format: shared by `rewrite`, `apply`, `strip` and every
// other caller that has a file's bytes and a client.
#ifndef SPILLWAY_CLIENT_LIB_CLI_REWRITE_REWRITE_GRAPH_FILE_H_
#define SPILLWAY_CLIENT_LIB_CLI_REWRITE_REWRITE_GRAPH_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "client_lib/cli/rewrite/saved_plans.h"
#include "client_lib/cli/rewrite/stored_profile.h"
#include "client_lib/format/graph_file.h"
#include "spillway/client.h"

namespace spillway::cli {

// The result for one graph of a file.
struct RewrittenGraph {
  std::string name;  // GraphFile::NameOf: empty unless the file is a SavedModel.
  std::vector<std::string> tags;
  // The response without its graph, which is in the file. Empty if `kept_because` is not OK.
  v1::RewriteResponse response;
  // Why this MetaGraph of a SavedModel was kept unchanged, while another could be rewritten: it has
  // no backward part, nothing that the options name, or does not match the plan to apply. OK: it
  // was rewritten (or the report says why not).
  absl::Status kept_because;
  // A note about a stored profile, or empty.
  std::string profile_note;
};

struct RewrittenFile {
  std::string bytes;  // The whole file, in its original format. Empty without OUTPUT_GRAPH.
  format::GraphFormat format;
  std::vector<RewrittenGraph> graphs;  // In file order.

  // The reports as JSON: a RewriteReport; for a SavedModel {"meta_graphs": [...]}, one entry per
  // MetaGraph with index, tags and either `report` or `kept_because` (reason, message).
  std::string ReportJson() const;
  // The patches, in the same form.
  std::string PatchJson() const;
  // The plans, in the same form, without the MetaGraphs that have none. INVALID_ARGUMENT
  // (CONFLICTING_OPTIONS) if there is no plan at all because the graph was kept.
  absl::StatusOr<std::string> PlanJson() const;
};

// Rewrites every graph of the file with content `bytes` as `options` specify. Empty
// `options.outputs` stand for graph and report. `call.timeout` covers all graphs together. `plans`,
// if not null, are applied to their graphs. `profiles`, if not null, provides profiles of runs.
// Errors are those of GraphFile::Read and of Client::Rewrite, prefixed with the name of the
// MetaGraph; if no graph can be rewritten, that of the first. The result is all or nothing.
absl::StatusOr<RewrittenFile> RewriteGraphFile(std::string bytes,
                                               absl::optional<format::GraphFormat> format,
                                               const v1::RewriteOptions& options,
                                               const Client& client, const CallOptions& call,
                                               const SavedPlans* plans = nullptr,
                                               const StoredProfiles* profiles = nullptr);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_REWRITE_REWRITE_GRAPH_FILE_H_
