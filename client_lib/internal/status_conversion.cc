#include "client_lib/internal/status_conversion.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client_lib/internal/service_names.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/capabilities.h"
#include "spillway/v1/error.pb.h"

namespace spillway::internal {
namespace {

// Parts of gRPC 1.51's messages for failed connections, and their meaning for users. They are
// matched as text, since gRPC gives no code.
struct ConnectionFault {
  const char* says;
  const char* means;
  bool lasts;  // The next attempt fails the same way.
};
// A server that requires a certificate says so in a TLS alert, which gRPC does not pass on.
constexpr char kClosed[] =
    "it closed the connection at once: it may want TLS, or a client certificate from an authority "
    "that it trusts, or be stopping";
constexpr ConnectionFault kConnectionFaults[] = {
    {"certificate verify failed",
     "its certificate is not valid today, or not from an authority that this client trusts; check "
     "the server's certificate and the client's list of authorities (--tls-ca)",
     true},
    {"is not in peer certificate",
     "its certificate is for another name; check the address, or give the name in the certificate "
     "(--tls-server-name)",
     true},
    {"wrong version number", "it does not speak TLS; leave TLS out, or check the port", true},
    {"backend unhealthy", "it says that it does not serve now: it is starting or stopping", false},
    {"Socket closed", kClosed, false},
    {"Connection reset by peer", kClosed, false},
};
// Messages of its policies pick_first and round_robin.
constexpr char kWhileConnecting[] = "failed to connect";
constexpr char kNoneConnected[] = "connections to all backends failing";

absl::Status Unreachable(const std::string& server, const std::string& message,
                         const std::string& cause) {
  const bool while_connecting =
      absl::StrContains(message, kWhileConnecting) || absl::StrContains(message, kNoneConnected);
  for (const ConnectionFault& fault : kConnectionFaults) {
    if (!while_connecting || !absl::StrContains(message, fault.says)) continue;
    absl::Status status =
        absl::UnavailableError(absl::StrCat("cannot talk to ", server, ": ", fault.means, cause));
    if (fault.lasts) status.SetPayload(kNoRetryUrl, absl::Cord());
    return status;
  }
  return absl::UnavailableError(absl::StrCat("cannot reach ", server, cause,
                                             "; check the address, and that spillwayd runs there, "
                                             "then try again"));
}

// Converts an error made by gRPC. gRPC's own message is kept in brackets, since it has the cause.
absl::Status FromTransport(absl::StatusCode code, const std::string& message,
                           absl::string_view target) {
  const std::string cause = message.empty() ? "" : absl::StrCat(" (", message, ")");
  const std::string server = absl::StrCat("the server ", core::Quoted(target));
  switch (code) {
    case absl::StatusCode::kUnavailable:
      return Unreachable(server, message, cause);
    case absl::StatusCode::kUnimplemented:
      return absl::Status(
          code, absl::StrCat(server, " does not speak ", kApiPackage, " as this client does", cause,
                             "; check that it is a spillwayd of the same major version"));
    case absl::StatusCode::kDeadlineExceeded:
      return core::Error(
          code, v1::ERROR_REASON_STOPPED,
          absl::StrCat("the deadline passed before ", server, " had answered; allow more time"),
          {{"stage", "call"}});
    case absl::StatusCode::kCancelled:
      return core::Error(code, v1::ERROR_REASON_STOPPED, "the call was cancelled",
                         {{"stage", "call"}});
    default:
      return absl::Status(code,
                          message.empty() ? absl::StrCat(server, " gave no reason") : message);
  }
}

}  // namespace

absl::Status FromGrpc(const grpc::Status& status, absl::string_view target) {
  if (status.ok()) return absl::OkStatus();
  // absl's codes have the same numbers as gRPC's.
  absl::Status converted(static_cast<absl::StatusCode>(status.error_code()),
                         status.error_message());
  v1::StatusDetails details;
  if (details.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& detail : details.details()) {
      converted.SetPayload(detail.type_url(), absl::Cord(detail.value()));
    }
  }
  if (converted.GetPayload(core::kErrorInfoTypeUrl).has_value()) return converted;
  return FromTransport(converted.code(), status.error_message(), target);
}

bool IsUnknownMethod(const absl::Status& status) {
  return absl::IsUnimplemented(status) &&
         core::GetErrorReason(status) == v1::ERROR_REASON_UNSPECIFIED;
}

absl::Status TooOldFor(absl::string_view method, absl::string_view target,
                       absl::string_view server_version) {
  return absl::UnimplementedError(
      absl::StrCat("the server ", core::Quoted(target), " is of version ", server_version,
                   ", which has no ", method, " yet; this client is of version ", core::Version(),
                   ": update the server, or ask in this process, without a server"));
}

}  // namespace spillway::internal
