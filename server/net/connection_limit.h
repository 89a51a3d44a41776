// The maximum number of open connections. Each takes a file descriptor and some memory in gRPC.
//
// Thread-safe.
#ifndef SPILLWAY_SERVER_NET_CONNECTION_LIMIT_H_
#define SPILLWAY_SERVER_NET_CONNECTION_LIMIT_H_

namespace spillway::server {

// Returns the maximum that the process's limit on open files (RLIMIT_NOFILE) allows, beside the
// files that the server itself opens; at least 1.
int MaxConnections();

// Returns the default maximum.
int DefaultMaxConnections();

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_NET_CONNECTION_LIMIT_H_
