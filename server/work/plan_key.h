// A key for the input of a plan: a graph, regardless of its encoding, and options.
#ifndef SPILLWAY_SERVER_WORK_PLAN_KEY_H_
#define SPILLWAY_SERVER_WORK_PLAN_KEY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"

namespace spillway::server {

// Returns 16 bytes that identify the graph's canonical form (graph/canonical_form.h) and the
// options' bytes within this process: a GMAC (NIST SP 800-38D) with a random secret key, so that no
// one can construct two graphs with the same plan key, at ten times the speed of SHA-256. The plan
// key must not leave the process. Errors: those of `stop`; INTERNAL if OpenSSL fails. Thread-safe.
absl::StatusOr<std::string> PlanKey(absl::string_view graph, absl::string_view options,
                                    const core::StopToken& stop);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_WORK_PLAN_KEY_H_
