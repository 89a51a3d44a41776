// Names what a plan depends on: a graph, whatever bytes it was serialized to, and options.
#ifndef SPILLWAY_SERVER_PLAN_KEY_H_
#define SPILLWAY_SERVER_PLAN_KEY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"

namespace spillway::server {

// 16 bytes that stand for the graph's canonical form (graph/canonical_form.h) and the options'
// bytes, in this process: GMAC (NIST SP 800-38D) with a random key that nobody knows, so that
// nobody can make two graphs with one plan key, at ten times the speed of SHA-256. It must not
// leave the process. Errors: those of `stop`; INTERNAL if OpenSSL fails. Thread-safe.
absl::StatusOr<std::string> PlanKey(absl::string_view graph, absl::string_view options,
                                    const core::StopToken& stop);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_PLAN_KEY_H_
