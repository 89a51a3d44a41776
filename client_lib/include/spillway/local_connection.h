// The core in this process: no server, no network.
#ifndef SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_LOCAL_CONNECTION_H_
#define SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_LOCAL_CONNECTION_H_

#include <memory>

#include "spillway/connection.h"
#include "spillway/export.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway {

// A connection whose calls run on the calling thread. The graph is read in place. Capabilities name
// only the limits that apply in process; its health is always SERVING.
SPILLWAY_EXPORT std::shared_ptr<Connection> MakeLocalConnection();

// The same with other limits than the built-in ones; those that concern a server alone have no
// effect. Start from GetCapabilities().limits() of a local connection.
SPILLWAY_EXPORT std::shared_ptr<Connection> MakeLocalConnection(const v1::Limits& limits);

}  // namespace spillway

#endif  // SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_LOCAL_CONNECTION_H_
