// What a caller shows to be known by, for access_list.h.
#ifndef SPILLWAY_SERVER_CREDENTIALS_H_
#define SPILLWAY_SERVER_CREDENTIALS_H_

#include <grpcpp/server_context.h>

#include <string>
#include <vector>

#include "server/caller.h"

namespace spillway::server {

struct Credentials {
  // Of its certificate, which --tls-client-ca has signed: the DNS names and URIs among the subject
  // alternative names; where there are none, the common name. Of a certificate that a proxy has
  // seen, the common name.
  std::vector<std::string> certificate_names;
  // The metadata `authorization`, each that came. Secret.
  std::vector<std::string> authorization;
};

// `caller`: CallerOf(context).
Credentials CredentialsOf(const grpc::ServerContextBase& context, const Caller& caller);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CREDENTIALS_H_
