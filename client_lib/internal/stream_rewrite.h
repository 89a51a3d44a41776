// Internal. One call of StreamRewrite.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_STREAM_REWRITE_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_STREAM_REWRITE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client_lib/internal/chunked_call.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/rewrite_service.grpc.pb.h"

namespace spillway::internal {

// Sends `graph_def` in chunks and collects the answer. Holds the answer once besides what
// CallInChunks has; twice while it grows, if it is more than twice as large as the graph: no memory
// is set aside on the server's word alone. attempt.progress is told of every chunk, from both
// threads.
//
// An answer of another size or digest than it announces is INTERNAL (BAD_STREAM).
absl::StatusOr<v1::RewriteResponse> StreamRewrite(v1::RewriteService::StubInterface* stub,
                                                  absl::string_view graph_def,
                                                  const v1::RewriteOptions& options,
                                                  const Attempt& attempt);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_STREAM_REWRITE_H_
