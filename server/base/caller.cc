#include "server/base/caller.h"

#include <grpc/grpc_security_constants.h>

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/request_names.h"

namespace spillway::server {
namespace {

// Returns the name if it is not too long for the log (which escapes it); otherwise empty.
std::string Name(grpc::string_ref text) {
  return text.size() > core::kMaxRequestNameBytes ? "" : std::string(text.data(), text.size());
}

std::string Claim(const grpc::ServerContextBase& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  return found == context.client_metadata().end() ? "" : Name(found->second);
}

std::string CertificateName(const grpc::ServerContextBase& context) {
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr) return "";
  const std::vector<grpc::string_ref> names = auth->FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME);
  return names.empty() ? "" : Name(names[0]);
}

}  // namespace

std::string Caller::host() const {
  const absl::string_view text = peer;
  return std::string(absl::StartsWith(text, "ip") ? text.substr(0, text.rfind(':')) : text);
}

Caller CallerOf(const grpc::ServerContextBase& context) {
  Caller caller = {context.peer(), CertificateName(context)};
  if (!absl::StartsWith(caller.peer, "unix:")) return caller;
  const std::string peer = Claim(context, kProxiedPeerKey);
  if (peer.empty()) return caller;
  return {peer, Claim(context, kProxiedCertificateKey)};
}

}  // namespace spillway::server
