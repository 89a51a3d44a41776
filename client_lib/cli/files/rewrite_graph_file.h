// Rewriting what is in a file, whatever its format: the one path of `rewrite`, `apply`, `strip` and
// whoever else has a file's bytes and a client.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FILES_REWRITE_GRAPH_FILE_H_
#define SPILLWAY_CLIENT_LIB_CLI_FILES_REWRITE_GRAPH_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "client_lib/cli/files/saved_plans.h"
#include "client_lib/cli/flags/stored_profile.h"
#include "client_lib/format/graph_file.h"
#include "spillway/client.h"

namespace spillway::cli {

// What became of one graph of a file.
struct RewrittenGraph {
  std::string name;  // GraphFile::NameOf: empty unless the file is a SavedModel.
  std::vector<std::string> tags;
  // The answer, less its graph, which is in the file. Empty if `kept_because` is not OK.
  v1::RewriteResponse response;
  // Why this MetaGraph of a SavedModel stays as it is, while another could be rewritten: it has no
  // backward part, nothing that the options name, or another plan than the one to apply. OK: it was
  // rewritten (or the report says why not).
  absl::Status kept_because;
  // What there is to tell of a stored profile; empty: nothing.
  std::string profile_note;
};

struct RewrittenFile {
  std::string bytes;  // Whole, in the format it came in. Empty unless OUTPUT_GRAPH was asked for.
  format::GraphFormat format;
  std::vector<RewrittenGraph> graphs;  // In file order.

  // The reports as JSON: a RewriteReport; for a SavedModel {"meta_graphs": [...]}, one entry per
  // MetaGraph with index, tags and either `report` or `kept_because` (reason, message).
  std::string ReportJson() const;
  // The patches, in the same way.
  std::string PatchJson() const;
  // The plans, in the same way, but for MetaGraphs without one. INVALID_ARGUMENT
  // (CONFLICTING_OPTIONS) if there is none at all, since the graph was kept.
  absl::StatusOr<std::string> PlanJson() const;
};

// Rewrites every graph of the file with content `bytes` as `options` say. Empty `options.outputs`
// stand for graph and report. `call.timeout` holds for all graphs together. `plans`, unless it is
// null, are applied to their graphs. `profiles`, unless it is null, has profiles of runs for them.
// Errors are those of GraphFile::Read and of Client::Rewrite, with the name of the MetaGraph in
// front; if no graph can be rewritten, that of the first. The result is all or nothing.
absl::StatusOr<RewrittenFile> RewriteGraphFile(std::string bytes,
                                               absl::optional<format::GraphFormat> format,
                                               const v1::RewriteOptions& options,
                                               const Client& client, const CallOptions& call,
                                               const SavedPlans* plans = nullptr,
                                               const StoredProfiles* profiles = nullptr);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FILES_REWRITE_GRAPH_FILE_H_
