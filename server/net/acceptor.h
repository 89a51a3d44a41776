// Accepts connections, up to a maximum number, and hands them to gRPC.
//
// gRPC's own listener has no such limit, and in version 1.51 it stops permanently at the first
// accept that fails, e.g. because the process is out of descriptors (on_read in
// tcp_server_posix.cc): a server that once ran out of descriptors accepts no calls even after they
// are free again. gRPC's interface for connections accepted elsewhere
// (AddExternalConnectionAcceptor) has neither problem, and works with all kinds of credentials.
//
// Thread-safe except for Start and Stop.
#ifndef SPILLWAY_SERVER_NET_ACCEPTOR_H_
#define SPILLWAY_SERVER_NET_ACCEPTOR_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/observe/metrics.h"

namespace spillway::server {

// Returns the maximum number of open connections that the process's limit on open files
// (RLIMIT_NOFILE) allows, beside the files that the server itself opens; at least 1. Thread-safe.
int MaxConnections();

// Returns the default maximum.
int DefaultMaxConnections();

class Acceptor {
 public:
  // A listening socket, non-blocking and not owned, and the handler of its connections, which owns
  // the descriptor that it is called with and closes it when the connection has ended.
  struct Source {
    int socket;
    std::function<void(int connection)> take;
  };

  // Connections beyond `max_connections`, or `max_of_one_host` of one address (HostOf, caller.h),
  // are closed on arrival. `metrics` and `clock` must outlive it.
  Acceptor(int max_connections, int max_of_one_host, Metrics& metrics, const Clock& clock);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;
  ~Acceptor() { Stop(); }

  // Accepts connections on a separate thread; if the system has no descriptor or memory for one,
  // tries again later. Called at most once. Error: UNAVAILABLE if there is no descriptor for
  // itself.
  absl::Status Start(std::vector<Source> sources);

  // Stops accepting. Open connections are not affected.
  void Stop();

  // Returns the number of open connections.
  int open();

  // How many bytes an open connection from this port of the other end has received; of several, the
  // most; -1: unknown, as on Unix sockets (port 0).
  int64_t ReceivedBytes(int port);

 private:
  // Events of one kind that are logged together, since a flood of connections must not flood the
  // log.
  struct LoggedEvents {
    int64_t count = 0;  // Since the last line.
    absl::Time logged_at = absl::InfinitePast();
  };

  struct Connection {
    ino_t socket;
    std::string host;  // Empty on a Unix socket.
    int port;          // 0 on a Unix socket.
  };

  void Run();
  // Returns false if nothing can be accepted for now.
  bool AcceptOne(const Source& source);
  bool Admit(int connection);
  // These REQUIRE that mu_ is held.
  void ForgetClosed();
  std::unordered_map<int, Connection>::iterator Forget(
      std::unordered_map<int, Connection>::iterator connection);

  const size_t max_connections_;
  const int max_of_one_host_;
  Metrics& metrics_;
  const Clock& clock_;
  int stop_ = -1;  // An eventfd, while the thread runs.
  std::thread thread_;

  std::mutex mu_;  // Guards these four. (Not Abseil's: see worker_pool.h.)
  // By descriptor; some may have been closed.
  std::unordered_map<int, Connection> connections_;
  std::unordered_map<std::string, int> of_host_;
  std::unordered_multimap<int, int> of_port_;  // Descriptors.
  absl::Time checked_at_ = absl::InfinitePast();

  // Used by the thread only.
  std::vector<Source> sources_;
  LoggedEvents refused_;
  LoggedEvents failed_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_NET_ACCEPTOR_H_
