#include "client_lib/internal/addresses.h"

#include <arpa/inet.h>

#include <cstdint>
#include <cstring>

#include "absl/strings/match.h"
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

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitTarget(absl::string_view target) {
  std::vector<std::string> addresses = absl::StrSplit(target, ',');
  if (addresses.size() == 1) return addresses;
  for (const std::string& address : addresses) {
    if (!address.empty()) continue;
    return core::InvalidError(v1::ERROR_REASON_BAD_OPTION,
                              absl::StrCat("the servers ", core::Quoted(target),
                                           " have an empty address; give HOST:PORT[,HOST:PORT...]"),
                              {{"target", std::string(target)}});
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
