#include "server/service_notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace spillway::server {

absl::Status NotifyServiceManager(absl::string_view state) {
  const char* const variable = std::getenv("NOTIFY_SOCKET");
  if (variable == nullptr || *variable == '\0') return absl::OkStatus();
  const absl::string_view path = variable;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // The kernel accepts a path that fills the field without a terminating zero, but few others do.
  if ((path[0] != '/' && path[0] != '@') || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("NOTIFY_SOCKET is no socket's name: it begins with / or @ and has fewer than ",
                     sizeof(address.sun_path), " bytes"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path[0] == '@') address.sun_path[0] = '\0';  // The abstract namespace, which has no files.
  const socklen_t length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());

  const int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) {
    return absl::ErrnoToStatus(errno, "the service manager cannot be notified: socket");
  }
  ssize_t sent;
  do {
    sent = sendto(descriptor, state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                  reinterpret_cast<const sockaddr*>(&address), length);
  } while (sent < 0 && errno == EINTR);
  const int error = errno;
  close(descriptor);
  if (sent < 0) {
    return absl::ErrnoToStatus(error, absl::StrCat("the service manager at NOTIFY_SOCKET (", path,
                                                   ") cannot be notified of ", state));
  }
  return absl::OkStatus();
}

}  // namespace spillway::server
