#include "client_lib/internal/graph_identity.h"

#include <limits>

#include "rewrite_core/base/error.h"
#include "rewrite_core/graph/canonical_form.h"

namespace spillway::internal {

absl::StatusOr<std::string> GraphSha256(absl::string_view graph_def) {
  if (graph_def.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return core::Error(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_LIMIT_EXCEEDED,
                       "the graph has 2 GiB or more, and protobuf reads no more");
  }
  return core::CanonicalSha256(graph_def, core::StopToken());
}

}  // namespace spillway::internal
