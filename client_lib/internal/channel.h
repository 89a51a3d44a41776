// Internal. The channel to one address, encrypted or not.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_CHANNEL_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/channel.h"
#include "spillway/remote_connection.h"

namespace spillway::internal {

// Which servers a channel takes calls to.
enum class Routing {
  kOneServer,       // The first that answers, of all that the address has.
  kHealthyServers,  // All of them in turn, but for those that say that they do not serve.
};

// To `address`, one of options.target. Opens nothing yet. The files of options.tls are read and
// checked now, since gRPC would find a fault in them only as a connection that fails. Error:
// INVALID_ARGUMENT, naming the file.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const RemoteOptions& options,
                                                           const std::string& address,
                                                           Routing routing);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_CHANNEL_H_
