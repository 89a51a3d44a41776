// The version of this program.
#ifndef SPILLWAY_CLIENT_LIB_CLI_BASE_OWN_VERSION_H_
#define SPILLWAY_CLIENT_LIB_CLI_BASE_OWN_VERSION_H_

#include <string>

#include "spillway/client.h"
#include "spillway/local_connection.h"

namespace spillway::cli {

// Returns `MAJOR.MINOR.PATCH`, the version of the core in this process.
inline std::string OwnVersion() {
  const auto capabilities = Client(MakeLocalConnection()).GetCapabilities();
  return capabilities.ok() ? capabilities->version() : "";
}

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_BASE_OWN_VERSION_H_
