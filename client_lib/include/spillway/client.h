// The C++ client of Spillway: rewrites TensorFlow graphs so that tensors wait in host memory, and
// reports a graph's contents, whether a step of it fits a GPU, and how large it may be.
//
//   #include "spillway/client.h"
//   #include "spillway/local_connection.h"
//
//   spillway::Client client(spillway::MakeLocalConnection());
//   spillway::v1::RewriteOptions options;  // The default strategy with its defaults.
//   absl::StatusOr<spillway::v1::RewriteResponse> response = client.Rewrite(graph_bytes, options);
//   if (!response.ok()) {
//     // E.g. INVALID_ARGUMENT with reason MALFORMED_GRAPH: the bytes are not a graph.
//     std::cerr << response.status().message();
//     if (spillway::ErrorReasonOf(response.status()) == spillway::v1::ERROR_REASON_DOES_NOT_FIT)
//     ...
//   }
//
// With spillway::MakeRemoteConnection({"host:port"}) the same calls go to a server and return the
// same results and errors.
#ifndef SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_CLIENT_H_
#define SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_CLIENT_H_

#include <functional>
#include <future>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spillway/connection.h"
#include "spillway/export.h"
#include "spillway/v1/diff.pb.h"
#include "spillway/v1/error.pb.h"
#include "spillway/v1/inspect.pb.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/plan.pb.h"
#include "spillway/v1/rewrite_service.pb.h"
#include "spillway/v1/simulate.pb.h"

namespace spillway {

// Thread-safe and cheap to copy: copies share the connection.
class SPILLWAY_EXPORT Client {
 public:
  // REQUIRES: `connection` is not null.
  explicit Client(std::shared_ptr<Connection> connection);

  // Rewrites `graph_def`, a serialized tensorflow.GraphDef of at most 2 GiB, as `options` specify.
  // Blocks until done. `graph_def` is not modified and may be destroyed when the call returns. The
  // client does not validate it: the core does, in this process or in the server.
  //
  // Errors, with the code and the reason from the core (v1::ErrorReason, see ErrorInfoOf):
  //   INVALID_ARGUMENT, FAILED_PRECONDITION, OUT_OF_RANGE   the graph or an option is invalid, or
  //                        (DOES_NOT_FIT) no plan fits the GPU.
  //   RESOURCE_EXHAUSTED   above a limit, or (OVERLOADED) the server is full: try later.
  //   CANCELLED, DEADLINE_EXCEEDED (STOPPED)   as requested by `call`. There is no partial result.
  //   UNAVAILABLE          remote: the server cannot be reached or is stopping. Try again.
  //   INTERNAL             a bug in Spillway, or (BAD_STREAM) an answer damaged in transit.
  absl::StatusOr<v1::RewriteResponse> Rewrite(absl::string_view graph_def,
                                              const v1::RewriteOptions& options,
                                              const CallOptions& call = CallOptions()) const;

  // Does the same on a new thread. The future receives the result; `done`, if set, is called with
  // it on that thread just before. Takes ownership of graph and options; the Client may be
  // destroyed meanwhile.
  //
  // As with std::async, the destructor of the future waits for the call: keep the future, and
  // cancel `call.cancellation` to finish early. Each call has its own thread, so keep at most a few
  // dozen in flight. If no thread can be started, the result is RESOURCE_EXHAUSTED immediately, and
  // `done` runs on the caller's thread. If memory runs out during the call, the result is
  // RESOURCE_EXHAUSTED, too. `done` always runs.
  std::future<absl::StatusOr<v1::RewriteResponse>> RewriteAsync(
      std::string graph_def, v1::RewriteOptions options, CallOptions call = CallOptions(),
      std::function<void(const absl::StatusOr<v1::RewriteResponse>&)> done = nullptr) const;

  // Removes Spillway's edits from `graph_def` and returns the original, byte for byte.
  // FAILED_PRECONDITION if another program rewrote it. Otherwise like Rewrite.
  absl::StatusOr<v1::RewriteResponse> Strip(absl::string_view graph_def,
                                            const CallOptions& call = CallOptions()) const;

  // Applies `plan`, returned by an earlier rewrite of `graph_def` (v1::OUTPUT_PLAN), instead of
  // planning: the result is the same graph, byte for byte. INVALID_ARGUMENT (OTHER_GRAPH) if the
  // plan is for another graph, (BAD_PLAN) if it breaks the rules for plans. Otherwise like Rewrite;
  // to set options besides the plan, call Rewrite with RewriteOptions.apply.
  absl::StatusOr<v1::RewriteResponse> Apply(absl::string_view graph_def, const v1::Plan& plan,
                                            const CallOptions& call = CallOptions()) const;

  // Reports `graph_def`'s contents. options.tensors has no effect: see InspectTensors. The errors
  // of this and the next four calls are those of Rewrite; to a server, graphs of any size always go
  // in a stream.
  absl::StatusOr<v1::GraphSummary> Inspect(absl::string_view graph_def,
                                           const v1::InspectOptions& options,
                                           const CallOptions& call = CallOptions()) const;

  // Does the same and also reports every tensor of the graph with its type, shape and size, as far
  // as they are known. Tensors arrive in pieces, since there may be millions:
  //   client.InspectTensors(graph, options, [](const spillway::v1::TensorList& piece) {
  //     for (const auto& tensor : piece.tensors()) std::cout << tensor.tensor() << tensor.shape();
  //   });
  absl::StatusOr<v1::GraphSummary> InspectTensors(absl::string_view graph_def,
                                                  const v1::InspectOptions& options,
                                                  const TensorsCallback& on_tensors,
                                                  const CallOptions& call = CallOptions()) const;

  // Simulates a step of `graph_def` on a machine: memory, time, and whether it fits. A step that
  // does not fit is a result (SimulateReport.forecast.fit), not an error.
  absl::StatusOr<v1::SimulateReport> Simulate(absl::string_view graph_def,
                                              const v1::SimulateOptions& options,
                                              const CallOptions& call = CallOptions()) const;

  // Simulates `graph_def` at many batch or image sizes and searches for the largest that fits. Each
  // size takes as long as a Simulate and, with options.swapping, a Rewrite. `on_size`, if set, gets
  // each size as it is found; the report repeats all of them in ascending order.
  absl::StatusOr<v1::ExploreReport> Explore(absl::string_view graph_def,
                                            const v1::ExploreOptions& options,
                                            const SizeCallback& on_size = nullptr,
                                            const CallOptions& call = CallOptions()) const;

  // Reports how `graph_b` differs from `graph_a`: the changes of any program's rewrite.
  absl::StatusOr<v1::GraphDiff> Diff(absl::string_view graph_a, absl::string_view graph_b,
                                     const CallOptions& call = CallOptions()) const;

  // Returns the version, strategies and limits of the core or server behind the connection.
  absl::StatusOr<v1::GetCapabilitiesResponse> GetCapabilities(
      const CallOptions& call = CallOptions()) const;

  // Returns whether `service` is served; the empty name stands for the server as a whole. An
  // unknown service is not an error: the result is kServiceUnknown.
  absl::StatusOr<ServingStatus> CheckHealth(absl::string_view service = "",
                                            const CallOptions& call = CallOptions()) const;

 private:
  std::shared_ptr<Connection> connection_;
};

// Returns the reason that an error of these calls carries, with the names and numbers in its
// message; an empty info if it carries none (for example, an unreachable server).
SPILLWAY_EXPORT v1::ErrorInfo ErrorInfoOf(const absl::Status& status);

// Returns only the reason, for comparisons and switches: v1::ERROR_REASON_DOES_NOT_FIT.
// ERROR_REASON_UNSPECIFIED if the status carries none, or one that only a newer server knows.
SPILLWAY_EXPORT v1::ErrorReason ErrorReasonOf(const absl::Status& status);

}  // namespace spillway

#endif  // SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_CLIENT_H_
