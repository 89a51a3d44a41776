// Internal. What a target of RemoteOptions names: one address, or several.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_ADDRESSES_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_ADDRESSES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace spillway::internal {

// The addresses between the commas of `target`; one without commas is one address, even if it is
// empty. Error: INVALID_ARGUMENT (BAD_OPTION), an address among several is empty.
absl::StatusOr<std::vector<std::string>> SplitTarget(absl::string_view target);

// Whether one address stands for all that a name has: `dns:...`.
bool IsNameOfMany(absl::string_view address);

// Whether what is sent to the address stays on this machine: a Unix socket, `localhost`, or an
// address of the loopback device. Where that cannot be told: false.
bool StaysOnMachine(absl::string_view address);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_ADDRESSES_H_
