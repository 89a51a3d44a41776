#include "server/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "server/server.h"
#include "tests/testing/sizes.h"

namespace spillway::server {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

ParsedFlags Parse(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"spillwayd"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  return ParseFlags(static_cast<int>(argv.size()), argv.data());
}

std::set<std::string> FlagsIn(const std::string& help) {
  static const std::regex flag("--[a-z][a-z-]*");
  std::set<std::string> flags;
  for (std::sregex_iterator it(help.begin(), help.end(), flag), end; it != end; ++it) {
    flags.insert(it->str());
  }
  return flags;
}

TEST(FlagsTest, DefaultsAreThoseOfOptions) {
  const ParsedFlags flags = Parse({});
  ASSERT_TRUE(flags.options.has_value()) << flags.text;
  const Options defaults;
  EXPECT_THAT(flags.options->listen, ElementsAre("127.0.0.1:7070"));
  EXPECT_EQ(flags.options->metrics_listen, "127.0.0.1:9464");
  v1::Limits limits = core::DefaultLimits();
  // These depend on the memory of the machine.
  const int64_t graphs = static_cast<int64_t>(0.4 * static_cast<double>(MemoryBudget(defaults)));
  limits.set_max_inflight_bytes(graphs);
  limits.set_max_graph_bytes(std::min(limits.max_graph_bytes(), graphs));
  limits.set_max_unary_bytes(std::min(limits.max_unary_bytes(), graphs));
  EXPECT_EQ(flags.options->limits.SerializeAsString(), limits.SerializeAsString());
  EXPECT_EQ(flags.options->memory_budget_bytes, 0);
  EXPECT_EQ(flags.options->target_wait, defaults.target_wait);
  EXPECT_EQ(flags.options->min_upload_rate, defaults.min_upload_rate);
  EXPECT_EQ(flags.options->max_connections, 0) << "what the limit of open files leaves";
  EXPECT_EQ(flags.options->max_queued_requests, defaults.max_queued_requests);
  EXPECT_EQ(flags.options->idle_timeout, defaults.idle_timeout);
  EXPECT_EQ(flags.options->drain_delay, absl::ZeroDuration());
  EXPECT_EQ(flags.options->drain_timeout, absl::Seconds(30));
}

TEST(FlagsTest, SizesAreThoseOfEveryProgram) {
  const auto sizes = size_table::ReadSizes();
  EXPECT_GE(sizes.size(), size_table::kMinSizes);
  for (const auto& [text, bytes] : sizes) {
    const ParsedFlags flags = Parse({"--cache-bytes", text});
    // Sizes above 2^50 exceed the memory of any machine and are refused, but they were parsed.
    if (bytes < 0) {
      EXPECT_FALSE(flags.options.has_value()) << text;
      EXPECT_THAT(flags.text, HasSubstr("--cache-bytes")) << text;
    } else if (flags.options.has_value()) {
      EXPECT_EQ(flags.options->cache_bytes, bytes) << text;
    } else {
      EXPECT_GT(bytes, int64_t{1} << 30) << text << ": " << flags.text;
    }
  }
}

TEST(FlagsTest, EveryFlagReachesItsField) {
  const ParsedFlags flags = Parse(absl::StrSplit(
      "--listen 0.0.0.0:1 --listen unix:/run/spillwayd.sock --tls-cert cert.pem "
      "--tls-key key.pem --tls-client-ca ca.pem --access-file callers.txtpb "
      "--metrics-listen [::1]:2 --max-connection-age 1h --workers 3 --memory-budget 9GiB "
      "--default-recompute all --default-offload optimizer --dry-run "
      "--max-inflight-bytes 8GiB --max-caller-bytes 1GiB --cache-bytes 15KiB --target-wait 13ms "
      "--min-upload-rate 14KiB --max-connections 15 --max-host-connections 12 "
      "--max-queued-requests 4 "
      "--idle-timeout 5s --max-graph-bytes 6mb --max-unary-bytes 700 --max-chunk-bytes 701 "
      "--max-metadata-bytes 16KiB --max-option-bytes 704 --max-request-time 12m "
      "--max-concurrent-streams 702 --max-input-count 703 --max-node-count 8 "
      "--max-search-steps 9 --drain-delay 10ms --drain-timeout 11m --log-level debug "
      "--log-format json --journal /var/log/spillway --journal-file-bytes 17KiB "
      "--journal-files 18",
      ' '));
  ASSERT_TRUE(flags.options.has_value()) << flags.text;
  const Options& options = *flags.options;
  EXPECT_THAT(options.listen, ElementsAre("0.0.0.0:1", "unix:/run/spillwayd.sock"));
  EXPECT_EQ(options.metrics_listen, "[::1]:2");
  EXPECT_EQ(options.default_recompute, v1::RECOMPUTE_ALL);
  EXPECT_EQ(options.default_offload, v1::OFFLOAD_OPTIMIZER);
  EXPECT_TRUE(options.dry_run);
  EXPECT_EQ(options.max_connection_age, absl::Hours(1));
  EXPECT_EQ(options.limits.max_concurrent_requests(), 3);
  EXPECT_EQ(options.limits.max_inflight_bytes(), int64_t{8} << 30);
  EXPECT_EQ(options.memory_budget_bytes, int64_t{9} << 30);
  EXPECT_EQ(options.max_caller_bytes, int64_t{1} << 30);
  EXPECT_EQ(options.cache_bytes, 15 << 10);
  EXPECT_EQ(options.target_wait, absl::Milliseconds(13));
  EXPECT_EQ(options.min_upload_rate, 14 << 10);
  EXPECT_EQ(options.max_connections, 15);
  EXPECT_EQ(options.max_host_connections, 12);
  EXPECT_EQ(options.max_queued_requests, 4);
  EXPECT_EQ(options.idle_timeout, absl::Seconds(5));
  EXPECT_EQ(options.limits.max_graph_bytes(), 6'000'000);
  EXPECT_EQ(options.limits.max_unary_bytes(), 700);
  EXPECT_EQ(options.limits.max_node_count(), 8);
  EXPECT_EQ(options.limits.max_search_steps(), 9);
  EXPECT_EQ(options.drain_delay, absl::Milliseconds(10));
  EXPECT_EQ(options.drain_timeout, absl::Minutes(11));
  EXPECT_EQ(options.log_level, "debug");
  EXPECT_EQ(options.log_format, "json");
  EXPECT_EQ(options.tls.cert, "cert.pem");
  EXPECT_EQ(options.tls.key, "key.pem");
  EXPECT_EQ(options.tls.client_ca, "ca.pem");
  EXPECT_EQ(options.access_file, "callers.txtpb");
  EXPECT_FALSE(options.insecure);
  EXPECT_EQ(options.limits.max_chunk_bytes(), 701);
  EXPECT_EQ(options.limits.max_metadata_bytes(), 16 << 10);
  EXPECT_EQ(options.limits.max_concurrent_streams(), 702);
  EXPECT_EQ(options.limits.max_input_count(), 703);
  EXPECT_EQ(options.limits.max_option_bytes(), 704);
  EXPECT_EQ(options.max_request_time, absl::Minutes(12));
  EXPECT_EQ(options.journal, "/var/log/spillway");
  EXPECT_EQ(options.journal_file_bytes, 17 << 10);
  EXPECT_EQ(options.journal_files, 18);
}

TEST(FlagsTest, Insecure) {
  const ParsedFlags flags = Parse({"--insecure", "--listen=0.0.0.0:1"});
  ASSERT_TRUE(flags.options.has_value()) << flags.text;
  EXPECT_TRUE(flags.options->insecure);
}

TEST(FlagsTest, InfAndNone) {
  const ParsedFlags flags = Parse({"--idle-timeout=inf", "--metrics-listen=none"});
  ASSERT_TRUE(flags.options.has_value()) << flags.text;
  EXPECT_EQ(flags.options->idle_timeout, absl::InfiniteDuration());
  EXPECT_EQ(flags.options->metrics_listen, "none");
}

struct BadFlags {
  std::vector<std::string> arguments;
  std::vector<const char*> words;  // All of them in the message.
};

TEST(FlagsTest, WrongOnesAreNamedInOneLine) {
  const BadFlags cases[] = {
      {{"--bogus"}, {"spillwayd: not expected: '--bogus' (see"}},
      {{"stray"}, {"not expected: 'stray' (see"}},
      {{"--lsten", "a:1", "more"},
       {"not expected: '--lsten' 'a:1' 'more'; did you mean '--listen'? (see spillwayd --help)"}},
      {{"--workrs=1"}, {"'--workrs=1'; did you mean '--workers'?"}},
      {{"--workers", "1", "--workers", "2"}, {"--workers is given 2 times; give it once"}},
      {{"--listen"}, {"--listen"}},
      {{"--listen", "localhost"}, {"--listen", "HOST:PORT"}},
      {{"--listen", "localhost:http"}, {"--listen", "HOST:PORT"}},
      {{"--listen", ":1"}, {"--listen", "HOST:PORT"}},
      {{"--listen", "localhost:65536"}, {"--listen", "65535"}},
      {{"--listen", "localhost:-1"}, {"--listen", "65535"}},
      {{"--listen", "none"}, {"--listen", "HOST:PORT"}},
      {{"--listen", "::1:70"}, {"--listen", "brackets"}},
      {{"--listen", "unix:relative.sock"}, {"--listen", "absolute"}},
      {{"--listen", "unix:/run/a%20b.sock"}, {"--listen", "without '%'"}},
      {{"--listen", "unix:"}, {"--listen", "absolute"}},
      {{"--listen", "unix-abstract:name"}, {"--listen", "HOST:PORT"}},
      {{"--listen", "127.0.0.1:1", "--listen", "nowhere"}, {"--listen", "nowhere"}},
      {{"--metrics-listen", "unix:/run/metrics.sock"}, {"--metrics-listen", "HOST:PORT"}},
      {{"--tls-cert", "cert.pem"}, {"--tls-cert", "--tls-key"}},
      {{"--tls-key", "key.pem"}, {"--tls-cert", "--tls-key"}},
      {{"--tls-client-ca", "ca.pem"}, {"--tls-client-ca", "--tls-cert"}},
      // For variables that are not set: nothing is disabled silently.
      {{"--tls-cert", "", "--tls-key", ""}, {"--tls-cert", "empty"}},
      {{"--tls-cert", "c", "--tls-key", ""}, {"--tls-key", "empty"}},
      {{"--tls-cert", "c", "--tls-key", "k", "--tls-client-ca", ""}, {"--tls-client-ca", "empty"}},
      {{"--tls-cert", "c", "--tls-key", "k", "--tls-client-ca="}, {"--tls-client-ca"}},
      {{"--access-file", ""}, {"--access-file", "empty"}},
      {{"--metrics-listen", ""}, {"--metrics-listen", "HOST:PORT"}},
      {{"--insecure", "--tls-cert", "c", "--tls-key", "k"}, {"--insecure", "--tls-cert"}},
      {{"--listen", "unix:/s", "--tls-cert", "c", "--tls-key", "k"}, {"--tls-cert", "--listen"}},
      {{"--max-metadata-bytes", "1023"}, {"--max-metadata-bytes", "1KiB"}},
      {{"--max-metadata-bytes", "2MiB"}, {"--max-metadata-bytes", "1MiB"}},
      {{"--max-concurrent-streams", "0"}, {"--max-concurrent-streams"}},
      {{"--max-chunk-bytes", "3GiB"}, {"--max-chunk-bytes", "2147483647"}},
      {{"--max-input-count", "0"}, {"--max-input-count", "at least 1"}},
      {{"--log-format", "xml"}, {"--log-format"}},
      {{"--metrics-listen", "nowhere"}, {"--metrics-listen", "HOST:PORT"}},
      {{"--workers", "-1"}, {"--workers"}},
      {{"--workers", "many"}, {"--workers"}},
      {{"--max-connections", "0"}, {"--max-connections"}},
      {{"--max-queued-requests", "0"}, {"--max-queued-requests"}},
      {{"--max-node-count", "0"}, {"--max-node-count", "at least 1"}},
      {{"--max-inflight-bytes", "5parsecs"}, {"--max-inflight-bytes", "parsecs"}},
      {{"--max-inflight-bytes", "-5"}, {"--max-inflight-bytes"}},
      {{"--drain-delay", "5"}, {"--drain-delay", "30s"}},
      {{"--drain-timeout", "-5s"}, {"--drain-timeout"}},
      {{"--drain-delay", "inf"}, {"--drain-delay"}},
      {{"--drain-timeout", "1000000h"}, {"--drain-timeout"}},
      {{"--idle-timeout", "0s"}, {"--idle-timeout", "inf"}},
      {{"--max-request-time", "0s"}, {"--max-request-time", "inf"}},
      {{"--max-connection-age", "1ms"}, {"--max-connection-age"}},
      {{"--log-level", "loud"}, {"--log-level"}},
      {{"--max-graph-bytes", "3GiB"}, {"--max-graph-bytes", "2147483647"}},
      {{"--max-unary-bytes", "3GiB"}, {"--max-unary-bytes", "2147483647"}},
      {{"--max-inflight-bytes", "9223372036854775807"},
       {"--max-inflight-bytes", "1125899906842624"}},
      {{"--memory-budget", "0"}, {"--memory-budget"}},
      {{"--memory-budget", "63MiB"}, {"--memory-budget", "64MiB"}},
      {{"--memory-budget", "2000000GiB"}, {"--memory-budget", "1125899906842624"}},
      {{"--target-wait", "-1s"}, {"--target-wait"}},
      {{"--journal", ""}, {"--journal", "empty"}},
      {{"--journal", "/j", "--journal-file-bytes", "100"}, {"--journal-file-bytes"}},
      {{"--journal", "/j", "--journal-files", "0"}, {"--journal-files"}},
      {{"--min-upload-rate", "-1"}, {"--min-upload-rate"}},
      // Errors about contradictions name both flags.
      {{"--journal-files", "3"}, {"--journal-files", "--journal "}},
      {{"--journal-file-bytes", "1MiB"}, {"--journal-file-bytes", "--journal "}},
      {{"--memory-budget", "1GiB", "--max-inflight-bytes", "2GiB"},
       {"--max-inflight-bytes", "--memory-budget"}},
      {{"--memory-budget", "2GiB", "--max-inflight-bytes", "1GiB", "--max-graph-bytes", "1025MiB"},
       {"--max-graph-bytes", "--max-inflight-bytes"}},
      {{"--max-inflight-bytes", "1MiB", "--max-unary-bytes", "2MiB"},
       {"--max-unary-bytes", "--max-inflight-bytes"}},
  };
  for (const BadFlags& bad : cases) {
    const ParsedFlags flags = Parse(bad.arguments);
    EXPECT_FALSE(flags.options.has_value()) << bad.arguments[0];
    EXPECT_EQ(flags.exit_code, 2);
    EXPECT_EQ(flags.text.find('\n'), std::string::npos) << flags.text;
    for (const char* word : bad.words) EXPECT_THAT(flags.text, HasSubstr(word));
  }
}

TEST(FlagsTest, SizesThatAreNotGivenFollowTheBudget) {
  const ParsedFlags memory = Parse({"--memory-budget", "100MiB"});
  ASSERT_TRUE(memory.options.has_value()) << memory.text;
  EXPECT_EQ(memory.options->limits.max_inflight_bytes(), 40 << 20);
  EXPECT_EQ(memory.options->limits.max_graph_bytes(), 40 << 20);
  EXPECT_EQ(memory.options->limits.max_unary_bytes(), 40 << 20);
  const ParsedFlags flags = Parse({"--max-inflight-bytes", "50MiB"});
  ASSERT_TRUE(flags.options.has_value()) << flags.text;
  EXPECT_EQ(flags.options->limits.max_graph_bytes(), 50 << 20);
  EXPECT_EQ(flags.options->limits.max_unary_bytes(), 50 << 20);
}

TEST(FlagsTest, ConnectionsFollowTheLimitOfOpenFiles) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 300;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const ParsedFlags all = Parse({"--check"});
  const ParsedFlags most = Parse({"--max-connections=172"});
  const ParsedFlags more = Parse({"--max-connections=173"});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(all.text, HasSubstr("\n--max-connections=172\n")) << "128 are the server's own";
  EXPECT_TRUE(most.options.has_value()) << most.text;
  EXPECT_FALSE(more.options.has_value());
  EXPECT_THAT(more.text, AllOf(HasSubstr("--max-connections is 173"), HasSubstr("ulimit -n"),
                               HasSubstr("172")));
}

// Except the flags that print and exit.
TEST(FlagsTest, CheckPrintsEverySetting) {
  const ParsedFlags flags = Parse({"--check", "--workers", "3", "--max-inflight-bytes", "50MiB"});
  ASSERT_TRUE(flags.options.has_value()) << flags.text;
  EXPECT_TRUE(flags.only_check);
  const std::vector<std::string> lines = absl::StrSplit(flags.text, '\n');
  EXPECT_THAT(lines, AllOf(Contains("--workers=3"), Contains("--max-graph-bytes=50MiB"),
                           Contains("--max-caller-bytes=25MiB"), Contains("--drain-timeout=30s"),
                           Contains("--log-format=text")));
  // Not a round number, like most derived ones.
  EXPECT_THAT(Parse({"--check", "--memory-budget", "12342046KiB"}).text,
              AllOf(HasSubstr("\n--memory-budget=11.77GiB\n"),
                    HasSubstr("\n--max-inflight-bytes=4.71GiB\n"),
                    HasSubstr("\n--max-graph-bytes=2147483647\n")));
  std::set<std::string> printed;
  for (const std::string& line : lines) printed.insert(line.substr(0, line.find('=')));
  std::set<std::string> known = FlagsIn(Parse({"--help"}).text);
  for (const char* prints : {"--help", "--version", "--check"}) known.erase(prints);
  EXPECT_EQ(printed, known);
}

TEST(FlagsTest, HelpNamesEveryFlagAndItsDefault) {
  const ParsedFlags flags = Parse({"--help"});
  EXPECT_FALSE(flags.options.has_value());
  EXPECT_EQ(flags.exit_code, 0);
  for (const char* words :
       {"--listen HOST:PORT|unix:PATH=127.0.0.1:7070", "--metrics-listen HOST:PORT=127.0.0.1:9464",
        "--workers", "--max-graph-bytes", "--max-unary-bytes SIZE=64MiB", "--max-node-count",
        "--max-search-steps", "--max-inflight-bytes SIZE", "--memory-budget SIZE", "--drain-delay",
        "--drain-timeout DURATION=30s", "--log-level", "--version", "Exit codes", "Examples"}) {
    EXPECT_THAT(flags.text, HasSubstr(words));
  }
}

TEST(FlagsTest, Version) {
  const ParsedFlags flags = Parse({"--version"});
  EXPECT_FALSE(flags.options.has_value());
  EXPECT_EQ(flags.exit_code, 0);
  EXPECT_EQ(flags.text, "spillwayd " + core::Version());
}

}  // namespace
}  // namespace spillway::server
