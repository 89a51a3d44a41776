#include "server/base/caller.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <string>

namespace spillway::server {
namespace {

std::string HostOfPeer(const std::string& peer) { return Caller{peer, ""}.host(); }

// As gRPC and the proxy spell them.
TEST(CallerTest, AHostIsAnAddressWithoutItsPort) {
  for (const char* peer : {"ipv4:192.0.2.1:50412", "ipv4:192.0.2.1:7", "192.0.2.1",
                           "ipv6:%5B::ffff:192.0.2.1%5D:50412", "::ffff:192.0.2.1"}) {
    EXPECT_EQ(HostOfPeer(peer), "192.0.2.1") << peer;
  }
  EXPECT_NE(HostOfPeer("192.0.2.2"), HostOfPeer("192.0.2.1"));
}

// A host with one address may take any.
TEST(CallerTest, AnIPv6NetworkIsOneHost) {
  for (const char* peer :
       {"ipv6:%5B2001:db8:0:7::1%5D:50412", "ipv6:%5B2001:db8:0:7:ffff:ffff:ffff:ffff%5D:1",
        "ipv6:[2001:db8:0:7::2]:5", "2001:db8:0:7::", "2001:db8:0:7:8::"}) {
    EXPECT_EQ(HostOfPeer(peer), "2001:db8:0:7::/64") << peer;
  }
  EXPECT_EQ(HostOfPeer("2001:db8:0:8::"), "2001:db8:0:8::/64");
  EXPECT_EQ(HostOfPeer("ipv6:%5Bfe80::1%25eth0%5D:50412"), "fe80::/64");
}

TEST(CallerTest, WhatIsNoAddressIsItself) {
  for (const char* peer : {"unix:", "unix:/run/s", "somebody", "", "ipv4:", "ipv6:%5B%5D:5"}) {
    EXPECT_EQ(HostOfPeer(peer), peer);
  }
}

TEST(CallerTest, ConnectionsHaveTheHostsOfTheirCalls) {
  sockaddr_storage address = {};
  address.ss_family = AF_INET;
  inet_pton(AF_INET, "192.0.2.1", &reinterpret_cast<sockaddr_in&>(address).sin_addr);
  EXPECT_EQ(HostOf(address), HostOfPeer("ipv4:192.0.2.1:1"));
  for (const char* text : {"2001:db8:0:7::1", "::ffff:192.0.2.1", "::1"}) {
    address = {};
    address.ss_family = AF_INET6;
    inet_pton(AF_INET6, text, &reinterpret_cast<sockaddr_in6&>(address).sin6_addr);
    EXPECT_EQ(HostOf(address), HostOfPeer("ipv6:%5B" + std::string(text) + "%5D:1"));
  }
  address = {};
  address.ss_family = AF_UNIX;
  EXPECT_EQ(HostOf(address), "");
}

}  // namespace
}  // namespace spillway::server
