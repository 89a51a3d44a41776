// An address to listen on, as a flag spells it, and what it means.
//
// Pure but for the two functions that say what they ask. Thread-safe.
#ifndef SPILLWAY_SERVER_LISTEN_ADDRESS_H_
#define SPILLWAY_SERVER_LISTEN_ADDRESS_H_

#include <netdb.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace spillway::server {

// `HOST:PORT` (an IPv6 address in brackets) or `unix:PATH`, the path absolute and without '%',
// which gRPC's clients would decode.
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

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// All addresses of the host, with the port, in the resolver's order, of which it is asked; at least
// one. Error: UNAVAILABLE if it does not know the host. REQUIRES: not a Unix socket.
absl::StatusOr<AddressList> ResolveHost(const ListenAddress& address);

// Whether only this machine can reach `address`: a Unix socket, or a host all of whose addresses
// are loopback ones. Asks the resolver for names. Error: UNAVAILABLE if it does not know the host.
absl::StatusOr<bool> IsLocal(const ListenAddress& address);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_LISTEN_ADDRESS_H_
