// Internal. A hash that identifies a graph, regardless of file name and serialized order of its
// maps.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_GRAPH_IDENTITY_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_GRAPH_IDENTITY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace spillway::internal {

// Returns the SHA-256 of the graph's canonical form as 64 hexadecimal digits, as in
// Plan.graph_sha256.
// Errors: LIMIT_EXCEEDED from 2 GiB on; INTERNAL if OpenSSL fails. Thread-safe.
absl::StatusOr<std::string> GraphSha256(absl::string_view graph_def);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_GRAPH_IDENTITY_H_
