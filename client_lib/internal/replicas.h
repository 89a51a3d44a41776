// Internal. The servers of a target, and the choice among them for each attempt.
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

// A channel to one address and its stubs, or the error that prevented it.
struct Link {
  Link(const RemoteOptions& options, const std::string& address, Routing routing);

  const std::string address;
  absl::Status status;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::RewriteService::Stub> stub;
};

// The addresses that one call has tried. Not thread-safe.
struct Tour {
  std::vector<bool> asked;  // By the index of the address in the target; empty at first.
  size_t last = 0;          // The most recent one.

  // Whether some address was not tried yet.
  bool HasOther() const;
};

// One channel for each address: gRPC 1.51 accepts lists of IP addresses, but not of names. Calls go
// round robin from a random start, so that clients spread, and skip addresses that are known not to
// answer, unless all are. If there is more than one server, one that reports that it does not serve
// (grpc.health.v1) is skipped, too.
//
// Thread-safe.
class Replicas {
 public:
  // `options` must outlive the replicas. `addresses`: at least one.
  Replicas(const RemoteOptions& options, std::vector<std::string> addresses);

  // Returns the link for the next attempt of a call: to an address that its tour has not tried, or
  // once all were tried, to another than the last. The first call that needs a channel creates it;
  // if that fails, the next one tries again, as missing files may exist by then.
  std::shared_ptr<const Link> Next(Tour* tour);

  // Returns the link for a second attempt while another is in flight: like Next if there is more
  // than one server; otherwise a new connection, which a load balancer may send to another server.
  std::shared_ptr<const Link> Beside(Tour* tour);

  // Returns links that can query the health of each server, in the target's order: new ones if
  // those used for calls would refuse servers that do not serve.
  std::vector<std::shared_ptr<const Link>> Probes();

  // Drops a channel after UNAVAILABLE. A channel that could not connect refuses calls for a while
  // (gRPC's own backoff) without trying, and keeps the certificates that it was created with. No
  // effect if another thread has dropped it already, or if the channel has other servers.
  void Drop(const std::shared_ptr<const Link>& failed);

 private:
  // The preference of an address: the lowest is tried first.
  int Rank(size_t index);
  // Creates the link if necessary.
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
