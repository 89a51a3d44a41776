#include "server/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/names.h"
#include "rewrite_core/base/near_names.h"
#include "rewrite_core/rewriter.h"
#include "server/memory/memory_budget.h"
#include "server/net/acceptor.h"
#include "server/net/listen_address.h"
#include "server/server.h"

namespace spillway::server {
namespace {

constexpr char kAbout[] =
    "spillwayd is a gRPC service that rewrites TensorFlow training graphs so that tensors are "
    "swapped to host memory (Large Model Support).\n"
    "Without TLS it accepts only connections of this machine, unless --insecure is given.";

constexpr char kFooter[] =
    "Sizes can have a unit (64MiB is 64 * 1024 * 1024 bytes, 2GB is 2 * 1000^3); durations must "
    "have one (500ms, 30s, 5m, inf).\n"
    "\n"
    "On SIGTERM or SIGINT the server drains and exits with 0; a second signal ends it at once.\n"
    "Exit codes: 0 drained, 1 an address or a file cannot be used, 2 invalid flags, 3 ended by a "
    "second signal, 4 a request did not stop when it was cancelled.\n"
    "\n"
    "Examples:\n"
    "  spillwayd                                   serves this machine with all cores\n"
    "  spillwayd --listen unix:/run/spillway/spillwayd.sock --listen 127.0.0.1:7070\n"
    "  spillwayd --listen 0.0.0.0:7070 --tls-cert server.pem --tls-key server.key\n"
    "  spillwayd --listen 0.0.0.0:7070 --insecure   inside a network that you trust\n"
    "  spillwayd --memory-budget 8GiB --drain-delay 5s         behind a Kubernetes service\n"
    "  spillwayd --listen 127.0.0.1:0 --metrics-listen none    for tests: the port is printed\n"
    "  spillwayd --memory-budget 8GiB --check                  prints the effective settings\n"
    "  spillwayd ... --access-file callers.txtpb               serves only the callers in this "
    "file";

// Returns the error message of a flag, or "" if it is valid: CLI11's convention.
std::string CheckAddress(const std::string& address) {
  return std::string(ParseListenAddress(address).status().message());
}

std::string CheckMetricsAddress(const std::string& address) {
  if (address == "none") return "";
  const absl::StatusOr<ListenAddress> parsed = ParseListenAddress(address);
  if (!parsed.ok()) return std::string(parsed.status().message());
  return parsed->is_unix() ? absl::StrCat("'", address, "' is not HOST:PORT") : "";
}

// A setting as `--check` prints it.
struct Setting {
  std::string flag;
  std::function<std::string()> value;
};
using Settings = std::vector<Setting>;

// Binds a flag to a duration, which CLI11 does not know.
CLI::Option* AddDuration(CLI::App& app, Settings& settings, const std::string& name,
                         absl::Duration& value, const std::string& help) {
  settings.push_back({name, [&value] { return absl::FormatDuration(value); }});
  return app
      .add_option_function<std::string>(
          name,
          [&value, name](const std::string& text) {
            absl::Duration parsed;
            if (!absl::ParseDuration(text, &parsed) || parsed < absl::ZeroDuration()) {
              throw CLI::ValidationError(
                  name, absl::StrCat("'", text, "' is not a duration with a unit, e.g. 30s"));
            }
            value = parsed;
          },
          help)
      ->type_name("DURATION")
      ->default_str(absl::FormatDuration(value));
}

// Returns a size as flags spell it: `64MiB`; rounded as in every text if that shows: `11.77GiB`.
std::string SizeText(int64_t bytes) {
  const std::string text = absl::StrReplaceAll(core::BytesText(bytes), {{".00 ", ""}, {" ", ""}});
  const bool is_whole = !absl::StrContains(text, '.');
  return is_whole && core::ParseBytes(text) != bytes ? absl::StrCat(bytes) : text;
}

// Converts a size to a plain number, which CLI11 then parses.
std::string SizeAsNumber(std::string& text) {
  const absl::optional<int64_t> bytes = core::ParseBytes(text);
  if (!bytes.has_value()) return absl::StrCat("'", text, "' is not ", core::kByteGrammar);
  text = absl::StrCat(*bytes);
  return "";
}

// Bounds of --journal-file-bytes: room for some lines, and far from the overflow of 64-bit sums.
constexpr int64_t kMinJournalFileBytes = 4 << 10;
constexpr int64_t kMaxJournalFileBytes = int64_t{1} << 50;

// Binds a flag to a number of bytes; 0 means none.
CLI::Option* AddSize(CLI::App& app, Settings& settings, const std::string& name, int64_t& value,
                     const std::string& help) {
  settings.push_back({name, [&value] { return SizeText(value); }});
  return app.add_option(name, value, help)
      ->type_name("SIZE")
      ->transform(CLI::Validator(SizeAsNumber, ""))
      ->default_str(SizeText(value));
}

// Binds a flag to the path of a file or folder. `--tls-client-ca "$CA"` with an unset variable must
// not disable the protection.
CLI::Option* AddPath(CLI::App& app, Settings& settings, const std::string& name, std::string& value,
                     const std::string& type, const std::string& help) {
  settings.push_back({name, [&value] { return value; }});
  return app.add_option(name, value, help)->type_name(type)->check([](const std::string& path) {
    return path.empty() ? "the value is empty; give a path, or leave the flag out" : "";
  });
}

// Binds a flag to a number from 1 to `max`.
CLI::Option* AddNumber(CLI::App& app, Settings& settings, const std::string& name, int& value,
                       int max, const std::string& help) {
  settings.push_back({name, [&value] { return absl::StrCat(value); }});
  return app.add_option(name, value, help)
      ->type_name("NUMBER")
      ->check(CLI::Range(1, max).description(""))
      ->capture_default_str();
}

// Binds a flag to a limit: a count or, if `is_size`, a number of bytes with an optional unit.
CLI::Option* AddLimit(CLI::App& app, Settings& settings, const std::string& name,
                      v1::Limits& limits, int64_t (v1::Limits::*get)() const,
                      void (v1::Limits::*set)(int64_t), bool is_size, const std::string& help) {
  const int64_t value = (limits.*get)();
  settings.push_back({name, [&limits, get, is_size] {
                        return is_size ? SizeText((limits.*get)()) : absl::StrCat((limits.*get)());
                      }});
  CLI::Option* option = app.add_option_function<int64_t>(
      name,
      [&limits, set, name](const int64_t& given) {
        if (given < 1) throw CLI::ValidationError(name, "must be at least 1");
        (limits.*set)(given);
      },
      help);
  if (is_size) option->transform(CLI::Validator(SizeAsNumber, ""));
  return option->type_name(is_size ? "SIZE" : "NUMBER")
      ->default_str(is_size ? SizeText(value) : absl::StrCat(value));
}

void AddFlags(CLI::App& app, Options& options, Settings& settings) {
  settings.push_back({"--listen", [&options] { return absl::StrJoin(options.listen, ","); }});
  app.add_option(
         "--listen", options.listen,
         "The address where gRPC listens; port 0 takes a free port. May be given several times")
      ->type_name("HOST:PORT|unix:PATH")
      ->expected(1)
      ->take_all()
      ->check(CheckAddress)
      ->default_str(options.listen.front())
      ->group("Listening");
  settings.push_back({"--insecure", [&options] { return options.insecure ? "true" : "false"; }});
  app.add_flag("--insecure", options.insecure,
               "Allow listening without TLS on addresses that other machines can reach")
      ->group("Listening");
  settings.push_back({"--metrics-listen", [&options] { return options.metrics_listen; }});
  app.add_option("--metrics-listen", options.metrics_listen,
                 "The address where Prometheus scrapes /metrics, without TLS; none: nowhere")
      ->type_name("HOST:PORT")
      ->check(CheckMetricsAddress)
      ->capture_default_str()
      ->group("Listening");
  AddDuration(
      app, settings, "--max-connection-age", options.max_connection_age,
      "Ask connections older than this to reconnect, so that clients spread over new replicas")
      ->group("Listening");

  const char* const tls = "TLS (files in PEM format, reloaded when they change)";
  AddPath(
      app, settings, "--tls-cert", options.tls.cert, "FILE",
      "The server's certificate, followed by intermediate ones; enables TLS for every HOST:PORT "
      "of --listen")
      ->group(tls);
  AddPath(app, settings, "--tls-key", options.tls.key, "FILE",
          "The private key of --tls-cert, not encrypted")
      ->group(tls);
  AddPath(app, settings, "--tls-client-ca", options.tls.client_ca, "FILE",
          "Clients must present a certificate signed by one of these (mTLS)")
      ->group(tls);

  AddPath(
      app, settings, "--access-file", options.access_file, "FILE",
      "The file that says who may call, by certificate or token, and with which quotas; reloaded "
      "when it changes. If not given, anyone who can connect may call")
      ->group("Callers");

  const char* const rewrites = "Rewrites";
  settings.push_back({"--default-recompute",
                      [&options] { return core::RecomputeName(options.default_recompute); }});
  app.add_option_function<std::string>(
         "--default-recompute",
         [&options](const std::string& value) {
           v1::Recompute_Parse(absl::StrCat("RECOMPUTE_", absl::AsciiStrToUpper(value)),
                               &options.default_recompute);
         },
         "Which ops may be recomputed, for requests with the strategy budget that leave recompute "
         "unset: off, cheap or all")
      ->type_name("WHICH")
      ->check(CLI::IsMember(std::set<std::string>{"off", "cheap", "all"}))
      ->default_str("cheap")
      ->group(rewrites);

  settings.push_back(
      {"--default-offload", [&options] { return core::OffloadName(options.default_offload); }});
  app.add_option_function<std::string>(
         "--default-offload",
         [&options](const std::string& value) {
           v1::Offload_Parse(absl::StrCat("OFFLOAD_", absl::AsciiStrToUpper(value)),
                             &options.default_offload);
         },
         "Whether optimizer state may be kept in host memory where no other plan fits, for "
         "requests with the strategy budget that leave offload unset: off or optimizer")
      ->type_name("WHICH")
      ->check(CLI::IsMember(std::set<std::string>{"off", "optimizer"}))
      ->default_str("off")
      ->group(rewrites);

  settings.push_back({"--dry-run", [&options] { return options.dry_run ? "true" : "false"; }});
  app.add_flag(
         "--dry-run", options.dry_run,
         "Every rewrite is planned, verified, reported and counted, but the graph is returned "
         "unchanged: shows how much the jobs of a site would swap, and how much it would cost them")
      ->group(rewrites);

  const char* const capacity = "Capacity";
  v1::Limits& limits = options.limits;
  settings.push_back({"--workers", [&options] { return absl::StrCat(WorkerCount(options)); }});
  app.add_option_function<int>(
         "--workers", [&limits](const int& n) { limits.set_max_concurrent_requests(n); },
         "The number of requests that run at once, one thread each; 0: one per core, "
         "or of the cgroup's CPU limit")
      ->type_name("NUMBER")
      ->check(CLI::Range(0, 1024).description(""))
      ->default_str("0")
      ->group(capacity);
  settings.push_back({"--memory-budget", [&options] { return SizeText(MemoryBudget(options)); }});
  app.add_option(
         "--memory-budget", options.memory_budget_bytes,
         "Memory for all requests in flight: their graphs and the work on them. Peak resident "
         "memory is at most 256MiB above it. If not given: the cgroup's limit minus 256MiB and a "
         "tenth, or half of the machine's memory")
      ->type_name("SIZE")
      ->transform(CLI::Validator(SizeAsNumber, ""))
      ->check(CLI::PositiveNumber.description(""))
      ->group(capacity);
  AddLimit(app, settings, "--max-inflight-bytes", limits, &v1::Limits::max_inflight_bytes,
           &v1::Limits::set_max_inflight_bytes, true,
           "The maximum graph bytes of all requests in flight; further requests are rejected as "
           "OVERLOADED. If not given: two fifths of --memory-budget")
      ->default_str("")
      ->group(capacity);
  settings.push_back(
      {"--max-caller-bytes", [&options] { return SizeText(MaxCallerBytes(options)); }});
  app.add_option(
         "--max-caller-bytes", options.max_caller_bytes,
         "The maximum graph bytes in flight of one caller (a name in --access-file, or else an "
         "address), unless it is one request and no other caller needs them; further requests are "
         "rejected as OVERLOADED. If not given: half of --max-inflight-bytes")
      ->type_name("SIZE")
      ->transform(CLI::Validator(SizeAsNumber, ""))
      ->check(CLI::PositiveNumber.description(""))
      ->group(capacity);
  AddSize(
      app, settings, "--cache-bytes", options.cache_bytes,
      "The maximum memory, a part of --memory-budget, for recent rewrites, from which identical "
      "requests are answered; freed before a request is rejected for lack of memory. 0: no cache")
      ->group(capacity);
  AddDuration(app, settings, "--target-wait", options.target_wait,
              "How long requests may wait for a worker under sustained load; those that would wait "
              "longer, and longer than twice their own work, are rejected as OVERLOADED")
      ->group(capacity);
  AddNumber(app, settings, "--max-queued-requests", options.max_queued_requests, 1'000'000,
            "The number of requests that may wait for a worker; further requests are rejected as "
            "OVERLOADED")
      ->group(capacity);
  settings.push_back(
      {"--max-connections", [&options] { return absl::StrCat(MaxConnections(options)); }});
  app.add_option(
         "--max-connections", options.max_connections,
         "The maximum number of open connections; further ones are closed on arrival. If not "
         "given: 4096, or as many as the limit on open files allows, if fewer")
      ->type_name("NUMBER")
      ->check(CLI::Range(1, 1'000'000).description(""))
      ->group(capacity);
  settings.push_back(
      {"--max-host-connections", [&options] { return absl::StrCat(MaxHostConnections(options)); }});
  app.add_option(
         "--max-host-connections", options.max_host_connections,
         "The maximum number of open connections of one address (IPv6: /64). If not given: three "
         "quarters of --max-connections")
      ->type_name("NUMBER")
      ->check(CLI::Range(1, 1'000'000).description(""))
      ->group(capacity);
  settings.push_back({"--max-concurrent-streams",
                      [&limits] { return absl::StrCat(limits.max_concurrent_streams()); }});
  app.add_option_function<int>(
         "--max-concurrent-streams",
         [&limits](const int& n) { limits.set_max_concurrent_streams(n); },
         "The number of concurrent calls on one connection; further calls wait at the client")
      ->type_name("NUMBER")
      ->check(CLI::Range(1, 1'000'000).description(""))
      ->default_str(absl::StrCat(limits.max_concurrent_streams()))
      ->group(capacity);
  AddDuration(app, settings, "--idle-timeout", options.idle_timeout,
              "Cancel a stream whose client neither sends nor reads anything for this long, or has "
              "kept its worker waiting for this long in total")
      ->group(capacity);

  AddSize(
      app, settings, "--min-upload-rate", options.min_upload_rate,
      "Cancel a stream whose upload is more than 5 seconds behind this many bytes per second; 0: "
      "never")
      ->group(capacity);

  const char* const per_request = "Limits per request";
  AddDuration(app, settings, "--max-request-time", options.max_request_time,
              "The maximum duration of a request, including upload and waiting, regardless of the "
              "client's deadline")
      ->group(per_request);
  AddLimit(app, settings, "--max-graph-bytes", limits, &v1::Limits::max_graph_bytes,
           &v1::Limits::set_max_graph_bytes, true, "The maximum size of a streamed graph")
      ->group(per_request);
  AddLimit(app, settings, "--max-unary-bytes", limits, &v1::Limits::max_unary_bytes,
           &v1::Limits::set_max_unary_bytes, true,
           "The maximum size of the request message of the unary Rewrite")
      ->group(per_request);
  AddLimit(app, settings, "--max-chunk-bytes", limits, &v1::Limits::max_chunk_bytes,
           &v1::Limits::set_max_chunk_bytes, true, "The maximum size of a chunk of a stream")
      ->group(per_request);
  AddLimit(app, settings, "--max-metadata-bytes", limits, &v1::Limits::max_metadata_bytes,
           &v1::Limits::set_max_metadata_bytes, true,
           "The maximum size of a request's metadata (headers), from 1KiB to 1MiB")
      ->group(per_request);
  AddLimit(app, settings, "--max-option-bytes", limits, &v1::Limits::max_option_bytes,
           &v1::Limits::set_max_option_bytes, true,
           "The maximum size of a request's options, not counting a profile and a plan to apply")
      ->group(per_request);
  AddLimit(app, settings, "--max-node-count", limits, &v1::Limits::max_node_count,
           &v1::Limits::set_max_node_count, false, "The maximum number of nodes of a graph")
      ->group(per_request);
  AddLimit(app, settings, "--max-input-count", limits, &v1::Limits::max_input_count,
           &v1::Limits::set_max_input_count, false,
           "The maximum number of inputs (data and control) of all nodes of a graph together")
      ->group(per_request);
  AddLimit(
      app, settings, "--max-search-steps", limits, &v1::Limits::max_search_steps,
      &v1::Limits::set_max_search_steps, false,
      "The maximum number of steps of all searches of a request: one for each node visited, and "
      "three for each node of a plan that is simulated")
      ->group(per_request);

  AddDuration(
      app, settings, "--drain-delay", options.drain_delay,
      "How long requests are still accepted after SIGTERM, while health says NOT_SERVING; in "
      "Kubernetes about 5s, until no endpoint refers to this Pod")
      ->group("Stopping");
  AddDuration(
      app, settings, "--drain-timeout", options.drain_timeout,
      "How long running requests may then continue before they are cancelled; the sum of both "
      "must be below Kubernetes' terminationGracePeriodSeconds")
      ->group("Stopping");
  settings.push_back({"--log-level", [&options] { return options.log_level; }});
  settings.push_back({"--log-format", [&options] { return options.log_format; }});
  app.add_option(
         "--log-level", options.log_level,
         "The lowest level that is logged to stderr: trace, debug, info, warn, error or off")
      ->type_name("LEVEL")
      ->check(
          CLI::IsMember(std::set<std::string>{"trace", "debug", "info", "warn", "error", "off"}))
      ->capture_default_str()
      ->group("Logging");
  app.add_option("--log-format", options.log_format,
                 "The format of the log: text, or json with one object per line")
      ->type_name("FORMAT")
      ->check(CLI::IsMember(std::set<std::string>{"text", "json"}))
      ->capture_default_str()
      ->group("Logging");

  const char* const journal = "Journal";
  CLI::Option* const folder =
      AddPath(app, settings, "--journal", options.journal, "DIR",
              "Write a line of JSON about each request, never its graph, into files in this folder")
          ->group(journal);
  AddSize(app, settings, "--journal-file-bytes", options.journal_file_bytes,
          "The maximum size of one of its files")
      ->check(CLI::Range(kMinJournalFileBytes, kMaxJournalFileBytes).description(""))
      ->needs(folder)
      ->group(journal);
  AddNumber(app, settings, "--journal-files", options.journal_files, 100'000,
            "The maximum number of files; the oldest one is deleted")
      ->needs(folder)
      ->group(journal);
}

// The graphs' share of the budget: a rewrite with forecasts and a report takes up to four times its
// graph in addition (tests/benchmarks/scale_benchmark.cc), most graphs less.
constexpr double kGraphShare = 0.4;

// Derives the limits that are not given from the memory budget.
void FollowBudget(const CLI::App& app, Options* options) {
  v1::Limits* const limits = &options->limits;
  if (app.count("--max-inflight-bytes") == 0) {
    limits->set_max_inflight_bytes(
        static_cast<int64_t>(kGraphShare * static_cast<double>(MemoryBudget(*options))));
  }
  const int64_t budget = limits->max_inflight_bytes();
  if (app.count("--max-graph-bytes") == 0) {
    limits->set_max_graph_bytes(std::min(limits->max_graph_bytes(), budget));
  }
  if (app.count("--max-unary-bytes") == 0) {
    limits->set_max_unary_bytes(std::min(limits->max_unary_bytes(), budget));
  }
}

// Returns the error about contradicting flags; "" without any.
std::string Conflict(const Options& options) {
  const TlsFiles& tls = options.tls;
  if (tls.cert.empty() != tls.key.empty()) {
    return "--tls-cert and --tls-key need each other; give both or none";
  }
  if (!tls.client_ca.empty() && !tls.enabled()) {
    return "--tls-client-ca needs --tls-cert and --tls-key";
  }
  if (options.insecure && tls.enabled()) {
    return "--insecure means no TLS and --tls-cert means TLS; leave one out";
  }
  if (tls.enabled() &&
      std::all_of(options.listen.begin(), options.listen.end(),
                  [](const std::string& address) { return absl::StartsWith(address, "unix:"); })) {
    return "--tls-cert has no effect: no --listen is a HOST:PORT, and Unix sockets are not "
           "encrypted";
  }
  if (options.max_request_time == absl::ZeroDuration()) {
    return "--max-request-time is 0 and no request could be answered; give a time, or inf";
  }
  const v1::Limits& limits = options.limits;
  // Below, gRPC's own headers do not fit; above, a single request takes as much as thousands may.
  if (limits.max_metadata_bytes() < 1 << 10 || limits.max_metadata_bytes() > 1 << 20) {
    return absl::StrCat("--max-metadata-bytes is ", limits.max_metadata_bytes(),
                        " and must be from 1KiB to 1MiB");
  }
  if (limits.max_chunk_bytes() > std::numeric_limits<int32_t>::max()) {
    return absl::StrCat("--max-chunk-bytes is ", limits.max_chunk_bytes(),
                        " and gRPC cannot carry more than 2147483647; lower it");
  }
  // The maxima of protobuf and gRPC.
  constexpr int64_t kMaxMessageBytes = std::numeric_limits<int32_t>::max();
  if (limits.max_graph_bytes() > kMaxMessageBytes) {
    return absl::StrCat("--max-graph-bytes is ", limits.max_graph_bytes(),
                        " and TensorFlow cannot read more than ", kMaxMessageBytes, "; lower it");
  }
  if (limits.max_unary_bytes() > kMaxMessageBytes) {
    return absl::StrCat("--max-unary-bytes is ", limits.max_unary_bytes(),
                        " and gRPC cannot carry more than ", kMaxMessageBytes, "; lower it");
  }
  // More than any machine has, and far from the overflow of 64-bit sums.
  constexpr int64_t kMaxInflightBytes = int64_t{1} << 50;
  if (limits.max_inflight_bytes() > kMaxInflightBytes) {
    return absl::StrCat("--max-inflight-bytes is ", limits.max_inflight_bytes(),
                        " and must be at most ", kMaxInflightBytes, " (1 PiB)");
  }
  if (options.memory_budget_bytes > kMaxInflightBytes) {
    return absl::StrCat("--memory-budget is ", options.memory_budget_bytes, " and must be at most ",
                        kMaxInflightBytes, " (1 PiB)");
  }
  if (options.memory_budget_bytes != 0 && options.memory_budget_bytes < kMinMemoryBudget) {
    return absl::StrCat("--memory-budget is ", options.memory_budget_bytes,
                        " and must be at least ", SizeText(kMinMemoryBudget));
  }
  if (limits.max_inflight_bytes() > MemoryBudget(options)) {
    return absl::StrCat("--max-inflight-bytes ", limits.max_inflight_bytes(),
                        " is above --memory-budget ", MemoryBudget(options),
                        options.memory_budget_bytes == 0 ? " (from this machine's memory)" : "",
                        ", of which graphs are a part; lower the one or raise the other");
  }
  if (limits.max_graph_bytes() > limits.max_inflight_bytes()) {
    return absl::StrCat("--max-graph-bytes ", limits.max_graph_bytes(),
                        " is above --max-inflight-bytes ", limits.max_inflight_bytes(),
                        ", so the largest graphs would never be accepted; lower the one or raise "
                        "the other");
  }
  if (limits.max_unary_bytes() > limits.max_inflight_bytes()) {
    return absl::StrCat("--max-unary-bytes ", limits.max_unary_bytes(),
                        " is above --max-inflight-bytes ", limits.max_inflight_bytes(),
                        "; lower the one or raise the other");
  }
  if (options.max_connections > MaxConnections()) {
    return absl::StrCat("--max-connections is ", options.max_connections,
                        " and the limit on open files (ulimit -n) leaves room for ",
                        MaxConnections(), "; raise that or lower the flag");
  }
  if (options.idle_timeout == absl::ZeroDuration()) {
    return "--idle-timeout 0 would cancel every stream; use inf to have none";
  }
  // Clocks count nanoseconds in 64 bits; this is more than anyone needs.
  constexpr absl::Duration kMaxDrain = absl::Hours(24 * 7);
  if (options.drain_delay > kMaxDrain ||
      (options.drain_timeout > kMaxDrain && options.drain_timeout != absl::InfiniteDuration())) {
    return "--drain-delay must be at most 168h, and --drain-timeout at most 168h or inf";
  }
  // gRPC counts milliseconds in an int.
  if (options.max_connection_age != absl::InfiniteDuration() &&
      (options.max_connection_age < absl::Seconds(1) ||
       options.max_connection_age > absl::Hours(24 * 7))) {
    return "--max-connection-age must be from 1s to 168h, or inf";
  }
  return "";
}

// CLI11's own texts of these mistakes reverse the words, and count without a remedy.
std::string UsageText(const CLI::App& app, const CLI::Error& error) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    if (option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw &&
        option->get_items_expected_max() == 1 && option->count() > 1) {
      return absl::StrCat(option->get_name(), " is given ", option->count(),
                          " times; give it once");
    }
  }
  const std::vector<std::string> unexpected = app.remaining();
  if (unexpected.empty()) return error.what();
  std::string text = "not expected:", advice;
  for (const std::string& word : unexpected) {
    absl::StrAppend(&text, " ", core::Quoted(word));
    if (advice.empty() && absl::StartsWith(word, "-")) {
      advice = core::DidYouMean(word.substr(0, word.find('=')), {flags.begin(), flags.end()});
    }
  }
  return text + advice;
}

}  // namespace

ParsedFlags ParseFlags(int argc, const char* const* argv) {
  ParsedFlags parsed;
  Options options;
  CLI::App app(kAbout, "spillwayd");
  app.footer(kFooter);
  app.set_version_flag("--version", absl::StrCat("spillwayd ", core::Version()));
  Settings settings;
  AddFlags(app, options, settings);
  app.add_flag("--check", parsed.only_check,
               "Check all files, print the effective settings and the callers, and exit");
  const auto fail = [&](absl::string_view why) {
    parsed.exit_code = kExitBadFlags;
    parsed.text = absl::StrCat("spillwayd: ", why, " (see spillwayd --help)");
    return parsed;
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    parsed.text = app.help();
    return parsed;
  } catch (const CLI::CallForVersion& version) {
    parsed.text = version.what();
    return parsed;
  } catch (const CLI::Error& error) {
    return fail(UsageText(app, error));
  }
  FollowBudget(app, &options);
  if (const std::string conflict = Conflict(options); !conflict.empty()) return fail(conflict);
  if (parsed.only_check) {
    for (const Setting& setting : settings) {
      absl::StrAppend(&parsed.text, parsed.text.empty() ? "" : "\n", setting.flag, "=",
                      setting.value());
    }
  }
  parsed.options = std::move(options);
  return parsed;
}

}  // namespace spillway::server
