#include "server/credentials.h"

#include <grpc/grpc_security_constants.h>

#include <memory>

namespace spillway::server {
namespace {

constexpr char kAuthorizationKey[] = "authorization";

}  // namespace

Credentials CredentialsOf(const grpc::ServerContextBase& context, const Caller& caller) {
  Credentials shown;
  if (!caller.certificate.empty()) shown.certificate_names.push_back(caller.certificate);
  // Of a connection without TLS, as on a Unix socket, there are none.
  if (const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context()) {
    for (grpc::string_ref name : auth->FindPropertyValues(GRPC_X509_SAN_PROPERTY_NAME)) {
      shown.certificate_names.emplace_back(name.data(), name.size());
    }
  }
  const auto given = context.client_metadata().equal_range(kAuthorizationKey);
  for (auto it = given.first; it != given.second; ++it) {
    shown.authorization.emplace_back(it->second.data(), it->second.size());
  }
  return shown;
}

}  // namespace spillway::server
