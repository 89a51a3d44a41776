// Sockets that listen at an address of a flag. Made here and not by gRPC: what stands in the way is
// told with its reason, and connections are accepted as acceptor.h says.
//
// Not thread-safe.
#ifndef SPILLWAY_SERVER_LISTENER_H_
#define SPILLWAY_SERVER_LISTENER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/listen_address.h"
#include "server/unix_socket_file.h"

namespace spillway::server {

class Listener {
 public:
  // Listens at every address of `address`'s host, all on one port; at `0.0.0.0` and `::` by IPv4
  // and IPv6, as far as the machine has them. An address of a host that has several may be missing
  // on this machine; every other must be free. Connections wait until somebody accepts them.
  //
  // Only this process's user can connect to a Unix socket. One that a dead server left behind is
  // taken over, one that is in use never. Of two servers that take over one path in the same
  // instant, one may end with a socket that nobody can find: give each a path of its own.
  //
  // Error: UNAVAILABLE, one sentence with `flag`, the address, and the system's reason.
  static absl::StatusOr<std::unique_ptr<Listener>> Listen(const ListenAddress& address,
                                                          absl::string_view flag);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { Close(); }

  // Closes the sockets, and removes the file of a Unix socket if it is still ours.
  void Close();

  // As given, but with the real port.
  const std::string& address() const { return address_; }
  // 0: a Unix socket.
  int port() const { return port_; }
  // At least one until they are closed, none of them blocking.
  const std::vector<int>& sockets() const { return sockets_; }

 private:
  Listener() = default;
  // A status without flag and address.
  absl::Status ListenTcp(const ListenAddress& address);
  absl::Status ListenUnix(const std::string& path);
  // 0, or an errno. A port of 0 becomes that of the sockets before.
  int Add(const sockaddr* address, socklen_t size);

  std::string address_;
  int port_ = 0;
  std::vector<int> sockets_;
  std::unique_ptr<UnixSocketFile> file_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_LISTENER_H_
