#include "tests/server/daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "rewrite_core/rewriter.h"

namespace spillway::server {
namespace {

std::vector<std::string> Command(std::vector<std::string> flags) {
  flags.insert(flags.begin(), {kProgram, "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0"});
  return flags;
}

}  // namespace

Daemon::Daemon(std::vector<std::string> flags) : process_(Command(std::move(flags))) {
  const std::string hello = process_.ReadLine();
  const std::string start = absl::StrCat("spillwayd ", core::Version(), " listening on ");
  EXPECT_THAT(hello, ::testing::StartsWith(start));
  address_ = std::string(absl::StripPrefix(hello, start));
  const std::string metrics = process_.ReadLine();
  absl::string_view port = metrics;
  EXPECT_TRUE(absl::ConsumePrefix(&port, "metrics on http://127.0.0.1:") &&
              absl::ConsumeSuffix(&port, "/metrics") && absl::SimpleAtoi(port, &metrics_port_))
      << metrics;
}

Finished RunToEnd(std::vector<std::string> flags) {
  flags.insert(flags.begin(), kProgram);
  ChildProcess process(flags);
  Finished finished;
  finished.out = process.ReadStdout();
  finished.err = process.ReadStderr();
  finished.exit_code = process.Wait();
  return finished;
}

}  // namespace spillway::server
