// Internal. The calls Inspect, Simulate, Explore and Diff.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_GRAPH_QUESTIONS_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_GRAPH_QUESTIONS_H_

#include <cstdint>
#include <set>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client_lib/internal/chunked_call.h"
#include "spillway/connection.h"
#include "spillway/v1/rewrite_service.grpc.pb.h"

namespace spillway::internal {

// Each sends its graphs in chunks (CallInChunks). An answer whose required part is missing or
// duplicated is INTERNAL (BAD_STREAM).

// The items that a call has already passed to its callback, over all attempts, so that none is
// delivered twice.
struct Delivered {
  int64_t tensors = 0;
  std::set<int64_t> sizes;
};

absl::StatusOr<v1::GraphSummary> Inspect(v1::RewriteService::StubInterface* stub,
                                         absl::string_view graph_def,
                                         const v1::InspectOptions& options,
                                         const TensorsCallback& on_tensors, const Attempt& attempt,
                                         Delivered* delivered);

absl::StatusOr<v1::SimulateReport> Simulate(v1::RewriteService::StubInterface* stub,
                                            absl::string_view graph_def,
                                            const v1::SimulateOptions& options,
                                            const Attempt& attempt);

absl::StatusOr<v1::ExploreReport> Explore(v1::RewriteService::StubInterface* stub,
                                          absl::string_view graph_def,
                                          const v1::ExploreOptions& options,
                                          const SizeCallback& on_size, const Attempt& attempt,
                                          Delivered* delivered);

absl::StatusOr<v1::GraphDiff> Diff(v1::RewriteService::StubInterface* stub,
                                   absl::string_view graph_a, absl::string_view graph_b,
                                   const Attempt& attempt);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_GRAPH_QUESTIONS_H_
