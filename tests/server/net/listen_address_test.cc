#include "server/net/listen_address.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::server {
namespace {

ListenAddress Parsed(const std::string& text) {
  const auto address = ParseListenAddress(text);
  EXPECT_TRUE(address.ok()) << address.status();
  return *address;
}

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

}  // namespace
}  // namespace spillway::server
