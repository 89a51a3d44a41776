#include "server/access/credentials.h"

#include <grpc/grpc_security_constants.h>

#include <memory>

namespace spillway::server {
namespace {

constexpr char kAuthorizationKey[] = "authorization";

}  // namespace

Credentials CredentialsOf(const grpc::ServerContextBase& context, const Caller& caller) {
  Credentials shown;
  // A connection without TLS, such as a Unix socket, has none. E-mail addresses and the like are
  // not used: a CA does not always check that they are the caller's.
  if (const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context()) {
    for (const char* kind : {GRPC_PEER_DNS_PROPERTY_NAME, GRPC_PEER_URI_PROPERTY_NAME}) {
      for (grpc::string_ref name : auth->FindPropertyValues(kind)) {
        shown.certificate_names.emplace_back(name.data(), name.size());
      }
    }
  }
  // RFC 6125, section 6.4.4: the common name is the last resort.
  if (shown.certificate_names.empty() && !caller.certificate.empty()) {
    shown.certificate_names.push_back(caller.certificate);
  }
  const auto given = context.client_metadata().equal_range(kAuthorizationKey);
  for (auto it = given.first; it != given.second; ++it) {
    shown.authorization.emplace_back(it->second.data(), it->second.size());
  }
  return shown;
}

}  // namespace spillway::server
