// A server (spillwayd) over gRPC.
#ifndef SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_REMOTE_CONNECTION_H_
#define SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_REMOTE_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "spillway/connection.h"

namespace spillway {

// How to reach a server. The connection is not encrypted: use it inside a trusted network.
struct RemoteOptions {
  // REQUIRED. `host:port`, or any other name that gRPC resolves: `dns:///host:port`, `unix:/path`.
  std::string target;

  // Graphs up to this many bytes go in one message, larger ones in a stream. A stream costs a
  // round trip more and is 3 to 9 times as fast, with a third of the memory, from some MiB on
  // (measured). A server that takes less in one message gets the graph as a stream after all.
  int64_t unary_max_bytes = 2 << 20;

  // The graph bytes in each message of a stream. Best from 256 KiB to 1 MiB (measured); above the
  // server's limit max_chunk_bytes the call fails.
  int64_t chunk_bytes = 512 << 10;
};

// A connection to the server of `options`. Returns at once: the channel is opened by the first
// call, shared by all and opened again when it breaks. A server that cannot be reached is
// UNAVAILABLE at each call.
std::shared_ptr<Connection> MakeRemoteConnection(const RemoteOptions& options);

}  // namespace spillway

#endif  // SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_REMOTE_CONNECTION_H_
