// Internal. The metadata that a call sends besides gRPC's own: request id, traceparent, token, and
// the caller's additions.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_CALL_HEADERS_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_CALL_HEADERS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "spillway/remote_connection.h"

namespace spillway::internal {

// Names and values, the same for every attempt of a call.
using CallHeaders = std::vector<std::pair<std::string, std::string>>;

// Returns the headers of `call`. `job_names`: the names of this process's job (job_names.h), for
// those that the call's own metadata do not set. If the call sets one of these twice, only the
// first is sent; other metadata may repeat.
//
// Reads the token file, if given and the call has no token of its own. Errors are INVALID_ARGUMENT
// (BAD_OPTION): a value that cannot be sent; an unreadable token file; a token for one of
// `addresses` that others could read in transit.
absl::StatusOr<CallHeaders> MakeCallHeaders(const RemoteOptions& options,
                                            const std::vector<std::string>& addresses,
                                            const CallOptions& call,
                                            const CallHeaders& job_names = {});

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_CALL_HEADERS_H_
