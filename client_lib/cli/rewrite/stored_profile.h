// Profiles that `check --save-profile` stores beside a graph, for later commands: a file
// spillway-profile-HASH.pb (StoredProfile in check.proto), HASH of the graph before any rewrite.
#ifndef SPILLWAY_CLIENT_LIB_CLI_REWRITE_STORED_PROFILE_H_
#define SPILLWAY_CLIENT_LIB_CLI_REWRITE_STORED_PROFILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client_lib/cli/files/input_file.h"
#include "spillway/cancellation.h"
#include "spillway/v1/step.pb.h"

namespace spillway::cli {

// Writes `profile`, a serialized RunMetadata or StepStats of a step with the feeds of `step`, into
// the folder of the graph file `beside`, for the graph `graph_def`. Returns the file's path.
// Errors: FileErrors. REQUIRES: `profile` was read as one (input_file.h), so that it has a limit.
absl::StatusOr<std::string> StoreProfile(const InputPath& beside, absl::string_view graph_def,
                                         const v1::Step& step, absl::string_view profile,
                                         const CancellationToken& token);

// The profiles in the folder of one graph file. A value.
class StoredProfiles {
 public:
  // None.
  StoredProfiles() = default;

  // Finds those beside the graph `input`; none beside standard input. Lists the folder once and
  // opens no file.
  static StoredProfiles Beside(const InputPath& input);

  // Puts the profile of `graph_def` into `step`, unless it has one or none exists for this graph
  // and the feeds of the step. Returns a line for the user, or empty. An unreadable or damaged file
  // is reported in the line and otherwise ignored.
  std::string AddTo(absl::string_view graph_def, v1::Step* step) const;

  // Returns the content of the files, for a key that changes with them; empty without files.
  std::string Contents() const;

 private:
  std::string folder_;
  std::vector<std::string> names_;  // In order.
};

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_REWRITE_STORED_PROFILE_H_
