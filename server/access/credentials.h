// The credentials that a caller presents, for access_list.h.
#ifndef SPILLWAY_SERVER_ACCESS_CREDENTIALS_H_
#define SPILLWAY_SERVER_ACCESS_CREDENTIALS_H_

#include <grpcpp/server_context.h>

#include <string>
#include <vector>

#include "server/base/caller.h"

namespace spillway::server {

struct Credentials {
  // For its certificate, signed by --tls-client-ca: the DNS names and URIs among the subject
  // alternative names, otherwise the common name. For a certificate that a proxy has verified: the
  // common name.
  std::vector<std::string> certificate_names;
  // All values of the metadata `authorization`. Secret.
  std::vector<std::string> authorization;
};

// `caller`: CallerOf(context).
Credentials CredentialsOf(const grpc::ServerContextBase& context, const Caller& caller);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_ACCESS_CREDENTIALS_H_
