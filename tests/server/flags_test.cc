#include "server/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spillway::server {
namespace {

using testing::HasSubstr;

ParsedFlags Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "spillwayd");
  return ParseFlags(static_cast<int>(arguments.size()), arguments.data());
}

TEST(FlagsTest, DefaultsAreThoseOfOptions) {
  const ParsedFlags flags = Parse({});
  ASSERT_TRUE(flags.options.has_value()) << flags.text;
  const Options defaults;
  EXPECT_EQ(flags.options->listen, "127.0.0.1:7070");
  EXPECT_EQ(flags.options->metrics_listen, "127.0.0.1:9464");
  EXPECT_EQ(flags.options->limits.SerializeAsString(), core::DefaultLimits().SerializeAsString());
  EXPECT_EQ(flags.options->max_queued_requests, defaults.max_queued_requests);
  EXPECT_EQ(flags.options->idle_timeout, defaults.idle_timeout);
  EXPECT_EQ(flags.options->drain_delay, absl::ZeroDuration());
  EXPECT_EQ(flags.options->drain_timeout, absl::Seconds(30));
}

TEST(FlagsTest, EveryFlagReachesItsField) {
  const ParsedFlags flags = Parse({"--listen",
                                   "0.0.0.0:1",
                                   "--metrics-listen",
                                   "[::1]:2",
                                   "--max-connection-age",
                                   "1h",
                                   "--workers",
                                   "3",
                                   "--max-inflight-bytes",
                                   "8GiB",
                                   "--max-queued-requests",
                                   "4",
                                   "--idle-timeout",
                                   "5s",
                                   "--max-graph-bytes",
                                   "6mb",
                                   "--max-unary-bytes",
                                   "700",
                                   "--max-node-count",
                                   "8",
                                   "--max-search-steps",
                                   "9",
                                   "--drain-delay",
                                   "10ms",
                                   "--drain-timeout",
                                   "11m",
                                   "--log-level",
                                   "debug"});
  ASSERT_TRUE(flags.options.has_value()) << flags.text;
  const Options& options = *flags.options;
  EXPECT_EQ(options.listen, "0.0.0.0:1");
  EXPECT_EQ(options.metrics_listen, "[::1]:2");
  EXPECT_EQ(options.max_connection_age, absl::Hours(1));
  EXPECT_EQ(options.limits.max_concurrent_requests(), 3);
  EXPECT_EQ(options.limits.max_inflight_bytes(), int64_t{8} << 30);
  EXPECT_EQ(options.max_queued_requests, 4);
  EXPECT_EQ(options.idle_timeout, absl::Seconds(5));
  EXPECT_EQ(options.limits.max_graph_bytes(), 6 << 20);
  EXPECT_EQ(options.limits.max_unary_bytes(), 700);
  EXPECT_EQ(options.limits.max_node_count(), 8);
  EXPECT_EQ(options.limits.max_search_steps(), 9);
  EXPECT_EQ(options.drain_delay, absl::Milliseconds(10));
  EXPECT_EQ(options.drain_timeout, absl::Minutes(11));
  EXPECT_EQ(options.log_level, "debug");
}

TEST(FlagsTest, InfAndNone) {
  const ParsedFlags flags = Parse({"--idle-timeout=inf", "--metrics-listen=none"});
  ASSERT_TRUE(flags.options.has_value()) << flags.text;
  EXPECT_EQ(flags.options->idle_timeout, absl::InfiniteDuration());
  EXPECT_EQ(flags.options->metrics_listen, "none");
}

struct BadFlags {
  std::vector<const char*> arguments;
  std::vector<const char*> words;  // All in the message.
};

TEST(FlagsTest, WrongOnesAreNamedInOneLine) {
  const BadFlags cases[] = {
      {{"--bogus"}, {"--bogus"}},
      {{"stray"}, {"stray"}},
      {{"--listen"}, {"--listen"}},
      {{"--listen", "localhost"}, {"--listen", "HOST:PORT"}},
      {{"--listen", "localhost:http"}, {"--listen", "HOST:PORT"}},
      {{"--listen", ":1"}, {"--listen", "HOST:PORT"}},
      {{"--listen", "localhost:65536"}, {"--listen", "65535"}},
      {{"--listen", "localhost:-1"}, {"--listen", "65535"}},
      {{"--listen", "none"}, {"--listen", "HOST:PORT"}},
      {{"--metrics-listen", "nowhere"}, {"--metrics-listen", "HOST:PORT"}},
      {{"--workers", "-1"}, {"--workers"}},
      {{"--workers", "many"}, {"--workers"}},
      {{"--max-queued-requests", "0"}, {"--max-queued-requests"}},
      {{"--max-node-count", "0"}, {"--max-node-count", "at least 1"}},
      {{"--max-inflight-bytes", "5parsecs"}, {"--max-inflight-bytes", "parsecs"}},
      {{"--max-inflight-bytes", "-5"}, {"--max-inflight-bytes"}},
      {{"--drain-delay", "5"}, {"--drain-delay", "30s"}},
      {{"--drain-timeout", "-5s"}, {"--drain-timeout"}},
      {{"--drain-delay", "inf"}, {"--drain-delay"}},
      {{"--drain-timeout", "1000000h"}, {"--drain-timeout"}},
      {{"--idle-timeout", "0s"}, {"--idle-timeout", "inf"}},
      {{"--max-connection-age", "1ms"}, {"--max-connection-age"}},
      {{"--log-level", "loud"}, {"--log-level"}},
      {{"--max-graph-bytes", "3GiB"}, {"--max-graph-bytes", "2147483647"}},
      {{"--max-unary-bytes", "3GiB"}, {"--max-unary-bytes", "2147483647"}},
      // Contradictions name both.
      {{"--max-inflight-bytes", "1GiB"}, {"--max-graph-bytes", "--max-inflight-bytes"}},
      {{"--max-inflight-bytes", "1MiB", "--max-graph-bytes", "1MiB"},
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

TEST(FlagsTest, HelpNamesEveryFlagAndItsDefault) {
  const ParsedFlags flags = Parse({"--help"});
  EXPECT_FALSE(flags.options.has_value());
  EXPECT_EQ(flags.exit_code, 0);
  for (const char* words :
       {"--listen HOST:PORT=127.0.0.1:7070", "--metrics-listen HOST:PORT=127.0.0.1:9464",
        "--workers", "--max-graph-bytes", "--max-unary-bytes SIZE=64MiB", "--max-node-count",
        "--max-search-steps", "--max-inflight-bytes SIZE=4096MiB", "--drain-delay",
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
