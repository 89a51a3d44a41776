// Internal. The call StreamRewrite.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_STREAM_REWRITE_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_STREAM_REWRITE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client_lib/internal/chunked_call.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/rewrite_service.grpc.pb.h"

namespace spillway::internal {

// Sends `graph_def` in chunks and collects the answer. Besides the memory of CallInChunks, holds
// the answer once, or twice while it grows if it is more than twice as large as the graph: the
// announced size alone reserves no memory. Both threads report every chunk to attempt.progress.
//
// An answer that differs from its announced size or digest is INTERNAL (BAD_STREAM).
absl::StatusOr<v1::RewriteResponse> StreamRewrite(v1::RewriteService::StubInterface* stub,
                                                  absl::string_view graph_def,
                                                  const v1::RewriteOptions& options,
                                                  const Attempt& attempt);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_STREAM_REWRITE_H_
