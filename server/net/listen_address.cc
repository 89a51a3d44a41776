#include "server/net/listen_address.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace spillway::server {
namespace {

bool IsLoopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  if (address.sa_family != AF_INET6) return false;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

}  // namespace

absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text) {
  ListenAddress address;
  address.text = std::string(text);
  absl::string_view path = text;
  if (absl::ConsumePrefix(&path, "unix:")) {
    constexpr size_t kMaxPathBytes = sizeof(sockaddr_un::sun_path) - 1;
    if (path.empty() || path[0] != '/' || path.size() > kMaxPathBytes ||
        path.find('\0') != absl::string_view::npos || path.find('%') != absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' is not unix:PATH with an absolute path of at most ",
                       kMaxPathBytes, " bytes, without '%'"));
    }
    address.path = std::string(path);
    return address;
  }
  const size_t colon = text.rfind(':');
  absl::string_view host = text.substr(0, colon);
  const bool bracketed = absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]");
  if (colon == absl::string_view::npos || host.empty() ||
      (!bracketed && host.find_first_of(":[]") != absl::string_view::npos) ||
      !absl::SimpleAtoi(text.substr(colon + 1), &address.port) || address.port < 0 ||
      address.port > std::numeric_limits<uint16_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' is not HOST:PORT with a port from 0 to 65535 (IPv6 in brackets)"));
  }
  address.host = std::string(host);
  return address;
}

std::string WithPort(absl::string_view host_and_port, int port) {
  return absl::StrCat(host_and_port.substr(0, host_and_port.rfind(':')), ":", port);
}

absl::StatusOr<AddressList> ResolveHost(const ListenAddress& address) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(), &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("the host '", address.host, "' cannot be resolved: ", gai_strerror(error)));
  }
  return AddressList(found, &freeaddrinfo);
}

absl::StatusOr<bool> IsLocal(const ListenAddress& address) {
  if (address.is_unix()) return true;
  absl::StatusOr<AddressList> list = ResolveHost(address);
  if (!list.ok()) return list.status();
  for (const addrinfo* info = list->get(); info != nullptr; info = info->ai_next) {
    if (!IsLoopback(*info->ai_addr)) return false;
  }
  return true;
}

}  // namespace spillway::server
