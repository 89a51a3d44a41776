// Where a Client's calls go: to the core in this process (local_connection.h), to a server
// (remote_connection.h), or to a mock in the tests of a program that uses this library.
#ifndef SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_CONNECTION_H_
#define SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_CONNECTION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "spillway/cancellation.h"
#include "spillway/export.h"
#include "spillway/v1/diff.pb.h"
#include "spillway/v1/inspect.pb.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/rewrite_service.pb.h"
#include "spillway/v1/simulate.pb.h"

namespace spillway {

// What a call is doing, in this order. A call that is tried again starts from the first.
enum class Stage {
  kSending,    // The graph goes to the server. Only where it goes as a stream.
  kRewriting,  // The core works, here or there. A graph that goes in one message starts here.
  kReceiving,  // The graph comes back from the server. Only where it comes as a stream.
};

// How far a call is. Bytes are those of the graph, or of both that a Diff compares; both are 0
// where there is nothing to count.
struct Progress {
  Stage stage = Stage::kRewriting;
  int64_t done_bytes = 0;
  int64_t total_bytes = 0;
};

// What holds for one call.
struct CallOptions {
  // The call ends with DEADLINE_EXCEEDED when it has taken this long. Default: no limit. Zero or
  // less: it ends before it starts.
  absl::Duration timeout = absl::InfiniteDuration();

  // Cancel it from another thread to end the call with CANCELLED. Every CallOptions starts with a
  // token of its own; copies of one CallOptions share it.
  CancellationToken cancellation = {};

  // Told of each stage of a call that brings a graph, and of each piece that was sent or received
  // (about RemoteOptions::chunk_bytes), if set. Called on the calling thread or on one of the
  // call's own, never twice at once, and not after the call has returned. It MUST be short, as the
  // call waits for it, and MUST NOT throw. It may cancel `cancellation`.
  std::function<void(const Progress&)> on_progress = nullptr;

  // In process alone, by the same rules: told of each plan that is simulated. 0: none fits so far.
  std::function<void(int64_t plans_tried, int64_t best_step_time_ns)> on_plan = nullptr;

  // What is sent with the call besides; empty: nothing. In process they have no effect. What does
  // not have its form is INVALID_ARGUMENT (BAD_OPTION), and nothing is sent.
  //
  // The name of the call in the server's log (`x-request-id`): 1 to 128 printable ASCII characters
  // without space, quote or backslash. Without one the server makes one.
  std::string request_id = {};
  // The span that the call belongs to, as W3C Trace Context has it; the server logs it, too.
  std::string traceparent = {};
  // Shown to the server (`authorization: Bearer TOKEN`) instead of that in
  // RemoteOptions::token_file: 1 to 4096 characters of RFC 6750.
  std::string token = {};
  // What else is to go with the call, for proxies and interceptors: names and values of gRPC
  // metadata, in this order. A name is of 1 to 64 small letters, digits, `-`, `_` and `.`; not one
  // of the three above, nor one that gRPC and HTTP keep for themselves (`grpc-...`, `te`, `host`,
  // `content-type`, `user-agent`, `...-bin`). A value is printable ASCII, at most 1024 characters;
  // at most 32 of them.
  //
  // `x-spillway-job`, `x-spillway-user`, `x-spillway-queue` and `x-spillway-model` say in the
  // server's log and journal whose call it is. Where they are not here, what SPILLWAY_JOB,
  // SPILLWAY_USER, SPILLWAY_QUEUE and SPILLWAY_MODEL hold when the connection is made is sent; what
  // has not the form of a request id is made so.
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

// The answer of a health check, as grpc.health.v1 has it.
enum class ServingStatus {
  kUnknown,
  kServing,
  kNotServing,
  kServiceUnknown,  // There is no service of that name.
};

// SERVING, NOT_SERVING, SERVICE_UNKNOWN or UNKNOWN.
SPILLWAY_EXPORT absl::string_view ServingStatusName(ServingStatus status);

// Takes tensors of an Inspect: all of the graph's in file order, in pieces of some 256 KiB.
//
// This and SizeCallback are called on the calling thread, before the call returns. A call that is
// tried again on another server, or on the same, goes on where it was: nothing comes twice. They
// MUST NOT throw, and may cancel CallOptions::cancellation to have no more. What they were given
// stands even if the call then fails.
using TensorsCallback = std::function<void(const v1::TensorList&)>;

// Takes each size of an Explore once, as it is found: in any order, but the same each time.
using SizeCallback = std::function<void(const v1::ExploredSize&)>;

// The calls of the service. Implementations are thread-safe. See client.h for what each call means
// and for its errors.
class SPILLWAY_EXPORT Connection {
 public:
  virtual ~Connection() = default;

  virtual absl::StatusOr<v1::RewriteResponse> Rewrite(absl::string_view graph_def,
                                                      const v1::RewriteOptions& options,
                                                      const CallOptions& call) = 0;

  // `on_tensors` may be null, and is called only if options.tensors is set.
  virtual absl::StatusOr<v1::GraphSummary> Inspect(absl::string_view graph_def,
                                                   const v1::InspectOptions& options,
                                                   const TensorsCallback& on_tensors,
                                                   const CallOptions& call) = 0;

  virtual absl::StatusOr<v1::SimulateReport> Simulate(absl::string_view graph_def,
                                                      const v1::SimulateOptions& options,
                                                      const CallOptions& call) = 0;

  // `on_size` may be null.
  virtual absl::StatusOr<v1::ExploreReport> Explore(absl::string_view graph_def,
                                                    const v1::ExploreOptions& options,
                                                    const SizeCallback& on_size,
                                                    const CallOptions& call) = 0;

  virtual absl::StatusOr<v1::GraphDiff> Diff(absl::string_view graph_a, absl::string_view graph_b,
                                             const CallOptions& call) = 0;

  virtual absl::StatusOr<v1::GetCapabilitiesResponse> GetCapabilities(const CallOptions& call) = 0;

  virtual absl::StatusOr<ServingStatus> CheckHealth(absl::string_view service,
                                                    const CallOptions& call) = 0;
};

}  // namespace spillway

#endif  // SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_CONNECTION_H_
