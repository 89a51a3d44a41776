#include "server/flags.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rewrite_core/rewriter.h"

namespace spillway::server {
namespace {

constexpr char kAbout[] =
    "spillwayd rewrites TensorFlow training graphs so that tensors wait in host memory (Large "
    "Model "
    "Support), as a gRPC service.\n"
    "It has no authentication and no TLS: listen on loopback or on a network that you trust.";

constexpr char kFooter[] =
    "Sizes take a unit (64MiB, 2gb; factors of 1024), durations need one (500ms, 30s, 5m, inf).\n"
    "\n"
    "On SIGTERM or SIGINT the server drains and exits 0; a second signal ends it at once (exit "
    "3).\n"
    "Exit codes: 0 drained, 1 cannot listen, 2 wrong flags, 3 ended by a second signal.\n"
    "\n"
    "Examples:\n"
    "  spillwayd                                   serve this machine, all cores\n"
    "  spillwayd --listen 0.0.0.0:7070 --metrics-listen 0.0.0.0:9464\n"
    "  spillwayd --max-inflight-bytes 8GiB --drain-delay 5s    behind a Kubernetes service\n"
    "  spillwayd --listen 127.0.0.1:0 --metrics-listen none    tests: the port is printed";

// An error message of a flag, or "" where it is right: CLI11's convention.
std::string CheckAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(absl::string_view(address).substr(colon + 1), &port) || port < 0 ||
      port > std::numeric_limits<uint16_t>::max()) {
    return absl::StrCat("'", address, "' is not HOST:PORT with a port from 0 to 65535");
  }
  return "";
}

std::string CheckMetricsAddress(const std::string& address) {
  return address == "none" ? "" : CheckAddress(address);
}

// Binds a flag to a duration, which CLI11 does not know.
CLI::Option* AddDuration(CLI::App& app, const std::string& name, absl::Duration& value,
                         const std::string& help) {
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

// A size as flags spell it: `64MiB` where it is a whole number of MiB.
std::string SizeText(int64_t bytes) {
  constexpr int64_t kMiB = 1 << 20;
  return bytes % kMiB == 0 ? absl::StrCat(bytes / kMiB, "MiB") : absl::StrCat(bytes);
}

// Binds a flag to a limit: a count or, if `is_size`, a number of bytes with an optional unit.
CLI::Option* AddLimit(CLI::App& app, const std::string& name, v1::Limits& limits,
                      int64_t (v1::Limits::*get)() const, void (v1::Limits::*set)(int64_t),
                      bool is_size, const std::string& help) {
  const int64_t value = (limits.*get)();
  CLI::Option* option = app.add_option_function<int64_t>(
      name,
      [&limits, set, name](const int64_t& given) {
        if (given < 1) throw CLI::ValidationError(name, "must be at least 1");
        (limits.*set)(given);
      },
      help);
  if (is_size) option->transform(CLI::AsSizeValue(/*kb_is_1000=*/false).description(""));
  return option->type_name(is_size ? "SIZE" : "NUMBER")
      ->default_str(is_size ? SizeText(value) : absl::StrCat(value));
}

void AddFlags(CLI::App& app, Options& options) {
  app.add_option("--listen", options.listen, "Where gRPC listens; port 0 takes a free one")
      ->type_name("HOST:PORT")
      ->check(CheckAddress)
      ->capture_default_str()
      ->group("Listening");
  app.add_option("--metrics-listen", options.metrics_listen,
                 "Where Prometheus scrapes /metrics, or none")
      ->type_name("HOST:PORT")
      ->check(CheckMetricsAddress)
      ->capture_default_str()
      ->group("Listening");
  AddDuration(app, "--max-connection-age", options.max_connection_age,
              "Ask older connections to reconnect, so that clients spread over new replicas")
      ->group("Listening");

  const char* const capacity = "Capacity";
  v1::Limits& limits = options.limits;
  app.add_option_function<int>(
         "--workers", [&limits](const int& n) { limits.set_max_concurrent_requests(n); },
         "Rewrites that run at once, one thread each; 0: one per core")
      ->type_name("NUMBER")
      ->check(CLI::Range(0, 1024).description(""))
      ->default_str("0")
      ->group(capacity);
  AddLimit(app, "--max-inflight-bytes", limits, &v1::Limits::max_inflight_bytes,
           &v1::Limits::set_max_inflight_bytes, true,
           "Graph bytes of all requests in flight; beyond it they are refused as OVERLOADED. Plan "
           "about three times as much memory")
      ->group(capacity);
  app.add_option("--max-queued-requests", options.max_queued_requests,
                 "Requests that may wait for a worker; beyond it they are refused as OVERLOADED")
      ->type_name("NUMBER")
      ->check(CLI::Range(1, 1'000'000).description(""))
      ->capture_default_str()
      ->group(capacity);
  AddDuration(app, "--idle-timeout", options.idle_timeout,
              "Cancel a stream whose client neither sends nor takes anything for this long")
      ->group(capacity);

  const char* const per_request = "Limits per request";
  AddLimit(app, "--max-graph-bytes", limits, &v1::Limits::max_graph_bytes,
           &v1::Limits::set_max_graph_bytes, true, "The largest graph of a stream")
      ->group(per_request);
  AddLimit(app, "--max-unary-bytes", limits, &v1::Limits::max_unary_bytes,
           &v1::Limits::set_max_unary_bytes, true,
           "The largest request message of the unary Rewrite")
      ->group(per_request);
  AddLimit(app, "--max-node-count", limits, &v1::Limits::max_node_count,
           &v1::Limits::set_max_node_count, false, "The most nodes of a graph")
      ->group(per_request);
  AddLimit(app, "--max-search-steps", limits, &v1::Limits::max_search_steps,
           &v1::Limits::set_max_search_steps, false,
           "The most steps (nodes visited) of one strategy's searches")
      ->group(per_request);

  AddDuration(app, "--drain-delay", options.drain_delay,
              "After SIGTERM, how long requests are still taken while health says NOT_SERVING; in "
              "Kubernetes about 5s, until no endpoint points here")
      ->group("Stopping");
  AddDuration(app, "--drain-timeout", options.drain_timeout,
              "Then, how long running requests may go on before they are cancelled; the sum stays "
              "below Kubernetes' terminationGracePeriodSeconds")
      ->group("Stopping");
  app.add_option("--log-level", options.log_level,
                 "trace, debug, info, warn, error or off; logs go to stderr")
      ->type_name("LEVEL")
      ->check(
          CLI::IsMember(std::set<std::string>{"trace", "debug", "info", "warn", "error", "off"}))
      ->capture_default_str()
      ->group("Logging");
}

// Flags that contradict each other; "" if none do.
std::string Conflict(const Options& options) {
  const v1::Limits& limits = options.limits;
  // Above these, protobuf and gRPC cannot follow.
  constexpr int64_t kMaxMessageBytes = std::numeric_limits<int32_t>::max();
  if (limits.max_graph_bytes() > kMaxMessageBytes) {
    return absl::StrCat("--max-graph-bytes is ", limits.max_graph_bytes(),
                        " and TensorFlow cannot read more than ", kMaxMessageBytes, "; lower it");
  }
  if (limits.max_unary_bytes() > kMaxMessageBytes) {
    return absl::StrCat("--max-unary-bytes is ", limits.max_unary_bytes(),
                        " and gRPC cannot carry more than ", kMaxMessageBytes, "; lower it");
  }
  if (limits.max_graph_bytes() > limits.max_inflight_bytes()) {
    return absl::StrCat("--max-graph-bytes ", limits.max_graph_bytes(),
                        " is above --max-inflight-bytes ", limits.max_inflight_bytes(),
                        ", so the largest graphs would never be let in; lower the one or raise "
                        "the other");
  }
  if (limits.max_unary_bytes() > limits.max_inflight_bytes()) {
    return absl::StrCat("--max-unary-bytes ", limits.max_unary_bytes(),
                        " is above --max-inflight-bytes ", limits.max_inflight_bytes(),
                        "; lower the one or raise the other");
  }
  if (options.idle_timeout == absl::ZeroDuration()) {
    return "--idle-timeout 0 would cancel every stream; use inf to have none";
  }
  // Clocks count nanoseconds in 64 bits; nobody means so much.
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

}  // namespace

ParsedFlags ParseFlags(int argc, const char* const* argv) {
  ParsedFlags parsed;
  Options options;
  CLI::App app(kAbout, "spillwayd");
  app.footer(kFooter);
  app.set_version_flag("--version", absl::StrCat("spillwayd ", core::Version()));
  AddFlags(app, options);
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
    return fail(error.what());
  }
  if (const std::string conflict = Conflict(options); !conflict.empty()) return fail(conflict);
  parsed.options = std::move(options);
  return parsed;
}

}  // namespace spillway::server
