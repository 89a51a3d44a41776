#include "server/service_notify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace spillway::server {
namespace {

// A service manager: a datagram socket, whose name is in the environment during its lifetime.
class Manager {
 public:
  explicit Manager(const std::string& name) : name_(name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address),
                   offsetof(sockaddr_un, sun_path) + name.size()),
              0)
        << std::strerror(errno);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  ~Manager() {
    unsetenv("NOTIFY_SOCKET");
    close(socket_);
    if (name_[0] == '/') unlink(name_.c_str());
  }

  // Returns the next datagram, or "" if none has arrived.
  std::string Take() {
    char buffer[256];
    const ssize_t size = recv(socket_, buffer, sizeof(buffer), MSG_DONTWAIT);
    return size < 0 ? "" : std::string(buffer, size);
  }

 private:
  const std::string name_;
  int socket_ = -1;
};

std::string SocketPath() {
  return absl::StrCat(::testing::TempDir(), "notify-", getpid(), ".sock");
}

TEST(ServiceNotifyTest, TellsTheManagerAtAPath) {
  Manager manager(SocketPath());
  EXPECT_TRUE(NotifyServiceManager(kNotifyReady).ok());
  EXPECT_EQ(manager.Take(), "READY=1");
  EXPECT_TRUE(NotifyServiceManager(kNotifyStopping).ok());
  EXPECT_EQ(manager.Take(), "STOPPING=1");
  EXPECT_EQ(manager.Take(), "");
}

TEST(ServiceNotifyTest, TellsTheManagerInTheAbstractNamespace) {
  Manager manager(absl::StrCat("@spillway-notify-test-", getpid()));
  EXPECT_TRUE(NotifyServiceManager(kNotifyReady).ok());
  EXPECT_EQ(manager.Take(), "READY=1");
}

TEST(ServiceNotifyTest, WithoutAManagerThereIsNobodyToTell) {
  unsetenv("NOTIFY_SOCKET");
  EXPECT_TRUE(NotifyServiceManager(kNotifyReady).ok());
  setenv("NOTIFY_SOCKET", "", 1);
  EXPECT_TRUE(NotifyServiceManager(kNotifyReady).ok());
  unsetenv("NOTIFY_SOCKET");
}

TEST(ServiceNotifyTest, SaysWhyTheManagerCannotBeTold) {
  const std::string path = SocketPath();
  setenv("NOTIFY_SOCKET", path.c_str(), 1);
  EXPECT_THAT(NotifyServiceManager(kNotifyReady).message(),
              ::testing::AllOf(::testing::HasSubstr(path), ::testing::HasSubstr("READY=1")));
  for (const std::string& name : {std::string("relative"), "/" + std::string(200, 'x')}) {
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
    EXPECT_EQ(NotifyServiceManager(kNotifyReady).code(), absl::StatusCode::kInvalidArgument);
  }
  unsetenv("NOTIFY_SOCKET");
}

// A manager that does not read: its queue is full, and the server continues.
TEST(ServiceNotifyTest, NeverWaits) {
  Manager manager(SocketPath());
  absl::Status status;
  for (int i = 0; i < 100'000 && status.ok(); ++i) status = NotifyServiceManager(kNotifyReady);
  EXPECT_FALSE(status.ok());
}

}  // namespace
}  // namespace spillway::server
