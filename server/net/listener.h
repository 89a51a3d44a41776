// Sockets that listen on an address given by a flag. Created here rather than by gRPC, so that
// errors state their cause and connections are accepted by acceptor.h.
//
// Not thread-safe.
#ifndef SPILLWAY_SERVER_NET_LISTENER_H_
#define SPILLWAY_SERVER_NET_LISTENER_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/net/listen_address.h"

namespace spillway::server {

class Listener {
 public:
  // Listens on every address of `address`'s host, all on the same port; `0.0.0.0` and `::` both
  // mean IPv4 and IPv6, as far as the machine has them. If a host has several addresses, this
  // machine may lack some; the others must be free. Connections wait until they are accepted.
  //
  // Only this process's user can connect to a Unix socket. A socket file that a dead server left
  // behind is taken over, one in use never is. If two servers take over the same path at the same
  // instant, one may end up with an unreachable socket: give each its own path.
  //
  // Error: UNAVAILABLE, one sentence with `flag`, the address and the system's error.
  static absl::StatusOr<std::unique_ptr<Listener>> Listen(const ListenAddress& address,
                                                          absl::string_view flag);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { Close(); }

  // Closes the sockets, and removes the file of a Unix socket if it still belongs to this listener.
  void Close();

  // As given, but with the actual port.
  const std::string& address() const { return address_; }
  // 0: a Unix socket.
  int port() const { return port_; }
  // At least one until they are closed; all are non-blocking.
  const std::vector<int>& sockets() const { return sockets_; }

 private:
  Listener() = default;
  // Returns a status without flag and address.
  absl::Status ListenTcp(const ListenAddress& address);
  absl::Status ListenUnix(const std::string& path);
  // Returns 0 or an errno. Port 0 is replaced by the port of earlier sockets.
  int Add(const sockaddr* address, socklen_t size);

  std::string address_;
  int port_ = 0;
  std::vector<int> sockets_;
  // The file of a Unix socket; empty: none. Another file may take its place.
  std::string file_;
  dev_t file_device_ = 0;
  ino_t file_inode_ = 0;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_NET_LISTENER_H_
