// Internal. The addresses in a target of RemoteOptions.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_ADDRESSES_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_ADDRESSES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace spillway::internal {

// Returns the comma-separated addresses of `target`, each HOST:PORT, [IPV6]:PORT,
// dns:///HOST:PORT, or a socket as unix:PATH. They are checked before connecting, because gRPC
// would misinterpret http:// or a port that is missing or above 65535. Error: INVALID_ARGUMENT
// (BAD_OPTION), naming the address.
absl::StatusOr<std::vector<std::string>> SplitTarget(absl::string_view target);

// Whether one address stands for all addresses of a name: `dns:...`.
bool IsNameOfMany(absl::string_view address);

// Whether data sent to the address stays on this machine: a Unix socket, `localhost`, or a loopback
// address. False if that cannot be determined.
bool StaysOnMachine(absl::string_view address);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_ADDRESSES_H_
