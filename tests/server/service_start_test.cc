// spillwayd as systemd starts it (Type=notify).
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/service_notify.h"
#include "tests/server/daemon.h"
#include "tests/server/test_client.h"

namespace spillway::server {
namespace {

// The maximum wait for a datagram: far more than a start takes on a busy machine.
constexpr timeval kDatagramWait{60, 0};

TEST(ServiceStartTest, SaysWhenItListensAndWhenItStops) {
  const std::string name = absl::StrCat("@spillway-start-test-", getpid());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data() + 1, name.size() - 1);
  const int manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(manager, reinterpret_cast<sockaddr*>(&address),
                 offsetof(sockaddr_un, sun_path) + name.size()),
            0);
  setsockopt(manager, SOL_SOCKET, SO_RCVTIMEO, &kDatagramWait, sizeof(kDatagramWait));
  const auto next = [manager] {
    char buffer[256];
    const ssize_t size = recv(manager, buffer, sizeof(buffer), 0);
    return size < 0 ? std::string("nothing came") : std::string(buffer, size);
  };

  setenv("NOTIFY_SOCKET", name.c_str(), 1);
  {
    Daemon daemon;
    unsetenv("NOTIFY_SOCKET");
    EXPECT_EQ(next(), kNotifyReady);
    TestClient client(daemon.address());
    EXPECT_TRUE(client.StreamRewrite(SmallGraph(), ScopeOptions(), 10'000).status.ok());
    daemon.process().Signal(SIGTERM);
    EXPECT_EQ(next(), kNotifyStopping);
    EXPECT_EQ(daemon.process().Wait(), 0);
  }
  close(manager);
}

}  // namespace
}  // namespace spillway::server
