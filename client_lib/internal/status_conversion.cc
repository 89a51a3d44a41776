#include "client_lib/internal/status_conversion.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/graph/error.h"
#include "spillway/v1/error.pb.h"

namespace spillway::internal {
namespace {

// An error that gRPC made. gRPC's own message is kept in brackets: it has the cause.
absl::Status FromTransport(absl::StatusCode code, const std::string& message,
                           absl::string_view target) {
  const std::string cause = message.empty() ? "" : absl::StrCat(" (", message, ")");
  const std::string server = absl::StrCat("the server ", core::Quoted(target));
  switch (code) {
    case absl::StatusCode::kUnavailable:
      return absl::Status(code, absl::StrCat("cannot reach ", server, cause,
                                             "; check the address, and that spillwayd runs there, "
                                             "then try again"));
    case absl::StatusCode::kUnimplemented:
      return absl::Status(code,
                          absl::StrCat(server, " does not know this call", cause,
                                       "; check that it is a spillwayd, and not an older one"));
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
  // The codes of absl are those of gRPC, by number.
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

}  // namespace spillway::internal
