#include "server/server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <prometheus/exposer.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iterator>
#include <limits>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "google/protobuf/message.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "rewrite_core/base/steady_time.h"
#include "rewrite_core/rewriter.h"
#include "server/base/cgroup.h"
#include "server/base/gauges.h"
#include "server/base/logging.h"
#include "server/calls/health_service.h"
#include "server/calls/reflection_service.h"
#include "server/calls/rewrite_service.h"
#include "server/calls/service_state.h"
#include "server/memory/memory_budget.h"
#include "server/net/acceptor.h"
#include "server/net/listen_address.h"
#include "server/net/listener.h"
#include "server/net/tls_credentials.h"
#include "server/observe/journal.h"
#include "server/observe/journal_file.h"
#include "server/observe/landing_page.h"
#include "server/observe/metrics.h"
#include "server/observe/process_metrics.h"

namespace spillway::server {
namespace {

constexpr char kServiceName[] = "spillway.v1.RewriteService";

// Margin above max_unary_bytes within which a too large request gets the server's error, which has
// a remedy, instead of gRPC's.
constexpr int64_t kReceiveSlackBytes = 1 << 20;
// Memory that gRPC may hold beyond one message of the maximum size: together with the program
// itself, within kOverheadBytes of memory_budget.h at the default limits.
constexpr int64_t kTransportBytes = int64_t{96} << 20;

// A peer that connects and sends nothing is dropped after this.
constexpr int kHandshakeTimeoutMs = 10'000;
// A peer that vanished silently is noticed after the sum of these, and its part of the budget is
// released.
constexpr int kKeepaliveTimeMs = 60'000;
constexpr int kKeepaliveTimeoutMs = 20'000;
// Clients may ping this often, even without a call; more often is answered with GOAWAY.
constexpr int kMinPingIntervalMs = 10'000;
constexpr int kMaxConnectionIdleMs = 300'000;

// How often kept freed memory is checked independently of requests.
constexpr absl::Duration kRestInterval = absl::Seconds(2);

// For CivetWeb. A scraper that connects and sends nothing holds a thread until the timeout: 64 of
// them are over each second, and a scrape waits for those before it.
constexpr char kScrapeThreads[] = "32";
constexpr char kScrapeTimeoutMs[] = "500";

// Time for streams that stay open without requests, i.e. health watchers, to see the end.
constexpr absl::Duration kCloseGrace = absl::Milliseconds(200);

// How long to wait for the last lines of the journal. A disk takes some milliseconds.
constexpr absl::Duration kJournalGrace = absl::Seconds(2);

int64_t ReceiveLimit(const v1::Limits& limits) {
  const int64_t largest = std::max(limits.max_unary_bytes(), limits.max_chunk_bytes());
  return std::min<int64_t>(largest + kReceiveSlackBytes, std::numeric_limits<int>::max());
}

void SetTransportOptions(const Options& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(ReceiveLimit(options.limits)));
  builder.SetMaxSendMessageSize(-1);  // Methods check their answers.
  // The size of a compressed message is only checked once it is decompressed: a megabyte may become
  // a gigabyte before it is rejected. Graphs compress little, and Spillway's clients do not
  // compress.
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             options.limits.max_concurrent_streams());
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE,
                             static_cast<int>(options.limits.max_metadata_bytes()));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kMinPingIntervalMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMaxConnectionIdleMs);
  if (options.max_connection_age != absl::InfiniteDuration()) {
    builder.AddChannelArgument(
        GRPC_ARG_MAX_CONNECTION_AGE_MS,
        static_cast<int>(absl::ToInt64Milliseconds(options.max_connection_age)));
  }
  // Unary requests are read before they can be rejected; this limits the memory of the transport.
  grpc::ResourceQuota quota("spillwayd");
  quota.Resize(kTransportBytes + ReceiveLimit(options.limits));
  builder.SetResourceQuota(quota);
}

// Links the code that registers the files of reflected/ with protobuf at startup, which is where
// gRPC's reflection looks. The linker drops members of a static library that nothing refers to.
void LinkReflectedFiles() {
  // status_to_grpc.cc sends messages with the wire format of these.
  google::protobuf::LinkMessageReflection<google::rpc::ErrorInfo>();
  google::protobuf::LinkMessageReflection<google::rpc::Status>();
}

// Plain text is for this machine only, unless the user allows it.
absl::Status CheckPrivacy(const ListenAddress& address, const Options& options) {
  if (options.tls.enabled() || options.insecure) return absl::OkStatus();
  const absl::StatusOr<bool> local = IsLocal(address);
  // It is unknown who could reach it, so it is rejected, even if the resolver answers a moment
  // later.
  if (!local.ok()) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address.text, " (--listen): ", local.status().message()));
  }
  if (*local) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--listen ", address.text,
      " would let other machines in without encryption: give --tls-cert and --tls-key, "
      "or --insecure if you trust the network, or listen on 127.0.0.1"));
}

// Anyone who reads a token in transit can use it. Only a warning: something else may encrypt the
// connection, and the file may get its first token later.
void WarnOfTokens(const ListenAddress& address, const Options& options) {
  if (options.tls.enabled() || IsLocal(address).value_or(false)) return;
  Log(LogLevel::kWarn, "tokens cross the network without encryption: give --tls-cert and --tls-key",
      {{"listen", address.text}, {"access_file", options.access_file}});
}

// The second would be reported as in use, without naming the first.
absl::Status CheckGivenOnce(const ListenAddress& address,
                            const std::vector<ListenAddress>& others) {
  if (!address.is_unix()) return absl::OkStatus();  // The system rejects the second.
  const auto real = [](const std::string& path) {
    std::error_code error;
    const std::filesystem::path found = std::filesystem::weakly_canonical(path, error);
    return error ? std::filesystem::path(path) : found;
  };
  for (const ListenAddress& other : others) {
    if (!other.is_unix() || real(other.path) != real(address.path)) continue;
    return absl::InvalidArgumentError(absl::StrCat("--listen ", other.text, " and --listen ",
                                                   address.text,
                                                   " are the same socket; leave one out"));
  }
  return absl::OkStatus();
}

}  // namespace

struct Server::Parts {
  explicit Parts(const Options& options)
      : metrics(*registry, core::Version()),
        state(options, metrics),
        service(state),
        health(kServiceName, *options.clock, state.half_open),
        reflection(state),
        acceptor(options.max_connections, options.max_host_connections, metrics, *options.clock) {}

  // Finds all errors that can be found before anything listens: those of BuildAndStart.
  absl::Status Prepare();
  // Opens the journal. Error: UNAVAILABLE.
  absl::Status StartJournal();
  // Listens for calls, which wait until StartGrpc. Error: UNAVAILABLE.
  absl::Status Listen();
  // Listens for scrapes. Error: UNAVAILABLE.
  absl::Status StartMetrics();
  // Accepts calls. Error: UNAVAILABLE.
  absl::Status StartGrpc();

  // In this order, so that users are destroyed before their dependencies.
  const std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  Metrics metrics;
  ServiceState state;
  RewriteService service;
  HealthService health;
  ReflectionService reflection;
  std::shared_ptr<prometheus::Collectable> process_metrics;
  std::shared_ptr<prometheus::Collectable> gauges;
  std::unique_ptr<prometheus::Exposer> exposer;
  int metrics_port = 0;
  std::vector<ListenAddress> addresses;
  // One per address. gRPC asks them for certificates.
  std::vector<std::shared_ptr<grpc::ServerCredentials>> credentials;
  std::unique_ptr<grpc::Server> grpc_server;
  std::vector<std::unique_ptr<Listener>> listeners;  // One per address.
  Acceptor acceptor;
  std::unique_ptr<Clock::Timer> rest_timer;

  std::thread drain_thread;
  core::Event drain_ended;
  absl::Mutex drain_mu;
  bool drained ABSL_GUARDED_BY(drain_mu) = false;
  bool drained_cleanly ABSL_GUARDED_BY(drain_mu) = true;
};

absl::Status Server::Parts::Prepare() {
  const Options& options = state.options;
  if (!options.access_file.empty()) {
    auto access = AccessList::Load(options.access_file, metrics, *options.clock);
    if (!access.ok()) return access.status();
    state.access = *std::move(access);
  }
  if (!options.journal.empty()) {
    if (absl::Status status = JournalFile::Check(options.journal); !status.ok()) return status;
  }
  for (const std::string& text : options.listen) {
    absl::StatusOr<ListenAddress> address = ParseListenAddress(text);
    if (!address.ok()) return address.status();
    if (absl::Status status = CheckPrivacy(*address, options); !status.ok()) return status;
    if (absl::Status status = CheckGivenOnce(*address, addresses); !status.ok()) return status;
    if (options.tls.enabled() && !address->is_unix()) {
      auto tls = MakeTlsCredentials(options.tls, *options.clock);
      if (!tls.ok()) return tls.status();
      credentials.push_back(*std::move(tls));
    } else {
      credentials.push_back(grpc::InsecureServerCredentials());
    }
    addresses.push_back(*std::move(address));
  }
  return absl::OkStatus();
}

absl::Status Server::Parts::StartJournal() {
  const Options& options = state.options;
  if (options.journal.empty()) return absl::OkStatus();
  auto file =
      JournalFile::Open({options.journal, options.journal_file_bytes, options.journal_files});
  if (!file.ok()) return file.status();
  state.journal = std::make_unique<Journal>(*std::move(file), metrics);
  return absl::OkStatus();
}

absl::Status Server::Parts::Listen() {
  for (const ListenAddress& address : addresses) {
    if (state.access != nullptr && state.access->takes_tokens())
      WarnOfTokens(address, state.options);
    auto listener = Listener::Listen(address, "--listen");
    if (!listener.ok()) return listener.status();
    listeners.push_back(*std::move(listener));
  }
  return absl::OkStatus();
}

absl::Status Server::Parts::StartMetrics() {
  process_metrics = std::make_shared<ProcessMetrics>();
  gauges = std::make_shared<Gauges>(std::vector<Gauges::Gauge>{
      {"spillway_inflight_requests", "Requests in flight, including waiting ones.",
       [this] { return static_cast<double>(state.tracker.inflight()); }},
      {"spillway_queued_requests", "Requests waiting for a worker.",
       [this] { return static_cast<double>(state.pool.queued()); }},
      {"spillway_cache_bytes", "Memory of the cache of recent rewrites, including their requests.",
       [this] { return static_cast<double>(state.answers.bytes()); }},
      {"spillway_expected_wait_seconds", "Expected wait of one more request for a worker.",
       [this] { return absl::ToDoubleSeconds(state.pool.expected_wait()); }},
      {"spillway_connections", "Open connections.",
       [this] { return static_cast<double>(acceptor.open()); }},
      {"spillway_connections_limit", "Maximum number of open connections.",
       [this] { return static_cast<double>(state.options.max_connections); }},
      {"spillway_workers", "Worker threads: the number of requests that can run at once.",
       [this] { return static_cast<double>(state.options.limits.max_concurrent_requests()); }},
      {"spillway_inflight_bytes", "Bytes of graphs of requests in flight.",
       [this] { return static_cast<double>(state.admission.inflight_bytes()); }},
      {"spillway_log_lines_dropped",
       "Log lines dropped since the start because they were not read.",
       [] { return static_cast<double>(DroppedLogLines()); }},
      {"spillway_inflight_bytes_limit", "Maximum bytes of graphs of requests in flight.",
       [this] { return static_cast<double>(state.admission.graph_budget_bytes()); }},
      {"spillway_memory_bytes", "Memory of requests in flight and of the cache, within the budget.",
       [this] { return static_cast<double>(state.admission.memory_bytes()); }},
      {"spillway_memory_bytes_limit",
       "Maximum memory of requests in flight and of the cache: the budget.",
       [this] { return static_cast<double>(state.admission.memory_budget_bytes()); }},
  });
  const std::string& address = state.options.metrics_listen;
  if (address == "none") return absl::OkStatus();
  const absl::StatusOr<ListenAddress> parsed = ParseListenAddress(address);
  if (!parsed.ok()) return parsed.status();
  // A trial, for its error message; the port may still be taken a moment later.
  if (const auto trial = Listener::Listen(*parsed, "--metrics-listen"); !trial.ok()) {
    return trial.status();
  }
  try {
    exposer = std::make_unique<prometheus::Exposer>(
        std::vector<std::string>{"listening_ports", address, "num_threads", kScrapeThreads,
                                 "request_timeout_ms", kScrapeTimeoutMs},
        &LandingPage());
  } catch (const std::exception& error) {  // CivetException, which has no details.
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", address, " (--metrics-listen): ", error.what(), "; choose another"));
  }
  metrics_port = exposer->GetListeningPorts().at(0);
  exposer->RegisterCollectable(registry);
  exposer->RegisterCollectable(gauges);
  exposer->RegisterCollectable(process_metrics);
  return absl::OkStatus();
}

absl::Status Server::Parts::StartGrpc() {
  LinkReflectedFiles();
  grpc::ServerBuilder builder;
  SetTransportOptions(state.options, builder);
  std::vector<Acceptor::Source> sources;
  for (size_t i = 0; i < listeners.size(); ++i) {
    const std::shared_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_of_grpc =
        builder.experimental().AddExternalConnectionAcceptor(
            grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
            credentials[i]);
    for (const int socket : listeners[i]->sockets()) {
      sources.push_back(
          {socket, [acceptor_of_grpc](int connection) {
             grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
             parameters.fd = connection;
             acceptor_of_grpc->HandleNewConnection(&parameters);
           }});
    }
  }
  // A peer is spelled `ipv4:HOST:PORT`, or `unix:`.
  state.half_open.SeeReceived([this](const std::string& peer) {
    int port = 0;
    return absl::SimpleAtoi(peer.substr(peer.rfind(':') + 1), &port) ? acceptor.ReceivedBytes(port)
                                                                     : -1;
  });
  builder.RegisterService(&service);
  builder.RegisterService(&health);
  builder.RegisterService(&reflection);
  grpc_server = builder.BuildAndStart();
  if (grpc_server == nullptr) {
    return absl::UnavailableError("gRPC cannot start; --log-level debug shows its reason");
  }
  health.SetServing(true);
  if (state.options.owns_process) {
    state.admission.resident().Watch(ThisProcess());
    Clock& clock = *state.options.clock;
    rest_timer = clock.CallAt(clock.Now() + kRestInterval, [this, &clock] {
      state.admission.resident().LookAtRest();
      return clock.Now() + kRestInterval;
    });
  }
  return acceptor.Start(std::move(sources));
}

namespace {

// Fills in the options that depend on the machine.
void Resolve(Options* options) {
  options->limits.set_max_concurrent_requests(WorkerCount(*options));
  options->memory_budget_bytes = MemoryBudget(*options);
  options->max_connections = MaxConnections(*options);
  options->max_host_connections = MaxHostConnections(*options);
  v1::Limits& limits = options->limits;
  limits.set_max_inflight_bytes(
      std::min(limits.max_inflight_bytes(), options->memory_budget_bytes));
  options->max_caller_bytes = MaxCallerBytes(*options);
}

}  // namespace

int64_t MemoryBudget(const Options& options) {
  return options.memory_budget_bytes > 0 ? options.memory_budget_bytes : DefaultMemoryBudget();
}

int64_t MaxCallerBytes(const Options& options) {
  if (options.max_caller_bytes > 0) return options.max_caller_bytes;
  return std::min(options.limits.max_inflight_bytes(), MemoryBudget(options)) / 2;
}

int MaxConnections(const Options& options) {
  return options.max_connections > 0 ? options.max_connections : DefaultMaxConnections();
}

int MaxHostConnections(const Options& options) {
  if (options.max_host_connections > 0) return options.max_host_connections;
  return std::max(MaxConnections(options) / 4 * 3, 1);
}

int WorkerCount(const Options& options) {
  const int given = options.limits.max_concurrent_requests();
  if (given > 0) return given;
  return UsableCores(ReadCgroupLimits(), static_cast<int>(std::thread::hardware_concurrency()));
}

absl::Status Server::Check(Options options) {
  Resolve(&options);
  return Parts(options).Prepare();
}

absl::StatusOr<std::unique_ptr<Server>> Server::BuildAndStart(Options options) {
  Resolve(&options);
  auto parts = std::make_unique<Parts>(options);
  if (absl::Status status = parts->Prepare(); !status.ok()) return status;
  if (absl::Status status = parts->StartJournal(); !status.ok()) return status;
  if (absl::Status status = parts->Listen(); !status.ok()) return status;
  // gRPC last, so that metrics are available before calls.
  if (absl::Status status = parts->StartMetrics(); !status.ok()) return status;
  if (absl::Status status = parts->StartGrpc(); !status.ok()) return status;
  return std::unique_ptr<Server>(new Server(std::move(parts)));
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Server::~Server() {
  if (parts_->drain_thread.joinable()) parts_->drain_thread.join();
  DrainWithin(absl::ZeroDuration(), absl::ZeroDuration());
}

std::vector<std::string> Server::addresses() const {
  std::vector<std::string> texts;
  for (const auto& listener : parts_->listeners) texts.push_back(listener->address());
  return texts;
}

int Server::port() const {
  for (const auto& listener : parts_->listeners) {
    if (listener->port() != 0) return listener->port();
  }
  return 0;
}

int Server::metrics_port() const { return parts_->metrics_port; }
std::string Server::Scrape() const {
  std::vector<prometheus::MetricFamily> all = parts_->registry->Collect();
  for (const auto& collectable : {parts_->gauges, parts_->process_metrics}) {
    std::vector<prometheus::MetricFamily> families = collectable->Collect();
    std::move(families.begin(), families.end(), std::back_inserter(all));
  }
  return prometheus::TextSerializer().Serialize(all);
}

int64_t Server::inflight_bytes() const { return parts_->state.admission.inflight_bytes(); }
int64_t Server::memory_bytes() const { return parts_->state.admission.memory_bytes(); }
int Server::inflight_requests() const { return parts_->state.tracker.inflight(); }
int Server::shared_requests() const { return static_cast<int>(parts_->state.flights.waiting()); }

bool Server::Drain() {
  const Options& options = parts_->state.options;
  return DrainWithin(options.drain_delay, options.drain_timeout);
}

bool Server::DrainOrLeave(absl::Duration grace) {
  const Options& options = parts_->state.options;
  core::Event& ended = parts_->drain_ended;
  parts_->drain_thread = std::thread([this, &ended] {
    Drain();
    ended.Notify();
  });
  const bool all_ended = ended.WaitFor(options.drain_delay + options.drain_timeout + grace);
  if (!all_ended) {
    Log(LogLevel::kWarn, "a cancelled request does not end: the server exits regardless",
        {{"inflight_requests", parts_->state.tracker.inflight()}});
  }
  return all_ended;
}

bool Server::DrainWithin(absl::Duration delay, absl::Duration timeout) {
  absl::MutexLock lock(&parts_->drain_mu);
  if (parts_->drained) return parts_->drained_cleanly;
  RequestTracker& tracker = parts_->state.tracker;
  Log(LogLevel::kInfo, "draining", {{"inflight_requests", tracker.inflight()}});
  parts_->health.SetServing(false);
  parts_->state.options.clock->SleepFor(delay);
  tracker.Close();
  parts_->drained_cleanly = tracker.AwaitNone(timeout);
  if (!parts_->drained_cleanly) {
    Log(LogLevel::kWarn, "drain timeout: cancelling the requests that still run",
        {{"inflight_requests", tracker.inflight()}});
  }
  // Cancels the remaining calls at the deadline, which fires the stop tokens.
  parts_->acceptor.Stop();
  for (const auto& listener : parts_->listeners) listener->Close();
  const absl::Duration grace = parts_->drained_cleanly ? kCloseGrace : absl::ZeroDuration();
  parts_->grpc_server->Shutdown(absl::ToChronoTime(absl::Now() + grace));
  tracker.AwaitNone(absl::InfiniteDuration());
  parts_->grpc_server->Wait();
  if (parts_->state.journal != nullptr) parts_->state.journal->Close(kJournalGrace);
  parts_->drained = true;
  Log(LogLevel::kInfo, "drained");
  return parts_->drained_cleanly;
}

}  // namespace spillway::server
