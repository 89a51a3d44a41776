// The core in this process: no server, no network.
#ifndef SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_LOCAL_CONNECTION_H_
#define SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_LOCAL_CONNECTION_H_

#include <memory>

#include "spillway/connection.h"
#include "spillway/export.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway {

// Returns a connection whose calls run on the calling thread and read the graph in place. Its
// capabilities list only the limits that apply in process; its health is always SERVING.
SPILLWAY_EXPORT std::shared_ptr<Connection> MakeLocalConnection();

// The same, with limits other than the built-in ones. Server-only limits have no effect. Start from
// GetCapabilities().limits() of a local connection.
SPILLWAY_EXPORT std::shared_ptr<Connection> MakeLocalConnection(const v1::Limits& limits);

}  // namespace spillway

#endif  // SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_LOCAL_CONNECTION_H_
