// Internal. What a target of RemoteOptions names: one address, or several.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_ADDRESSES_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_ADDRESSES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace spillway::internal {

// The addresses between the commas of `target`, each HOST:PORT, [IPV6]:PORT, dns:///HOST:PORT, or a
// socket as unix:PATH. Checked before anything is dialled: what gRPC would make of a port that is
// missing or above 65535, or of http://, is not what was meant. Error: INVALID_ARGUMENT
// (BAD_OPTION), naming the address.
absl::StatusOr<std::vector<std::string>> SplitTarget(absl::string_view target);

// Whether one address stands for all that a name has: `dns:...`.
bool IsNameOfMany(absl::string_view address);

// Whether what is sent to the address stays on this machine: a Unix socket, `localhost`, or an
// address of the loopback device. Where that cannot be told: false.
bool StaysOnMachine(absl::string_view address);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_ADDRESSES_H_
