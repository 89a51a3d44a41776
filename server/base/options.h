// All settings of a server in one struct, into which the flags bind (flags.h) and from which the
// server is built (server.h). Plain data; the defaults are those of the flags.
#ifndef SPILLWAY_SERVER_BASE_OPTIONS_H_
#define SPILLWAY_SERVER_BASE_OPTIONS_H_

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
#include "server/base/clock.h"
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

// The paths of PEM files (tls_files.h); all empty: no TLS.
struct TlsFiles {
  std::string cert;       // --tls-cert: the server's certificate, then intermediate ones.
  std::string key;        // --tls-key: its private key, unencrypted.
  std::string client_ca;  // --tls-client-ca: the CA of client certificates; empty: none.

  bool enabled() const { return !cert.empty(); }
};

struct Options {
  // Where gRPC listens, each HOST:PORT (port 0 takes a free one) or unix:PATH; at least one.
  // Loopback by default: opening it to a network must be a deliberate choice.
  std::vector<std::string> listen = {"127.0.0.1:7070"};

  // TLS for every HOST:PORT of `listen`. A Unix socket is guarded by its file's permissions
  // instead.
  TlsFiles tls;

  // Allows listening without TLS on addresses that other machines can reach.
  bool insecure = false;

  // The file of callers and their quotas (access_file.proto); empty: anyone who can connect may
  // call.
  std::string access_file;

  // Where Prometheus scrapes, HOST:PORT, never encrypted; port 0 takes a free one; `none`: nowhere.
  std::string metrics_listen = "127.0.0.1:9464";

  // Limits on requests. Served by GetCapabilities. max_concurrent_requests is the number of worker
  // threads; 0 means one per core, or of the cgroup's CPU limit.
  v1::Limits limits = core::DefaultLimits();

  // Memory for all requests in flight, in bytes: their graphs and the work on them.
  // limits.max_inflight_bytes limits the graphs' share. 0: derived from the machine and the cgroup
  // (memory_budget.h).
  int64_t memory_budget_bytes = 0;

  // Bytes of graphs that one caller (its account in access_file, otherwise its address) may have
  // in flight, a part of limits.max_inflight_bytes; a single request may have more while no other
  // caller needs it. 0: half of it.
  int64_t max_caller_bytes = 0;

  // Maximum size, in bytes, of the cache of recent rewrites' requests and answers, a part of
  // memory_budget_bytes. 0: no cache.
  int64_t cache_bytes = 64 << 20;

  // BudgetStrategy.recompute of requests with that strategy that do not give it.
  v1::Recompute default_recompute = v1::RECOMPUTE_CHEAP;
  // Likewise BudgetStrategy.offload.
  v1::Offload default_offload = v1::OFFLOAD_OFF;
  // Every rewrite is a dry run (RewriteOptions.dry_run).
  bool dry_run = false;

  // How long requests may wait for a worker under sustained load; those that would wait longer, and
  // longer than twice their own work, are rejected as OVERLOADED (work_queue.h). Infinite: none
  // are.
  absl::Duration target_wait = absl::Milliseconds(100);

  // Maximum number of open connections; further ones are closed on arrival. 0: the default of
  // acceptor.h.
  int max_connections = 0;

  // Maximum number of open connections of one address. 0: three quarters of max_connections.
  int max_host_connections = 0;

  // Maximum number of requests that wait for a worker; further ones are rejected as OVERLOADED.
  // Their bytes are limited by limits.max_inflight_bytes; this limits the number of small ones.
  int max_queued_requests = 1024;

  // A stream that neither sends nor takes a message for this long, while the server waits for it,
  // is cancelled, because its announced bytes stay reserved in the budget. So is a stream whose
  // worker has waited this long in total for the client to take parts of the answer. Infinite:
  // never.
  absl::Duration idle_timeout = absl::Seconds(60);

  // A stream whose upload is more than 5 seconds behind this rate, in bytes per second, is
  // cancelled. 0: never.
  int64_t min_upload_rate = 1 << 20;

  // Maximum duration of a request, including its upload and its wait for a worker, regardless of
  // the client's deadline. Infinite: as long as the client waits.
  absl::Duration max_request_time = absl::Minutes(10);

  // A connection older than this is asked to close (GOAWAY), so that clients spread over new
  // replicas. Its running requests end first. Infinite: never.
  absl::Duration max_connection_age = absl::InfiniteDuration();

  // After SIGTERM: how long requests are still accepted while health says NOT_SERVING (Kubernetes
  // needs a few seconds to remove an address from its endpoints), and then how long running
  // requests may continue before they are cancelled.
  absl::Duration drain_delay = absl::ZeroDuration();
  absl::Duration drain_timeout = absl::Seconds(30);

  // trace, debug, info, warn, error or off. At debug, gRPC's own messages are logged too.
  std::string log_level = "info";
  // text or json.
  std::string log_format = "text";

  // The folder of the journal (journal.h); empty: no journal. The maximum size of each of its
  // files, in bytes, and the maximum number of files.
  std::string journal;
  int64_t journal_file_bytes = 64 << 20;
  int journal_files = 8;

  // Not flags. Set by tests: the maximum size of an answer, in bytes, which is that of a protobuf
  // message.
  int64_t max_response_bytes = std::numeric_limits<int32_t>::max();
  // The clock for timeouts, quotas and intervals. Must outlive the server.
  Clock* clock = &RealClock();
  // Set by spillwayd: whether the process is this server's alone, with its operator new
  // (counted_new.cc), so that resident memory can be compared with the charges (resident_memory.h).
  bool owns_process = false;
  // Set by tests: the functions that do the work.
  RewriteFunction rewrite = &core::Rewrite;
  InspectFunction inspect =
      static_cast<absl::Status (*)(absl::string_view, const v1::InspectOptions&, const v1::Limits&,
                                   const core::StopToken&, const core::InspectSink&)>(
          &core::Inspect);
  ExploreFunction explore = &core::Explore;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_BASE_OPTIONS_H_
