#include "server/base/caller.h"

#include <arpa/inet.h>
#include <grpc/grpc_security_constants.h>
#include <netinet/in.h>

#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
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

std::string HostOf(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN];
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
  }
  if (address.ss_family != AF_INET6) return "";
  in6_addr v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) return inet_ntop(AF_INET, v6.s6_addr + 12, text, sizeof(text));
  std::memset(v6.s6_addr + 8, 0, 8);
  return absl::StrCat(inet_ntop(AF_INET6, &v6, text, sizeof(text)), "/64");
}

std::string Caller::host() const {
  // `ipv4:HOST:PORT`, `ipv6:%5BHOST%5D:PORT`, or, as the proxy spells it, HOST.
  absl::string_view text = peer;
  if (absl::ConsumePrefix(&text, "ipv4:") || absl::ConsumePrefix(&text, "ipv6:")) {
    text = text.substr(0, text.rfind(':'));
  }
  if (!absl::ConsumePrefix(&text, "%5B")) absl::ConsumePrefix(&text, "[");
  const std::string host(text.substr(0, text.find_first_of("%]")));  // `%` also begins a zone.
  sockaddr_storage address = {};
  void* const v4 = &reinterpret_cast<sockaddr_in&>(address).sin_addr;
  void* const v6 = &reinterpret_cast<sockaddr_in6&>(address).sin6_addr;
  address.ss_family = inet_pton(AF_INET, host.c_str(), v4) == 1    ? AF_INET
                      : inet_pton(AF_INET6, host.c_str(), v6) == 1 ? AF_INET6
                                                                   : AF_UNSPEC;
  return address.ss_family == AF_UNSPEC ? peer : HostOf(address);
}

Caller CallerOf(const grpc::ServerContextBase& context) {
  Caller caller = {context.peer(), CertificateName(context)};
  if (!absl::StartsWith(caller.peer, "unix:")) return caller;
  const std::string peer = Claim(context, kProxiedPeerKey);
  if (peer.empty()) return caller;
  return {peer, Claim(context, kProxiedCertificateKey)};
}

}  // namespace spillway::server
