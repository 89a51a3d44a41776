#include "client_lib/internal/addresses.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "rewrite_core/base/error.h"

namespace spillway::internal {
namespace {

constexpr char kNameScheme[] = "dns:";
constexpr uint32_t kLoopbackNet = 127;  // The first byte of 127.0.0.0/8.

// `host` of `host:port`, `[host]:port` or `host`.
absl::string_view HostOf(absl::string_view address) {
  if (absl::ConsumePrefix(&address, "[")) return address.substr(0, address.find(']'));
  return address.substr(0, address.rfind(':'));
}

bool IsLoopback(const std::string& host) {
  in_addr ipv4;
  if (inet_pton(AF_INET, host.c_str(), &ipv4) == 1) {
    return ntohl(ipv4.s_addr) >> 24 == kLoopbackNet;
  }
  in6_addr ipv6;
  if (inet_pton(AF_INET6, host.c_str(), &ipv6) != 1) return false;
  return std::memcmp(&ipv6, &in6addr_loopback, sizeof(ipv6)) == 0;
}

absl::Status BadTarget(absl::string_view target, absl::string_view address,
                       absl::string_view what) {
  return core::InvalidError(v1::ERROR_REASON_BAD_OPTION,
                            absl::StrCat("the server ", core::Quoted(address), " ", what),
                            {{"target", target}, {"value", address}});
}

// Checks `host_port`, which is `address` without a prefix for Internet addresses. gRPC itself
// checks other kinds of address (unix:, xds:).
absl::Status CheckHostAndPort(absl::string_view target, absl::string_view address,
                              absl::string_view host_port) {
  absl::string_view port;
  if (absl::StartsWith(host_port, "[")) {
    const size_t end = host_port.find(']');
    if (end == absl::string_view::npos || end == 1) {
      return BadTarget(target, address, "has a broken IPv6 address; give [ADDRESS]:PORT");
    }
    port = host_port.substr(end + 1);
  } else {
    const size_t colon = host_port.find(':');
    if (colon != host_port.rfind(':')) {
      return BadTarget(target, address,
                       "has several colons; give HOST:PORT, and an IPv6 address in brackets, as "
                       "[::1]:7070");
    }
    if (colon == 0) return BadTarget(target, address, "has no host; give HOST:PORT");
    if (colon != absl::string_view::npos) port = host_port.substr(colon);
  }
  if (!absl::ConsumePrefix(&port, ":") || port.empty()) {
    return BadTarget(target, address,
                     absl::StrCat("has no port; give HOST:PORT, as ",
                                  host_port.substr(0, host_port.find(':')), ":7070"));
  }
  // Digits only: SimpleAtoi also accepts signs and spaces.
  constexpr int kMaxPort = 65535;
  int number = 0;
  const bool digits = std::all_of(port.begin(), port.end(), absl::ascii_isdigit);
  if (!digits || !absl::SimpleAtoi(port, &number) || number < 1 || number > kMaxPort) {
    return BadTarget(target, address,
                     absl::StrCat("has ", core::Quoted(port),
                                  " as its port; give a number from 1 "
                                  "to ",
                                  kMaxPort));
  }
  return absl::OkStatus();
}

// Without these checks, gRPC would dial port 443 if none is given, read port 99999 as 34463, and
// ask name servers for `http://host`.
absl::Status CheckAddress(absl::string_view target, absl::string_view address) {
  if (address.empty()) {
    return core::InvalidError(v1::ERROR_REASON_BAD_OPTION,
                              absl::StrCat("the servers ", core::Quoted(target),
                                           " have an empty address; give HOST:PORT[,HOST:PORT...]"),
                              {{"target", target}});
  }
  if (std::any_of(address.begin(), address.end(), absl::ascii_isspace)) {
    return BadTarget(target, address, "has a space in it; give HOST:PORT");
  }
  absl::string_view rest = address;
  if (absl::ConsumePrefix(&rest, kNameScheme)) {
    if (absl::ConsumePrefix(&rest, "//")) {
      const size_t slash = rest.find('/');
      if (slash == absl::string_view::npos) {
        return BadTarget(target, address, "lacks a slash; give dns:///HOST:PORT");
      }
      rest.remove_prefix(slash + 1);
    }
    return CheckHostAndPort(target, address, rest);
  }
  if (absl::ConsumePrefix(&rest, "ipv4:") || absl::ConsumePrefix(&rest, "ipv6:")) {
    return CheckHostAndPort(target, address, rest);
  }
  for (const absl::string_view scheme : {"unix:", "unix-abstract:", "xds:"}) {
    if (!absl::StartsWith(address, scheme)) continue;
    if (address.size() > scheme.size()) return absl::OkStatus();
    return BadTarget(target, address, "has nothing behind its scheme; give the path of the socket");
  }
  if (const size_t scheme = address.find("://"); scheme != absl::string_view::npos) {
    return BadTarget(target, address,
                     absl::StrCat("begins with ", address.substr(0, scheme),
                                  "://, which gRPC does not know; "
                                  "give HOST:PORT alone",
                                  absl::EqualsIgnoreCase(address.substr(0, scheme), "https")
                                      ? ", and TLS as an option"
                                      : ""));
  }
  return CheckHostAndPort(target, address, address);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitTarget(absl::string_view target) {
  std::vector<std::string> addresses = absl::StrSplit(target, ',');
  for (const std::string& address : addresses) {
    if (absl::Status s = CheckAddress(target, address); !s.ok()) return s;
  }
  return addresses;
}

bool IsNameOfMany(absl::string_view address) { return absl::StartsWith(address, kNameScheme); }

bool StaysOnMachine(absl::string_view address) {
  if (absl::StartsWith(address, "unix:") || absl::StartsWith(address, "unix-abstract:")) {
    return true;
  }
  if (absl::ConsumePrefix(&address, kNameScheme)) {
    // `dns:name`, `dns:///name` or `dns://resolver/name`.
    if (absl::ConsumePrefix(&address, "//")) {
      const size_t slash = address.find('/');
      if (slash == absl::string_view::npos) return false;
      address.remove_prefix(slash + 1);
    }
  } else if (!absl::ConsumePrefix(&address, "ipv4:")) {
    absl::ConsumePrefix(&address, "ipv6:");
  }
  const absl::string_view host = HostOf(address);
  return absl::EqualsIgnoreCase(host, "localhost") || IsLoopback(std::string(host));
}

}  // namespace spillway::internal
