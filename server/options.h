// Everything that can be set on a server: one struct, into which the flags bind (flags.h) and from
// which the server is built (server.h). Plain data; the defaults here are those of the flags.
#ifndef SPILLWAY_SERVER_OPTIONS_H_
#define SPILLWAY_SERVER_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/inspect/explore.h"
#include "rewrite_core/inspect/inspect.h"
#include "rewrite_core/rewriter.h"
#include "server/clock.h"
#include "server/tls_files.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::server {

// core::Rewrite, or a stand-in.
using RewriteFunction = std::function<absl::StatusOr<v1::RewriteResponse>(
    absl::string_view graph_def, const v1::RewriteOptions& options, const v1::Limits& limits,
    const core::StopToken& stop, core::PlanReuse* reuse)>;

// The streamed form of core::Inspect, and core::Explore, or stand-ins.
using InspectFunction = std::function<absl::Status(
    absl::string_view graph_def, const v1::InspectOptions& options, const v1::Limits& limits,
    const core::StopToken& stop, const core::InspectSink& sink)>;
using ExploreFunction = std::function<absl::StatusOr<v1::ExploreReport>(
    absl::string_view graph_def, const v1::ExploreOptions& options, const v1::Limits& limits,
    const core::StopToken& stop, const core::ExploredSizeSink& on_size)>;

struct Options {
  // Where gRPC listens, each HOST:PORT (port 0 takes a free one) or unix:PATH; at least one.
  // Loopback by default: opening it to a network is a decision.
  std::vector<std::string> listen = {"127.0.0.1:7070"};

  // TLS for every HOST:PORT of `listen`. A Unix socket is guarded by its file's permissions
  // instead.
  TlsFiles tls;

  // Without TLS, also listen where other machines can read and call.
  bool insecure = false;

  // Who may call, and how much (access_file.proto); empty: whoever can connect.
  std::string access_file;

  // Where Prometheus scrapes, HOST:PORT, never encrypted; port 0 takes a free one; `none`: nowhere.
  std::string metrics_listen = "127.0.0.1:9464";

  // What is refused. Served by GetCapabilities. max_concurrent_requests is the number of worker
  // threads; 0 means one per core.
  v1::Limits limits = core::DefaultLimits();

  // Memory for all requests in flight, in bytes: their graphs and what the work on them takes.
  // limits.max_inflight_bytes bounds the graphs among it. 0: what the machine and the cgroup leave
  // (memory_budget.h).
  int64_t memory_budget_bytes = 0;

  // Recent answers of rewrites that are kept for who asks the same again, with their requests: the
  // most bytes, of memory_budget_bytes. 0: none.
  int64_t cache_bytes = 64 << 20;

  // For how long requests may wait for a worker where many come all the time; those that would wait
  // longer, and more than twice what they take, are refused as OVERLOADED (work_queue.h).
  // Infinite: none is.
  absl::Duration target_wait = absl::Milliseconds(100);

  // Connections that may stand at once; beyond it they are closed as soon as they come. 0: as many
  // as connection_limit.h says.
  int max_connections = 0;

  // Requests that may wait for a worker; beyond it they are refused as OVERLOADED. Their bytes
  // are bounded by limits.max_inflight_bytes; this bounds the count of small ones.
  int max_queued_requests = 1024;

  // A stream that neither brings nor takes a message for this long, while the server waits for it,
  // is cancelled: what it announced is held in the budget until then. So is one whose worker has
  // waited as long, in all, for the client to take parts of the answer. Infinite: never.
  absl::Duration idle_timeout = absl::Seconds(60);

  // A stream whose graph comes more slowly than at so many bytes per second, and 5 seconds, is
  // cancelled. 0: none is.
  int64_t min_upload_rate = 1 << 20;

  // The longest that a request may take, its upload and its wait for a worker included, whatever
  // deadline the client has. Infinite: as long as the client waits.
  absl::Duration max_request_time = absl::Minutes(10);

  // A connection older than this is asked to go away, so that clients spread over new replicas.
  // Its running requests end first. Infinite: never.
  absl::Duration max_connection_age = absl::InfiniteDuration();

  // After SIGTERM: how long requests are still taken while health says NOT_SERVING (Kubernetes
  // needs some seconds to take an address out of its endpoints), and then how long running
  // requests may go on before they are cancelled.
  absl::Duration drain_delay = absl::ZeroDuration();
  absl::Duration drain_timeout = absl::Seconds(30);

  // trace, debug, info, warn, error or off. At debug, gRPC's own messages are logged too.
  std::string log_level = "info";
  // text or json.
  std::string log_format = "text";

  // The folder of the journal (journal.h); empty: none is kept. Its files: the most bytes of each,
  // and how many there are at most.
  std::string journal;
  int64_t journal_file_bytes = 64 << 20;
  int journal_files = 8;

  // Not flags; tests set them. The largest answer, in bytes: what one protobuf message can hold.
  int64_t max_response_bytes = std::numeric_limits<int32_t>::max();
  // What timeouts, quotas and intervals are measured by. Must outlive the server.
  Clock* clock = &RealClock();
  // What does the work.
  RewriteFunction rewrite = &core::Rewrite;
  InspectFunction inspect =
      static_cast<absl::Status (*)(absl::string_view, const v1::InspectOptions&, const v1::Limits&,
                                   const core::StopToken&, const core::InspectSink&)>(
          &core::Inspect);
  ExploreFunction explore = &core::Explore;
};

// The number of worker threads, at least 1.
int WorkerCount(const Options& options);

// The connections that may stand at once, at least 1.
int MaxConnections(const Options& options);

// The memory for all requests, in bytes.
int64_t MemoryBudget(const Options& options);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_OPTIONS_H_
