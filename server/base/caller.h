// The identity of a caller, for the log and for fairness between callers: an address, and the name
// in a client certificate. Claims of a proxy are trusted only on a Unix socket, which only the
// proxy can reach.
#ifndef SPILLWAY_SERVER_BASE_CALLER_H_
#define SPILLWAY_SERVER_BASE_CALLER_H_

#include <grpcpp/server_context.h>

#include <string>

namespace spillway::server {

// Metadata set by a proxy in front (deploy/proxy): the client's address, and the common name in its
// certificate. The proxy must remove these keys if the client sends them.
inline constexpr char kProxiedPeerKey[] = "x-spillway-peer";
inline constexpr char kProxiedCertificateKey[] = "x-spillway-certificate";

struct Caller {
  std::string peer;         // As gRPC spells it: `ipv4:127.0.0.1:50412`; or as the proxy does.
  std::string certificate;  // The common name; empty without one.

  // The peer without its port: all connections of a host count as one for fairness.
  std::string host() const;
};

Caller CallerOf(const grpc::ServerContextBase& context);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_BASE_CALLER_H_
