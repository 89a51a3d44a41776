// Profiles that `check --save-profile` keeps beside a graph, and what uses them later: a file
// spillway-profile-HASH.pb (StoredProfile in check.proto), HASH of the graph before any rewrite.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_STORED_PROFILE_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_STORED_PROFILE_H_

#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spillway/cancellation.h"
#include "spillway/v1/step.pb.h"

namespace spillway::cli {

// Writes `profile`, a serialized RunMetadata or StepStats of a step that fed what `step` says, into
// the folder of the graph file `beside`, for the graph `graph_def`. Returns the file's path.
// Errors: FileErrors; RESOURCE_EXHAUSTED (LIMIT_EXCEEDED) above 2 GiB.
absl::StatusOr<std::string> StoreProfile(const std::string& beside, absl::string_view graph_def,
                                         const v1::Step& step, absl::string_view profile,
                                         const CancellationToken& token);

// The profiles in the folder of one graph file. A value.
class StoredProfiles {
 public:
  // None.
  StoredProfiles() = default;

  // Those beside the file `input`; none beside standard input (`-`). The folder is looked through
  // once, and no file is opened.
  static StoredProfiles Beside(const std::string& input);

  // Puts the profile of `graph_def` into `step`, unless it has one or there is none for this graph
  // and what the step feeds. Returns a line for the user; empty: there is none. A file that cannot
  // be read or is damaged is told of in the line, and left alone.
  std::string AddTo(absl::string_view graph_def, v1::Step* step) const;

  // What is in the files, for a key that changes when they do; empty if there are none.
  std::string Contents() const;

 private:
  std::string folder_;
  std::vector<std::string> names_;  // In order.
};

// Adds --no-stored-profile to `command`, which sets `*without`.
void AddStoredProfileFlag(CLI::App* command, bool* without);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_STORED_PROFILE_H_
