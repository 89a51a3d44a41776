// How many connections may stand at once. Each takes a descriptor, and some memory of gRPC's.
//
// Thread-safe.
#ifndef SPILLWAY_SERVER_CONNECTION_LIMIT_H_
#define SPILLWAY_SERVER_CONNECTION_LIMIT_H_

namespace spillway::server {

// The most that this process's limit of open files (RLIMIT_NOFILE) leaves room for, beside what the
// server itself opens; at least 1.
int MaxConnections();

// Of these, what is taken where nobody says how many.
int DefaultMaxConnections();

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CONNECTION_LIMIT_H_
