// grpc.health.v1.Health for the server as a whole, and for its service.
//
// In place of gRPC's own, which lets anyone who connects keep any number of watches open for ever:
// health checks need no credentials and no memory budget. Here each caller may always have one
// watch (gRPC's clients hold one per connection, and take a server that refuses it for an unhealthy
// one), few have more, and each ends after kMaxWatchAge with OK, upon which gRPC's clients ask
// again at once.
//
// Thread-safe.
#ifndef SPILLWAY_SERVER_CALLS_HEALTH_SERVICE_H_
#define SPILLWAY_SERVER_CALLS_HEALTH_SERVICE_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "server/base/clock.h"
#include "server/calls/half_open_calls.h"
#include "server/calls/raw_service.h"

namespace spillway::server {

class HealthService final : public RawService<grpc::health::v1::Health::Service> {
 public:
  // Watches beyond the first of each caller, of all together: each takes some 20 KiB.
  static constexpr int kMaxMoreWatches = 256;
  static constexpr absl::Duration kMaxWatchAge = absl::Hours(1);

  // Not serving at first. `service`: the name that has the server's status beside "". The others
  // must outlive it, and it must outlive the gRPC server.
  HealthService(std::string service, Clock& clock, HalfOpenCalls& half_open);

  void SetServing(bool serving);

 private:
  class Watcher;
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;

  bool Knows(const std::string& service) const { return service.empty() || service == service_; }
  // REQUIRES: mu_ is held.
  Status StatusOf(const std::string& service) const;
  grpc::Status Check(const grpc::ByteBuffer& request, grpc::ByteBuffer* response);
  // Returns whether the watcher may begin.
  bool Add(Watcher* watcher);
  void Remove(Watcher* watcher);

  const std::string service_;
  Clock& clock_;
  HalfOpenCalls& half_open_;
  std::mutex mu_;  // Guards the rest.
  bool serving_ = false;
  absl::flat_hash_set<Watcher*> watchers_;
  absl::flat_hash_map<std::string, int> watches_of_;  // By caller.
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_HEALTH_SERVICE_H_
