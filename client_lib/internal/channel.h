// Internal. The channel to a server, encrypted or not.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_CHANNEL_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_CHANNEL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "grpcpp/channel.h"
#include "spillway/remote_connection.h"

namespace spillway::internal {

// Opens nothing yet. The files of options.tls are read and checked now, since gRPC would find a
// fault in them only as a connection that fails. Error: INVALID_ARGUMENT, naming the file.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const RemoteOptions& options);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_CHANNEL_H_
