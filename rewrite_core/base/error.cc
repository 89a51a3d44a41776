#include "rewrite_core/base/error.h"

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/strip.h"

namespace spillway::core {
namespace {

constexpr char kReasonPrefix[] = "ERROR_REASON_";
// Long enough for a deep name scope, short enough for a log line and for gRPC's 8 KiB of metadata.
constexpr size_t kMaxQuotedBytes = 200;

std::string Shortened(absl::string_view text) {
  if (text.size() <= kMaxQuotedBytes) return absl::CHexEscape(text);
  return absl::StrCat(absl::CHexEscape(text.substr(0, kMaxQuotedBytes)), "...");
}

}  // namespace

absl::Status Error(absl::StatusCode code, v1::ErrorReason reason, absl::string_view message,
                   absl::Span<const ErrorDetail> details) {
  v1::ErrorInfo info;
  info.set_reason(std::string(absl::StripPrefix(v1::ErrorReason_Name(reason), kReasonPrefix)));
  info.set_domain("spillway.v1");
  for (const auto& [key, value] : details) {
    (*info.mutable_metadata())[std::string(key)] = Shortened(value);
  }
  absl::Status status(code, message);
  status.SetPayload(kErrorInfoTypeUrl, absl::Cord(info.SerializeAsString()));
  return status;
}

absl::Status InvalidError(v1::ErrorReason reason, absl::string_view message,
                          absl::Span<const ErrorDetail> details) {
  return Error(absl::StatusCode::kInvalidArgument, reason, message, details);
}

absl::Status BadOptionError(absl::string_view option, const absl::AlphaNum& value,
                            absl::string_view remedy) {
  return InvalidError(v1::ERROR_REASON_BAD_OPTION,
                      absl::StrCat(option, " is ", value, "; ", remedy),
                      {{"option", option}, {"value", value.Piece()}});
}

absl::Status UnknownValueError(absl::string_view option, int value) {
  return InvalidError(v1::ERROR_REASON_UNKNOWN_OPTION,
                      absl::StrCat(option, " is ", value,
                                   ", which this server does not know; see "
                                   "GetCapabilities, or update the server"),
                      {{"option", option}, {"value", absl::StrCat(value)}});
}

absl::Status WithDetail(const absl::Status& status, absl::string_view key,
                        absl::string_view value) {
  const auto payload = status.GetPayload(kErrorInfoTypeUrl);
  if (!payload) return status;
  v1::ErrorInfo info = GetErrorInfo(status);
  (*info.mutable_metadata())[std::string(key)] = Shortened(value);
  absl::Status detailed = status;
  detailed.SetPayload(kErrorInfoTypeUrl, absl::Cord(info.SerializeAsString()));
  return detailed;
}

absl::Status WithMoreText(const absl::Status& status, absl::string_view text) {
  absl::Status longer(status.code(), absl::StrCat(status.message(), text));
  status.ForEachPayload([&longer](absl::string_view url, const absl::Cord& payload) {
    longer.SetPayload(url, payload);
  });
  return longer;
}

v1::ErrorInfo GetErrorInfo(const absl::Status& status) {
  v1::ErrorInfo info;
  if (auto payload = status.GetPayload(kErrorInfoTypeUrl)) {
    info.ParseFromString(std::string(*payload));
  }
  return info;
}

v1::ErrorReason GetErrorReason(const absl::Status& status) {
  v1::ErrorReason reason = v1::ERROR_REASON_UNSPECIFIED;
  v1::ErrorReason_Parse(absl::StrCat(kReasonPrefix, GetErrorInfo(status).reason()), &reason);
  return reason;
}

std::string Quoted(absl::string_view text) { return absl::StrCat("'", Shortened(text), "'"); }

}  // namespace spillway::core
