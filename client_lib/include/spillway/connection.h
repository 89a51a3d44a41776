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

// The stages of a call, in this order. A retried call starts again from the first.
enum class Stage {
  kSending,    // The graph is sent to the server. Streams only.
  kRewriting,  // The core is working, here or in the server. First stage of a unary call.
  kReceiving,  // The graph is received from the server. Streams only.
};

// The progress of a call. Bytes are those of the graph, or of both graphs of a Diff; both fields
// are 0 if nothing is counted.
struct Progress {
  Stage stage = Stage::kRewriting;
  int64_t done_bytes = 0;
  int64_t total_bytes = 0;
};

// The options of one call.
struct CallOptions {
  // The call fails with DEADLINE_EXCEEDED after this time. Default: no limit. Zero or less: it
  // fails before it starts.
  absl::Duration timeout = absl::InfiniteDuration();

  // Cancel this from another thread to end the call with CANCELLED. Every new CallOptions has its
  // own token; copies of a CallOptions share it.
  CancellationToken cancellation = {};

  // If set, called at each stage of a call that has a graph, and for each piece that was sent or
  // received (about RemoteOptions::chunk_bytes). Called on the calling thread or on a thread of the
  // call, never concurrently, and not after the call has returned. It MUST be short, as the call
  // waits for it, and MUST NOT throw. It may cancel `cancellation`.
  std::function<void(const Progress&)> on_progress = nullptr;

  // Called for each simulated plan, in process only, by the same rules. A time of 0: none fits so
  // far.
  std::function<void(int64_t plans_tried, int64_t best_step_time_ns)> on_plan = nullptr;

  // In process only, for rewrites of the strategy `budget`: when the time is up or `cancellation`
  // is cancelled during the search, the best plan so far is returned (RewriteReport.stopped_early);
  // it has passed all checks except the trial in variations. Without one yet, the call fails as it
  // would without this. On a server: INVALID_ARGUMENT (CONFLICTING_OPTIONS).
  bool keep_best = false;

  // The following are sent to the server with the call; empty: not sent. They have no effect in
  // process. A malformed value is INVALID_ARGUMENT (BAD_OPTION), and nothing is sent.
  //
  // The id of the call in the server's log (`x-request-id`): 1 to 128 printable ASCII characters
  // without space, quote or backslash. If empty, the server makes one.
  std::string request_id = {};
  // The span that the call belongs to, in the format of W3C Trace Context. The server logs it, too.
  std::string traceparent = {};
  // The bearer token (`authorization: Bearer TOKEN`), instead of the one in
  // RemoteOptions::token_file: 1 to 4096 characters as in RFC 6750.
  std::string token = {};
  // Additional gRPC metadata, for proxies and interceptors: names and values, in this order. A name
  // consists of 1 to 64 lowercase letters, digits, `-`, `_` and `.`; it is not one of the three
  // above, nor one reserved by gRPC or HTTP (`grpc-...`, `te`, `host`, `content-type`,
  // `user-agent`, `...-bin`). A value is printable ASCII, at most 1024 characters. At most 32
  // entries.
  //
  // `x-spillway-job`, `x-spillway-user`, `x-spillway-queue` and `x-spillway-model` identify the
  // caller in the server's log and journal. Those not given here are taken from SPILLWAY_JOB,
  // SPILLWAY_USER, SPILLWAY_QUEUE and SPILLWAY_MODEL as they are when the connection is made, and
  // converted to the form of a request id where necessary.
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

// The result of a health check, as defined by grpc.health.v1.
enum class ServingStatus {
  kUnknown,
  kServing,
  kNotServing,
  kServiceUnknown,  // No service has that name.
};

// Returns SERVING, NOT_SERVING, SERVICE_UNKNOWN or UNKNOWN.
SPILLWAY_EXPORT absl::string_view ServingStatusName(ServingStatus status);

// Receives the tensors of an Inspect: all tensors of the graph in file order, in pieces of about
// 256 KiB.
//
// This and SizeCallback are called on the calling thread, before the call returns. A call that is
// retried, on the same or another server, continues where it left off: nothing is delivered twice.
// The callbacks MUST NOT throw, and may cancel CallOptions::cancellation to receive no more.
// Delivered pieces remain valid even if the call then fails.
using TensorsCallback = std::function<void(const v1::TensorList&)>;

// Receives each size of an Explore once, as it is found: in no particular order, but always the
// same one.
using SizeCallback = std::function<void(const v1::ExploredSize&)>;

// The calls of the service. Implementations are thread-safe. See client.h for the contract and
// errors of each call.
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
