// The identity of a caller, for the log and for fairness between callers: an address, and the name
// in a client certificate. Claims of a proxy are trusted only on a Unix socket (--listen
// unix:PATH), which only the server's own user, as whom the proxy runs, can reach.
#ifndef SPILLWAY_SERVER_BASE_CALLER_H_
#define SPILLWAY_SERVER_BASE_CALLER_H_

#include <grpcpp/server_context.h>
#include <sys/socket.h>

#include <string>

namespace spillway::server {

// Metadata set by a proxy in front (deploy/proxy): the client's address, and the common name in its
// certificate. The proxy must remove these keys if the client sends them.
inline constexpr char kProxiedPeerKey[] = "x-spillway-peer";
inline constexpr char kProxiedCertificateKey[] = "x-spillway-certificate";

// The address as all limits of one caller count it, so that a client cannot multiply at no cost: no
// port; of IPv6 the /64 network, in which a client may take any address; an IPv4 address that is
// mapped into IPv6 as IPv4. Empty for a Unix socket.
std::string HostOf(const sockaddr_storage& address);

struct Caller {
  std::string peer;         // As gRPC spells it: `ipv4:127.0.0.1:50412`; or as the proxy does.
  std::string certificate;  // The common name; empty without one.

  // HostOf the peer; the peer itself without an address: all on Unix sockets, who are one user.
  std::string host() const;
};

Caller CallerOf(const grpc::ServerContextBase& context);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_BASE_CALLER_H_
