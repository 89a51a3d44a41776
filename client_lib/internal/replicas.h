// Internal. The servers behind a target, and which of them a call asks next.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_REPLICAS_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_REPLICAS_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client_lib/internal/channel.h"
#include "grpcpp/channel.h"
#include "spillway/remote_connection.h"
#include "spillway/v1/rewrite_service.grpc.pb.h"

namespace spillway::internal {

// A channel to one address, and what makes calls on it; or why there is none.
struct Link {
  Link(const RemoteOptions& options, const std::string& address, Routing routing);

  const std::string address;
  absl::Status status;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::RewriteService::Stub> stub;
};

// The addresses that one call has asked. Not thread-safe.
struct Tour {
  std::vector<bool> asked;  // By the address's place in the target; empty before the first.
  size_t last = 0;          // The one asked last.

  // Whether there is one that was not asked yet.
  bool HasOther() const;
};

// One channel for each address: gRPC 1.51 itself takes lists of IP addresses, not of names. Calls
// go round, beginning anywhere, so that clients spread; past an address that is known not to
// answer, unless there is no other. With more than one server to choose from, one that says that it
// does not serve (grpc.health.v1) counts as such.
//
// Thread-safe.
class Replicas {
 public:
  // `options` must outlive the replicas. `addresses`: one at least.
  Replicas(const RemoteOptions& options, std::vector<std::string> addresses);

  // The link for the next attempt of a call: to an address that its tour has not asked, or, once it
  // has asked all, to another than last. The channel is made by the first call that needs it, and
  // made again if it could not be: its files may be there by now.
  std::shared_ptr<const Link> Next(Tour* tour);

  // The link for a second attempt while another is under way: as Next where there is more than one
  // server; otherwise a new connection, behind which a balancer may have another.
  std::shared_ptr<const Link> Beside(Tour* tour);

  // Links that ask for the health of each server, whatever that is: in the target's order, new ones
  // where those of calls would refuse servers that do not serve.
  std::vector<std::shared_ptr<const Link>> Probes();

  // After UNAVAILABLE: takes no more calls on a channel that failed. One that could not connect
  // refuses calls for a while (gRPC's own backoff) without trying, and keeps the certificates that
  // it was made with. Unless another thread has done so, or the channel has other servers.
  void Drop(const std::shared_ptr<const Link>& failed);

 private:
  // How soon an address should be asked: the lowest first.
  int Rank(size_t index);
  // Makes it if need be.
  const std::shared_ptr<const Link>& LinkTo(size_t index);

  const RemoteOptions& options_;
  const std::vector<std::string> addresses_;
  const Routing routing_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const Link>> links_;  // Null until needed. Guarded by mutex_.
  size_t next_;                                     // Guarded by mutex_.
};

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_REPLICAS_H_
