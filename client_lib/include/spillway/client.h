// The C++ client of Spillway: rewrites TensorFlow graphs so that tensors wait in host memory, and
// tells what a graph is made of, whether a step of it fits a GPU, and how large it may be.
//
//   #include "spillway/client.h"
//   #include "spillway/local_connection.h"
//
//   spillway::Client client(spillway::MakeLocalConnection());
//   spillway::v1::RewriteOptions options;  // The default strategy with its defaults.
//   absl::StatusOr<spillway::v1::RewriteResponse> response = client.Rewrite(graph_bytes, options);
//   if (!response.ok()) {
//     // E.g. INVALID_ARGUMENT: a graph that is none, with reason MALFORMED_GRAPH.
//     std::cerr << response.status().message();
//     if (spillway::ErrorReasonOf(response.status()) == spillway::v1::ERROR_REASON_DOES_NOT_FIT)
//     ...
//   }
//
// With spillway::MakeRemoteConnection({"host:port"}) the same calls go to a server, and end in the
// same results and the same errors.
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

// Thread-safe; cheap to copy, copies share the connection.
class SPILLWAY_EXPORT Client {
 public:
  // REQUIRES: `connection` is not null.
  explicit Client(std::shared_ptr<Connection> connection);

  // Rewrites `graph_def`, a serialized tensorflow.GraphDef of at most 2 GiB, as `options` say.
  // Blocks until done. `graph_def` is read only and may go when the call returns. Nothing of it is
  // judged here: the core, here or in the server, is the only one that does.
  //
  // Errors, with the code and the reason of the core (v1::ErrorReason, see ErrorInfoOf):
  //   INVALID_ARGUMENT, FAILED_PRECONDITION, OUT_OF_RANGE   the graph or an option is wrong, or
  //                        (DOES_NOT_FIT) no plan fits the GPU.
  //   RESOURCE_EXHAUSTED   above a limit, or (OVERLOADED) the server is full: try later.
  //   CANCELLED, DEADLINE_EXCEEDED (STOPPED)   as `call` asked. There is no partial result.
  //   UNAVAILABLE          remote: the server cannot be reached or is stopping. Try again.
  //   INTERNAL             a bug of ours, or (BAD_STREAM) an answer that was damaged on the way.
  absl::StatusOr<v1::RewriteResponse> Rewrite(absl::string_view graph_def,
                                              const v1::RewriteOptions& options,
                                              const CallOptions& call = CallOptions()) const;

  // The same on a thread of its own. The future gets the result; `done`, if set, is called with it
  // on that thread, just before. Graph and options are taken over; the Client may go.
  //
  // As with std::async, the destructor of the future waits for the call: keep the future, and
  // cancel `call.cancellation` to be done soon. There is one thread for each call, so no more than
  // some tens should be in flight; where none can be started the result is RESOURCE_EXHAUSTED, at
  // once, on the caller's thread. So it is, on the call's, where memory ends. `done` always runs.
  std::future<absl::StatusOr<v1::RewriteResponse>> RewriteAsync(
      std::string graph_def, v1::RewriteOptions options, CallOptions call = CallOptions(),
      std::function<void(const absl::StatusOr<v1::RewriteResponse>&)> done = nullptr) const;

  // Takes the edits of Spillway out of `graph_def` again and gives the original back, byte for
  // byte. FAILED_PRECONDITION if another program rewrote it. Otherwise as Rewrite.
  absl::StatusOr<v1::RewriteResponse> Strip(absl::string_view graph_def,
                                            const CallOptions& call = CallOptions()) const;

  // Writes `plan`, which a rewrite of `graph_def` answered with (v1::OUTPUT_PLAN), instead of
  // making one: the same graph, byte for byte. INVALID_ARGUMENT (OTHER_GRAPH) if it is for another
  // graph, (BAD_PLAN) if it does what no plan may. Otherwise as Rewrite; for other options than the
  // plan call that with RewriteOptions.apply.
  absl::StatusOr<v1::RewriteResponse> Apply(absl::string_view graph_def, const v1::Plan& plan,
                                            const CallOptions& call = CallOptions()) const;

  // Tells what `graph_def` is made of. options.tensors has no effect: see InspectTensors. Errors of
  // this and the next four are those of Rewrite; remote, graphs go in a stream, whatever their
  // size.
  absl::StatusOr<v1::GraphSummary> Inspect(absl::string_view graph_def,
                                           const v1::InspectOptions& options,
                                           const CallOptions& call = CallOptions()) const;

  // The same, and every tensor of the graph with its type, shape and size as far as they are known,
  // in pieces, since they may be millions:
  //   client.InspectTensors(graph, options, [](const spillway::v1::TensorList& piece) {
  //     for (const auto& tensor : piece.tensors()) std::cout << tensor.tensor() << tensor.shape();
  //   });
  absl::StatusOr<v1::GraphSummary> InspectTensors(absl::string_view graph_def,
                                                  const v1::InspectOptions& options,
                                                  const TensorsCallback& on_tensors,
                                                  const CallOptions& call = CallOptions()) const;

  // Tells what a step of `graph_def` takes on a machine: memory, time, and whether it fits. That it
  // does not fit is an answer (SimulateReport.forecast.fit), not an error.
  absl::StatusOr<v1::SimulateReport> Simulate(absl::string_view graph_def,
                                              const v1::SimulateOptions& options,
                                              const CallOptions& call = CallOptions()) const;

  // Simulates `graph_def` at many sizes of batch or image, and looks for the largest that fits.
  // Takes as long as a Simulate, with options.swapping also a Rewrite, for each size: `on_size`, if
  // set, gets each as it is found. The report has all of them again, ascending.
  absl::StatusOr<v1::ExploreReport> Explore(absl::string_view graph_def,
                                            const v1::ExploreOptions& options,
                                            const SizeCallback& on_size = nullptr,
                                            const CallOptions& call = CallOptions()) const;

  // Tells what makes `graph_b` of `graph_a`: what a rewrite did, whoever made it.
  absl::StatusOr<v1::GraphDiff> Diff(absl::string_view graph_a, absl::string_view graph_b,
                                     const CallOptions& call = CallOptions()) const;

  // Tells version, strategies and limits of what is at the other end.
  absl::StatusOr<v1::GetCapabilitiesResponse> GetCapabilities(
      const CallOptions& call = CallOptions()) const;

  // Asks whether `service` is served; the empty name stands for the server as a whole. A service
  // that the server does not know is no error but kServiceUnknown.
  absl::StatusOr<ServingStatus> CheckHealth(absl::string_view service = "",
                                            const CallOptions& call = CallOptions()) const;

 private:
  std::shared_ptr<Connection> connection_;
};

// The reason that an error of these calls carries, and the names and numbers in its message; an
// empty info if it carries none (an unreachable server, for one).
SPILLWAY_EXPORT v1::ErrorInfo ErrorInfoOf(const absl::Status& status);

// The reason alone, to be compared and switched on: v1::ERROR_REASON_DOES_NOT_FIT.
// ERROR_REASON_UNSPECIFIED if it carries none, or one that a newer server has.
SPILLWAY_EXPORT v1::ErrorReason ErrorReasonOf(const absl::Status& status);

}  // namespace spillway

#endif  // SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_CLIENT_H_
