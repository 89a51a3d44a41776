#include "server/net/listener.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace spillway::server {
namespace {

// A connection whose peer acknowledges nothing for this long is dead: the same as in gRPC's own
// listeners.
constexpr unsigned kUserTimeoutMs = 20'000;

// A port that is free on a host's first address may be taken on the second.
constexpr int kFreePortTries = 10;

// Returns advice for an errno.
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

absl::Status SystemError(int error) {
  return absl::UnavailableError(absl::StrCat(std::strerror(error), Advice(error)));
}

bool Missing(int error) { return error == EADDRNOTAVAIL || error == EAFNOSUPPORT; }

in_port_t& PortOf(sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                       : reinterpret_cast<sockaddr_in&>(address).sin_port;
}

bool IsWildcard(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr == htonl(INADDR_ANY);
  }
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

// Whether the resolver has already named it: some have a line for IPv4 and one for IPv6.
bool IsAgain(const addrinfo* first, const addrinfo* info) {
  for (; first != info; first = first->ai_next) {
    if (first->ai_addrlen == info->ai_addrlen &&
        std::memcmp(first->ai_addr, info->ai_addr, info->ai_addrlen) == 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Listen(const ListenAddress& address,
                                                           absl::string_view flag) {
  auto listener = std::unique_ptr<Listener>(new Listener);
  const absl::Status status =
      address.is_unix() ? listener->ListenUnix(address.path) : listener->ListenTcp(address);
  if (!status.ok()) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address.text, " (", flag, "): ", status.message()));
  }
  listener->address_ = address.is_unix() ? address.text : WithPort(address.text, listener->port_);
  return listener;
}

void Listener::Close() {
  for (const int fd : sockets_) close(fd);
  sockets_.clear();
  struct stat info = {};
  if (!file_.empty() && lstat(file_.c_str(), &info) == 0 && S_ISSOCK(info.st_mode) &&
      info.st_dev == file_device_ && info.st_ino == file_inode_) {
    unlink(file_.c_str());
  }
  file_.clear();
}

int Listener::Add(const sockaddr* address, socklen_t size) {
  const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno;
  absl::Cleanup closer = [fd] { close(fd); };
  sockaddr_storage name = {};
  std::memcpy(&name, address, size);
  if (address->sa_family != AF_UNIX) {
    const int on = 1, off = 0;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    // Connections inherit these two.
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs, sizeof(kUserTimeoutMs));
    if (address->sa_family == AF_INET6) {
      setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    }
    if (PortOf(name) == 0) PortOf(name) = htons(static_cast<in_port_t>(port_));
  }
  if (bind(fd, reinterpret_cast<const sockaddr*>(&name), size) != 0 || listen(fd, SOMAXCONN) != 0) {
    return errno;
  }
  if (address->sa_family != AF_UNIX) {
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) return errno;
    port_ = ntohs(PortOf(name));
  }
  sockets_.push_back(fd);
  std::move(closer).Cancel();
  return 0;
}

absl::Status Listener::ListenTcp(const ListenAddress& address) {
  absl::StatusOr<AddressList> list = ResolveHost(address);
  if (!list.ok()) return list.status();
  if (IsWildcard(*(*list)->ai_addr)) {
    // One IPv6 socket accepts both; without IPv6, an IPv4 one.
    sockaddr_in6 all6 = {};
    all6.sin6_family = AF_INET6;
    all6.sin6_port = htons(static_cast<in_port_t>(address.port));
    int error = Add(reinterpret_cast<const sockaddr*>(&all6), sizeof(all6));
    if (Missing(error)) {
      sockaddr_in all4 = {};
      all4.sin_family = AF_INET;
      all4.sin_port = all6.sin6_port;
      error = Add(reinterpret_cast<const sockaddr*>(&all4), sizeof(all4));
    }
    return error == 0 ? absl::OkStatus() : SystemError(error);
  }
  for (int tried = 1;; ++tried) {
    int missing = 0, failed = 0;
    for (const addrinfo* info = list->get(); info != nullptr && failed == 0; info = info->ai_next) {
      if (IsAgain(list->get(), info)) continue;
      const int error = Add(info->ai_addr, info->ai_addrlen);
      if (error != 0) (Missing(error) ? missing : failed) = error;
    }
    if (failed == 0 && sockets_.empty()) failed = missing;
    if (failed == 0) return absl::OkStatus();
    if (failed != EADDRINUSE || address.port != 0 || tried == kFreePortTries) {
      return SystemError(failed);
    }
    Close();
    port_ = 0;
  }
}

absl::Status Listener::ListenUnix(const std::string& path) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  const auto* generic = reinterpret_cast<const sockaddr*>(&name);
  struct stat info = {};
  if (lstat(path.c_str(), &info) == 0) {
    if (!S_ISSOCK(info.st_mode)) {
      return absl::UnavailableError(
          "the path is that of a file that is not a socket, which is not removed; choose another "
          "path");
    }
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return SystemError(errno);
    const int error = connect(fd, generic, sizeof(name)) == 0 ? 0 : errno;
    close(fd);
    // A server with a full backlog is also alive.
    if (error == 0 || error == EAGAIN) return SystemError(EADDRINUSE);
    if (error != ECONNREFUSED) return SystemError(error);
    if (unlink(path.c_str()) != 0) return SystemError(errno);
  }
  // Mode 0600. Affects the whole process, so no thread may create files for others meanwhile.
  const mode_t before = umask(S_IXUSR | S_IRWXG | S_IRWXO);
  const int error = Add(generic, sizeof(name));
  umask(before);
  if (error != 0) return SystemError(error);
  if (lstat(path.c_str(), &info) == 0) {
    file_ = path;
    file_device_ = info.st_dev;
    file_inode_ = info.st_ino;
  }
  return absl::OkStatus();
}

}  // namespace spillway::server
