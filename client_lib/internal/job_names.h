// Internal. How the job that a call is for is named to a server: as metadata that go to its log and
// its journal, and decide nothing (rewrite_core/base/request_names.h).
//
// Thread safety: pure functions; the environment is read as getenv reads it.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_JOB_NAMES_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_JOB_NAMES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace spillway::internal {

// One of them: its metadata key, and the variable that stands for it.
struct JobName {
  const char* key;
  const char* variable;
};

// SPILLWAY_JOB, SPILLWAY_USER, SPILLWAY_QUEUE, SPILLWAY_MODEL.
absl::Span<const JobName> JobNames();

// `text` in the form that is sent: a `_` for each byte that is not allowed, cut to its first
// kMaxRequestNameBytes. An environment is no reason not to ask a server.
std::string AsJobName(absl::string_view text);

// Keys and values, of the variables that are set and not empty.
std::vector<std::pair<std::string, std::string>> JobNamesFromEnvironment();

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_JOB_NAMES_H_
