// Internal. The channel to one address, encrypted or not.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_CHANNEL_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/channel.h"
#include "spillway/remote_connection.h"

namespace spillway::internal {

// The servers that a channel sends calls to.
enum class Routing {
  kOneServer,       // The first server of the address that answers.
  kHealthyServers,  // All of them in turn, except those that report that they do not serve.
};

// Returns a channel to `address`, one of options.target, without connecting. The files of
// options.tls are read and checked now, since gRPC would report a defect in them only as a failed
// connection. Error: INVALID_ARGUMENT, naming the file.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const RemoteOptions& options,
                                                           const std::string& address,
                                                           Routing routing);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_CHANNEL_H_
