// More connections than the program has descriptors for, or accepts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/server/daemon.h"
#include "tests/server/raw_stream.h"
#include "tests/server/test_client.h"
#include "tests/testing/sanitizers.h"

namespace spillway::server {
namespace {

using ::testing::HasSubstr;

// Clients that connect, speak HTTP/2, and call nothing.
class IdleClients {
 public:
  IdleClients(const std::string& address, int count) {
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    name.sin_port = htons(static_cast<in_port_t>(port));
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const std::string hello =
        absl::StrCat("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", std::string{0, 0, 0, 4, 0, 0, 0, 0, 0});
    for (int i = 0; i < count; ++i) {
      fds_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      EXPECT_EQ(connect(fds_.back(), reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
      send(fds_.back(), hello.data(), hello.size(), MSG_NOSIGNAL);
    }
  }
  ~IdleClients() {
    for (const int fd : fds_) close(fd);
  }
  IdleClients(const IdleClients&) = delete;

  // The number of connections that the server has closed.
  int Refused() const {
    return static_cast<int>(std::count_if(fds_.begin(), fds_.end(), [](int fd) {
      char byte;
      const ssize_t got = recv(fd, &byte, 1, MSG_DONTWAIT);
      return got == 0 || (got < 0 && errno == ECONNRESET);
    }));
  }

 private:
  std::vector<int> fds_;
};

bool Serves(const std::string& address) {
  TestClient client(address);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  v1::GetCapabilitiesResponse response;
  return client.stub().GetCapabilities(&context, {}, &response).ok();
}

double OpenConnections(const Daemon& daemon) {
  return Sample(daemon.Scrape(), "spillway_connections");
}

TEST(ConnectionsTest, MoreThanTheLimitOfFilesAreRefusedAndTheOthersServed) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  constexpr int kDescriptors = 256;
  if (before.rlim_cur <= 2 * kDescriptors) GTEST_SKIP() << "too few descriptors for the clients";
  // Both the soft and the hard limit, which it cannot raise.
  ChildProcess shell({"sh", "-c",
                      absl::StrCat("ulimit -n ", kDescriptors, "; exec ", kProgram,
                                   " --listen 127.0.0.1:0 --metrics-listen none")});
  std::string address = shell.ReadLine();
  address.erase(0, address.rfind(' ') + 1);
  TestClient first(address);
  RawStream health(first.channel(), "/grpc.health.v1.Health/Watch", HealthRequest(""));
  EXPECT_EQ(health.Next(), kServing);
  {
    const IdleClients many(address, kDescriptors + 50);
    EXPECT_TRUE(Eventually([&] { return many.Refused() >= 50; }));
    grpc::ClientContext context;
    v1::GetCapabilitiesResponse response;
    EXPECT_TRUE(first.stub().GetCapabilities(&context, {}, &response).ok())
        << "who came first is served meanwhile";
  }
  EXPECT_TRUE(Eventually([&] { return Serves(address); })) << "others, once those have gone";
  shell.Signal(SIGTERM);
  EXPECT_THAT(shell.ReadStderr(), HasSubstr("connections refused"));
  EXPECT_EQ(shell.Wait(), 0);
}

// With so few descriptors, of which none is inherited, gRPC starts, but none is left for what ends
// the server.
TEST(ConnectionsTest, WithTooFewDescriptorsToBeStoppedItDoesNotStart) {
  if (spillway::testing::kAddressSanitizer) {
    GTEST_SKIP() << "the check of types that comes with it opens a pipe to look at memory";
  }
  ChildProcess shell({"sh", "-c",
                      absl::StrCat("exec 3>&- 4>&- 5>&- 6>&- 7>&-; ulimit -n 8; exec ", kProgram,
                                   " --listen 127.0.0.1:0 --metrics-listen none --workers 1")});
  EXPECT_THAT(shell.ReadStderr(), HasSubstr("raise the limit on open files (ulimit -n)"));
  EXPECT_EQ(shell.Wait(), 1);
}

TEST(ConnectionsTest, ThoseAboveMaxConnectionsAreRefusedCountedAndLoggedOnce) {
  Daemon daemon({"--max-connections=10", "--max-host-connections=10"});
  EXPECT_EQ(Sample(daemon.Scrape(), "spillway_connections_limit"), 10);
  {
    const IdleClients many(daemon.address(), 30);
    EXPECT_TRUE(Eventually([&] { return many.Refused() == 20; })) << many.Refused();
    EXPECT_EQ(OpenConnections(daemon), 10);
    EXPECT_EQ(Sample(daemon.Scrape(), "spillway_refused_connections_total"), 20);
    EXPECT_FALSE(Serves(daemon.address()));
  }
  EXPECT_TRUE(Eventually([&] { return OpenConnections(daemon) == 0; }));
  EXPECT_TRUE(Serves(daemon.address()));
  daemon.process().Signal(SIGTERM);
  const std::string log = daemon.process().ReadStderr();
  EXPECT_EQ(daemon.process().Wait(), 0);
  EXPECT_THAT(log, HasSubstr("max_connections=10"));
  EXPECT_EQ(log.find("connections refused"), log.rfind("connections refused")) << log;
}

// gRPC 1.51's own listener would stop for good.
TEST(ConnectionsTest, RecoversWhenDescriptorsRanOut) {
  if (spillway::testing::kAddressSanitizer) {
    GTEST_SKIP() << "the check of types that comes with it opens a pipe to look at memory";
  }
  Daemon daemon;
  ASSERT_TRUE(Serves(daemon.address()));
  // The server does not choose this: its limit is lowered while it runs.
  const pid_t pid = daemon.process().pid();
  rlimit before;
  ASSERT_EQ(prlimit(pid, RLIMIT_NOFILE, nullptr, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;  // 0 to 2, which are open.
  ASSERT_EQ(prlimit(pid, RLIMIT_NOFILE, &none, nullptr), 0);
  {
    const IdleClients many(daemon.address(), 20);
    std::string line;
    do {
      line = daemon.process().ReadErrorLine();
      ASSERT_NE(line, "") << "it ended";
    } while (line.find("no connection can be accepted") == std::string::npos);
  }
  ASSERT_EQ(prlimit(pid, RLIMIT_NOFILE, &before, nullptr), 0);
  EXPECT_TRUE(Eventually([&] { return Serves(daemon.address()); }));
  EXPECT_GT(Sample(daemon.Scrape(), "spillway_accept_failures_total"), 0);
}

}  // namespace
}  // namespace spillway::server
