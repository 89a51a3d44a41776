// Internal. Names the job of a call to a server: metadata that appear in its log and journal and
// have no other effect (rewrite_core/base/request_names.h).
//
// Thread safety: pure functions; the environment is read with getenv.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_JOB_NAMES_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_JOB_NAMES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace spillway::internal {

// A metadata key and the environment variable that sets it.
struct JobName {
  const char* key;
  const char* variable;
};

// SPILLWAY_JOB, SPILLWAY_USER, SPILLWAY_QUEUE, SPILLWAY_MODEL.
absl::Span<const JobName> JobNames();

// Returns `text` as it is sent: `_` in place of each disallowed byte, truncated to
// kMaxRequestNameBytes. An odd environment must not make a call fail.
std::string AsJobName(absl::string_view text);

// Returns the keys and values of the variables that are set and not empty.
std::vector<std::pair<std::string, std::string>> JobNamesFromEnvironment();

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_JOB_NAMES_H_
