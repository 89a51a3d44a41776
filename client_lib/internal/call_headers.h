// Internal. The metadata that a call sends besides gRPC's own: request id, traceparent, token, and
// what the caller adds.
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

// `job_names`: what this process says of its job (job_names.h), where the call's own metadata do
// not say it. One that the call gives twice is sent once, as it came first.
//
// Reads the file of the token, if there is one and the call has no token of its own. Errors are
// INVALID_ARGUMENT (BAD_OPTION): a value that cannot be sent; a token file that cannot be read; a
// token for one of `addresses` that others could read on its way there.
absl::StatusOr<CallHeaders> MakeCallHeaders(const RemoteOptions& options,
                                            const std::vector<std::string>& addresses,
                                            const CallOptions& call,
                                            const CallHeaders& job_names = {});

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_CALL_HEADERS_H_
