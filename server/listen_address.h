// An address to listen on, as a flag spells it, and what the system says of it before gRPC or the
// metrics listener take it: these know only that they failed, users want to know why.
//
// Pure but for the two functions that say what they ask. Thread-safe.
#ifndef SPILLWAY_SERVER_LISTEN_ADDRESS_H_
#define SPILLWAY_SERVER_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace spillway::server {

// `HOST:PORT` (an IPv6 address in brackets) or `unix:PATH`, the path absolute and without '%',
// which gRPC would decode.
struct ListenAddress {
  std::string text;  // As given.
  std::string path;  // Of a Unix socket; empty for TCP.
  std::string host;  // Of TCP, without brackets.
  int port = 0;      // 0: any that is free.

  bool is_unix() const { return !path.empty(); }
};

// Error: INVALID_ARGUMENT, saying what is wrong with `text`.
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text);

// "HOST:PORT" with its port replaced, e.g. by the one that port 0 got.
std::string WithPort(absl::string_view host_and_port, int port);

// Whether only this machine can reach `address`: a Unix socket, or a host all of whose addresses
// are loopback ones. Asks the resolver for names. Error: UNAVAILABLE if it does not know the host.
absl::StatusOr<bool> IsLocal(const ListenAddress& address);

// Binds `address` and lets go of it again, to find what stands in the way; `flag` is named in the
// error. A Unix socket that a dead server left behind is removed, one that is in use never. An
// address of a host that has several may be missing on this machine; every other must be free.
//
// A look, not a lock. Of two servers that take one port in the same instant the second fails in
// gRPC; on one Unix path it takes the path over, and the first goes on with a socket that nobody
// can find. Whoever may start two at once gives each a path of its own.
//
// Error: UNAVAILABLE, one sentence with flag, address, and the system's reason.
absl::Status CheckCanListen(const ListenAddress& address, absl::string_view flag);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_LISTEN_ADDRESS_H_
