// Parsing and resolving of an address to listen on, as given by a flag.
//
// Pure except for the two functions that ask the resolver. Thread-safe.
#ifndef SPILLWAY_SERVER_NET_LISTEN_ADDRESS_H_
#define SPILLWAY_SERVER_NET_LISTEN_ADDRESS_H_

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
  std::string path;  // Path of a Unix socket; empty for TCP.
  std::string host;  // Host for TCP, without brackets.
  int port = 0;      // 0: any free port.

  bool is_unix() const { return !path.empty(); }
};

// Parses `text`. Error: INVALID_ARGUMENT, with the reason.
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text);

// Returns "HOST:PORT" with the port replaced, e.g. by the one assigned for port 0.
std::string WithPort(absl::string_view host_and_port, int port);

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// Asks the resolver for all addresses of the host, with the port, in the resolver's order; at least
// one. Error: UNAVAILABLE if it does not know the host. REQUIRES: not a Unix socket.
absl::StatusOr<AddressList> ResolveHost(const ListenAddress& address);

// Whether only this machine can reach `address`: a Unix socket, or a host with only loopback
// addresses. Asks the resolver for host names. Error: UNAVAILABLE if it does not know the host.
absl::StatusOr<bool> IsLocal(const ListenAddress& address);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_NET_LISTEN_ADDRESS_H_
