#include "server/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "tests/testing/test_certs.h"

namespace spillway::server {
namespace {

using test_certs::TempFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

ListenAddress Parsed(const std::string& text) {
  const auto address = ParseListenAddress(text);
  EXPECT_TRUE(address.ok()) << address.status();
  return *address;
}

std::string Refusal(const std::string& text) {
  return std::string(CheckCanListen(Parsed(text), "--listen").message());
}

bool Exists(const std::string& path) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0;
}

// A Unix socket at `path`; `live`: somebody listens. Closed, not removed, at the end.
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

TEST(ListenAddressTest, TakesApart) {
  EXPECT_EQ(Parsed("localhost:7070").host, "localhost");
  EXPECT_EQ(Parsed("localhost:7070").port, 7070);
  EXPECT_EQ(Parsed("[::1]:0").host, "::1");
  EXPECT_FALSE(Parsed("[::1]:0").is_unix());
  EXPECT_EQ(Parsed("unix:/a/b").path, "/a/b");
  EXPECT_TRUE(Parsed("unix:/a/b").is_unix());
  EXPECT_TRUE(ParseListenAddress("unix:/" + std::string(106, 'p')).ok());
  EXPECT_FALSE(ParseListenAddress("unix:/" + std::string(107, 'p')).ok())
      << "sun_path has 108 bytes with its end";
}

TEST(ListenAddressTest, WithPortKeepsTheHost) {
  EXPECT_EQ(WithPort("[::1]:0", 70), "[::1]:70");
  EXPECT_EQ(WithPort("localhost:0", 70), "localhost:70");
}

TEST(ListenAddressTest, LocalIsLoopbackAndUnix) {
  for (const char* text : {"127.0.0.1:1", "127.1.2.3:1", "[::1]:1", "localhost:1",
                           "[::ffff:127.0.0.1]:1", "unix:/x"}) {
    EXPECT_TRUE(IsLocal(Parsed(text)).value_or(false)) << text;
  }
  // 192.0.2.0/24 and 2001:db8::/32 are kept for documentation (RFC 5737, RFC 3849).
  for (const char* text : {"0.0.0.0:1", "[::]:1", "192.0.2.1:1", "[2001:db8::1]:1", "128.0.0.1:1",
                           "[::ffff:192.0.2.1]:1", "0:1"}) {
    EXPECT_FALSE(IsLocal(Parsed(text)).value_or(true)) << text;
  }
  // The top level domain invalid never exists (RFC 2606).
  EXPECT_EQ(IsLocal(Parsed("host.invalid:1")).status().code(), absl::StatusCode::kUnavailable);
}

TEST(ListenAddressTest, FreeAddressesAreFree) {
  EXPECT_EQ(CheckCanListen(Parsed("127.0.0.1:0"), "--listen"), absl::OkStatus());
  EXPECT_EQ(CheckCanListen(Parsed("localhost:0"), "--listen"), absl::OkStatus());
  const TempFolder folder;
  const std::string path = folder.path("free.sock");
  EXPECT_EQ(CheckCanListen(Parsed("unix:" + path), "--listen"), absl::OkStatus());
  EXPECT_FALSE(Exists(path)) << "left for gRPC to make";
}

TEST(ListenAddressTest, TakenPortSaysSo) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(name);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), size), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size), 0);
  const int port = ntohs(name.sin_port);
  // Also where only one of the host's addresses is taken, and where it is one of all.
  for (const char* host : {"127.0.0.1", "localhost", "0.0.0.0"}) {
    const std::string text = absl::StrCat(host, ":", port);
    EXPECT_THAT(Refusal(text), AllOf(HasSubstr(absl::StrCat("cannot listen on ", text)),
                                     HasSubstr("--listen"), HasSubstr("Address already in use")));
  }
  close(fd);
  EXPECT_EQ(CheckCanListen(Parsed(absl::StrCat("127.0.0.1:", port)), "--listen"), absl::OkStatus());
}

TEST(ListenAddressTest, AddressOfAnotherMachineSaysSo) {
  EXPECT_THAT(Refusal("192.0.2.1:7070"),
              AllOf(HasSubstr("192.0.2.1:7070"), HasSubstr("not an address of this machine")));
  EXPECT_THAT(Refusal("host.invalid:1"), HasSubstr("'host.invalid' cannot be resolved"));
}

TEST(ListenAddressTest, StaleSocketIsRemovedAndALiveOneIsNot) {
  const TempFolder folder;
  const std::string stale = folder.path("stale.sock");
  { const UnixListener dead(stale, /*live=*/true); }
  ASSERT_TRUE(Exists(stale));
  EXPECT_EQ(CheckCanListen(Parsed("unix:" + stale), "--listen"), absl::OkStatus());
  EXPECT_FALSE(Exists(stale));

  const std::string path = folder.path("live.sock");
  const UnixListener live(path, /*live=*/true);
  EXPECT_THAT(Refusal("unix:" + path), AllOf(HasSubstr(path), HasSubstr("already in use")));
  EXPECT_TRUE(Exists(path));
}

TEST(ListenAddressTest, WhatIsNoSocketStays) {
  const TempFolder folder;
  const std::string path = folder.Write("file", "precious");
  EXPECT_THAT(Refusal("unix:" + path), AllOf(HasSubstr(path), HasSubstr("not a socket")));
  EXPECT_TRUE(Exists(path));
  EXPECT_THAT(Refusal("unix:" + folder.path("no/folder")), HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace spillway::server
