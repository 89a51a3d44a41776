#include "server/net/listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/testing/test_certs.h"

namespace spillway::server {
namespace {

using test_certs::TempFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

absl::StatusOr<std::unique_ptr<Listener>> Listen(const std::string& text) {
  const auto address = ParseListenAddress(text);
  EXPECT_TRUE(address.ok()) << address.status();
  return Listener::Listen(*address, "--listen");
}

std::string Refusal(const std::string& text) {
  return std::string(Listen(text).status().message());
}

bool Exists(const std::string& path) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0;
}

// A Unix socket at `path`; `live`: it is listening. At the end it is closed but not removed.
class UnixListener {
 public:
  UnixListener(const std::string& path, bool live) : fd_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un name = {};
    name.sun_family = AF_UNIX;
    std::strncpy(name.sun_path, path.c_str(), sizeof(name.sun_path) - 1);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
    if (live) listen(fd_, 1);
  }
  ~UnixListener() { close(fd_); }

 private:
  const int fd_;
};

// Whether a connection to this address of the machine succeeds.
bool Connects(int family, int port) {
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(static_cast<in_port_t>(port));
  v6.sin6_addr = in6addr_loopback;
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  v4.sin_port = v6.sin6_port;
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(family, SOCK_STREAM, 0);
  const int result = family == AF_INET ? connect(fd, reinterpret_cast<sockaddr*>(&v4), sizeof(v4))
                                       : connect(fd, reinterpret_cast<sockaddr*>(&v6), sizeof(v6));
  close(fd);
  return result == 0;
}

TEST(ListenerTest, TakesConnectionsUntilItIsClosed) {
  const auto listener = Listen("127.0.0.1:0");
  ASSERT_TRUE(listener.ok()) << listener.status();
  const int port = (*listener)->port();
  EXPECT_EQ((*listener)->address(), absl::StrCat("127.0.0.1:", port));
  EXPECT_TRUE(Connects(AF_INET, port));
  (*listener)->Close();
  EXPECT_FALSE(Connects(AF_INET, port));
  EXPECT_TRUE(Listen(absl::StrCat("127.0.0.1:", port)).ok()) << "free again at once";
}

TEST(ListenerTest, EveryAddressOfAHostHasTheSamePort) {
  for (const char* host : {"localhost:0", "0.0.0.0:0", "[::]:0"}) {
    const auto listener = Listen(host);
    ASSERT_TRUE(listener.ok()) << listener.status();
    EXPECT_TRUE(Connects(AF_INET, (*listener)->port())) << host;
    if (Listen("[::1]:0").ok() && host != std::string("localhost:0")) {
      EXPECT_TRUE(Connects(AF_INET6, (*listener)->port())) << host;
    }
  }
}

TEST(ListenerTest, UnixSocketIsThereUntilItIsClosed) {
  const TempFolder folder;
  const std::string path = folder.path("free.sock");
  const auto listener = Listen("unix:" + path);
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_EQ((*listener)->address(), "unix:" + path);
  EXPECT_EQ((*listener)->port(), 0);
  EXPECT_TRUE(Exists(path));
  (*listener)->Close();
  EXPECT_FALSE(Exists(path));
}

TEST(ListenerTest, TakenPortSaysSo) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(name);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), size), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size), 0);
  const int port = ntohs(name.sin_port);
  // Also if only one of the host's addresses is taken, or one of all addresses.
  for (const char* host : {"127.0.0.1", "localhost", "0.0.0.0"}) {
    const std::string text = absl::StrCat(host, ":", port);
    EXPECT_THAT(Refusal(text), AllOf(HasSubstr(absl::StrCat("cannot listen on ", text)),
                                     HasSubstr("--listen"), HasSubstr("Address already in use")));
  }
  close(fd);
  EXPECT_TRUE(Listen(absl::StrCat("127.0.0.1:", port)).ok());
}

TEST(ListenerTest, AddressOfAnotherMachineSaysSo) {
  EXPECT_THAT(Refusal("192.0.2.1:7070"),
              AllOf(HasSubstr("192.0.2.1:7070"), HasSubstr("not an address of this machine")));
  EXPECT_THAT(Refusal("host.invalid:1"), HasSubstr("'host.invalid' cannot be resolved"));
}

TEST(ListenerTest, StaleSocketIsTakenOverAndALiveOneIsNot) {
  const TempFolder folder;
  const std::string stale = folder.path("stale.sock");
  { const UnixListener dead(stale, /*live=*/true); }
  ASSERT_TRUE(Exists(stale));
  const auto listener = Listen("unix:" + stale);
  EXPECT_TRUE(listener.ok()) << listener.status();
  EXPECT_THAT(Refusal("unix:" + stale), HasSubstr("already in use"));

  const std::string path = folder.path("live.sock");
  const UnixListener live(path, /*live=*/true);
  EXPECT_THAT(Refusal("unix:" + path), AllOf(HasSubstr(path), HasSubstr("already in use")));
  EXPECT_TRUE(Exists(path));
}

TEST(ListenerTest, WhatIsNoSocketStays) {
  const TempFolder folder;
  const std::string path = folder.Write("file", "precious");
  EXPECT_THAT(Refusal("unix:" + path), AllOf(HasSubstr(path), HasSubstr("not a socket")));
  EXPECT_TRUE(Exists(path));
  EXPECT_THAT(Refusal("unix:" + folder.path("no/folder")), HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace spillway::server
