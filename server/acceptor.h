// Accepts connections and hands them to gRPC, at most so many at a time.
//
// gRPC's own listener accepts whatever comes, and in version 1.51 it stops for good at the first
// accept that fails, as each does where no descriptor is left (on_read in tcp_server_posix.cc): a
// server whose descriptors were once used up takes no call any more, though all are free again.
// Its way in for connections that others accepted (AddExternalConnectionAcceptor) has neither
// fault, and is the same for every kind of credentials.
//
// Thread-safe but for Start and Stop.
#ifndef SPILLWAY_SERVER_ACCEPTOR_H_
#define SPILLWAY_SERVER_ACCEPTOR_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/time/time.h"
#include "server/clock.h"
#include "server/metrics.h"

namespace spillway::server {

class Acceptor {
 public:
  // A socket that listens, not blocking and not owned, and what takes its connections: it owns the
  // descriptor that it is called with, and closes it when the connection has ended.
  struct Source {
    int socket;
    std::function<void(int connection)> take;
  };

  // Connections beyond `most` are closed at once. `metrics` and `clock` must outlive it.
  Acceptor(int most, Metrics& metrics, const Clock& clock);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;
  ~Acceptor() { Stop(); }

  // Accepts what comes, in a thread of its own; where the system has no descriptor or memory for
  // it, later. Once.
  void Start(std::vector<Source> sources);

  // Accepts no more. Connections that stand are not touched.
  void Stop();

  // Connections that stand.
  int open();

 private:
  // How often one kind of trouble came, for a line in the log now and then.
  struct Trouble {
    int64_t count = 0;
    absl::Time told = absl::InfinitePast();
  };

  void Run();
  // False if nothing can be accepted for now.
  bool AcceptOne(const Source& source);
  bool Admit(int connection);
  void ForgetClosed();  // REQUIRES: mu_ is held.

  const int most_;
  Metrics& metrics_;
  const Clock& clock_;
  int stop_ = -1;  // An eventfd, while the thread runs.
  std::thread thread_;

  std::mutex mu_;  // Guards these two. (Not Abseil's: see worker_pool.h.)
  // By descriptor, the socket that it stands for; some may be closed by now.
  std::unordered_map<int, ino_t> connections_;
  absl::Time looked_at_ = absl::InfinitePast();

  // Of the thread alone.
  std::vector<Source> sources_;
  Trouble refused_;
  Trouble failed_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_ACCEPTOR_H_
