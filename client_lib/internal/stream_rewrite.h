// Internal. One call of StreamRewrite.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_STREAM_REWRITE_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_STREAM_REWRITE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client_lib/internal/progress_reporter.h"
#include "client_lib/internal/remote_call.h"
#include "spillway/remote_connection.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/rewrite_service.grpc.pb.h"

namespace spillway::internal {

// Sends `graph_def` in chunks and collects the answer. Writes on a thread of its own while this one
// reads, as the protocol demands. Holds one chunk of the graph besides the caller's bytes, and the
// answer once; twice while it grows, if it is more than twice as large as the graph: no memory is
// set aside on the server's word alone. `progress` is told of every chunk, from both threads.
//
// An answer of another size or digest than it announces is INTERNAL (BAD_STREAM). Too little
// memory, or no thread, is RESOURCE_EXHAUSTED.
absl::StatusOr<v1::RewriteResponse> StreamRewrite(v1::RewriteService::StubInterface* stub,
                                                  absl::string_view graph_def,
                                                  const v1::RewriteOptions& options,
                                                  const RemoteOptions& remote,
                                                  const CallLimits& limits,
                                                  ProgressReporter* progress, Pushback* pushback);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_STREAM_REWRITE_H_
