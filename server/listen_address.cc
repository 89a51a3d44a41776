#include "server/listen_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace spillway::server {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// All addresses of the host, in the resolver's order.
absl::StatusOr<AddressList> Resolve(const ListenAddress& address) {
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

bool IsLoopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  if (address.sa_family != AF_INET6) return false;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

// What to do about an errno.
const char* Advice(int error) {
  switch (error) {
    case EADDRINUSE:
      return "; another program listens there: stop it, or choose another address";
    case EADDRNOTAVAIL:
      return "; the host is not an address of this machine";
    case EACCES:
      return "; choose a port from 1024 up or a folder that you may write to";
    default:
      return "";
  }
}

absl::Status CannotListen(const ListenAddress& address, absl::string_view flag,
                          absl::string_view reason) {
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", address.text, " (", flag, "): ", reason));
}

absl::Status CannotListen(const ListenAddress& address, absl::string_view flag, int error) {
  return CannotListen(address, flag, absl::StrCat(std::strerror(error), Advice(error)));
}

// 0, or an errno. As gRPC does it: an address that was closed a moment ago is free.
int TryBind(const addrinfo& info) {
  const int fd = socket(info.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const int error = bind(fd, info.ai_addr, info.ai_addrlen) == 0 ? 0 : errno;
  close(fd);
  return error;
}

absl::Status CheckTcp(const ListenAddress& address, absl::string_view flag) {
  absl::StatusOr<AddressList> list = Resolve(address);
  if (!list.ok()) return CannotListen(address, flag, list.status().message());
  int missing = 0;
  bool free = false;
  for (const addrinfo* info = list->get(); info != nullptr; info = info->ai_next) {
    const int error = TryBind(*info);
    if (error == EADDRNOTAVAIL || error == EAFNOSUPPORT) {
      missing = error;
    } else if (error != 0) {
      return CannotListen(address, flag, error);
    } else {
      free = true;
    }
  }
  return free ? absl::OkStatus() : CannotListen(address, flag, missing);
}

absl::Status CheckUnix(const ListenAddress& address, absl::string_view flag) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, address.path.data(), address.path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return CannotListen(address, flag, errno);
  const absl::Cleanup closer = [fd] { close(fd); };
  const auto* generic = reinterpret_cast<const sockaddr*>(&name);
  struct stat info = {};
  if (lstat(address.path.c_str(), &info) == 0) {
    if (!S_ISSOCK(info.st_mode)) {
      return CannotListen(address, flag, "there is a file that is not a socket; it stays");
    }
    const int error = connect(fd, generic, sizeof(name)) == 0 ? 0 : errno;
    // A server with a full backlog is alive too.
    if (error == 0 || error == EAGAIN) return CannotListen(address, flag, EADDRINUSE);
    if (error != ECONNREFUSED) return CannotListen(address, flag, error);
    if (unlink(address.path.c_str()) != 0) return CannotListen(address, flag, errno);
  }
  if (bind(fd, generic, sizeof(name)) != 0) return CannotListen(address, flag, errno);
  unlink(address.path.c_str());
  return absl::OkStatus();
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

absl::StatusOr<bool> IsLocal(const ListenAddress& address) {
  if (address.is_unix()) return true;
  absl::StatusOr<AddressList> list = Resolve(address);
  if (!list.ok()) return list.status();
  for (const addrinfo* info = list->get(); info != nullptr; info = info->ai_next) {
    if (!IsLoopback(*info->ai_addr)) return false;
  }
  return true;
}

absl::Status CheckCanListen(const ListenAddress& address, absl::string_view flag) {
  return address.is_unix() ? CheckUnix(address, flag) : CheckTcp(address, flag);
}

}  // namespace spillway::server
