#include "server/base/status_to_grpc.h"

#include <algorithm>
#include <map>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/error.h"
#include "server/base/error_fault.h"
#include "spillway/v1/error.pb.h"

namespace spillway::server {
namespace {

// gRPC peers reject trailing metadata above 8 KiB (GRPC_ARG_MAX_METADATA_SIZE). The message is sent
// twice: percent-encoded in grpc-message (three bytes per unprintable one) and in the details,
// which are base64 (four bytes for three). The worst case, 3 * 1024 + 4 / 3 * (1024 + 2048 +
// envelope), is below 7.3 KiB.
constexpr size_t kMaxMessageBytes = 1024;
constexpr size_t kMaxInfoBytes = 2048;
constexpr char kCut[] = "...";

// Makes the message fit for a protobuf string and a log line: ASCII, and at most kMaxMessageBytes.
std::string Presentable(absl::string_view message) {
  const bool plain = std::all_of(message.begin(), message.end(),
                                 [](unsigned char c) { return c >= 0x20 && c < 0x7f; });
  std::string text = plain ? std::string(message) : absl::CHexEscape(message);
  if (text.size() > kMaxMessageBytes) {
    text.resize(kMaxMessageBytes - (sizeof(kCut) - 1));
    text += kCut;
  }
  return text;
}

v1::ErrorInfo InfoOf(const absl::Status& status) {
  v1::ErrorInfo info = core::GetErrorInfo(status);
  if (info.reason().empty()) info.set_reason(ReasonName(ReportedReason(status)));
  info.set_domain("spillway.v1");
  if (info.ByteSizeLong() <= kMaxInfoBytes) return info;
  // Keeps the entries that fit, in order of key, so that the answer does not depend on a hash.
  v1::ErrorInfo fitting;
  fitting.set_reason(info.reason());
  fitting.set_domain(info.domain());
  const std::map<std::string, std::string> sorted(info.metadata().begin(), info.metadata().end());
  for (const auto& [key, value] : sorted) {
    (*fitting.mutable_metadata())[key] = value;
    if (fitting.ByteSizeLong() > kMaxInfoBytes) fitting.mutable_metadata()->erase(key);
  }
  return fitting;
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const std::string message = Presentable(status.message());
  v1::StatusDetails details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(message);
  google::protobuf::Any* any = details.add_details();
  any->set_type_url(core::kErrorInfoTypeUrl);
  any->set_value(InfoOf(status).SerializeAsString());
  // The codes have the same numbers in both by design.
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message,
                      details.SerializeAsString());
}

v1::ErrorReason ReportedReason(const absl::Status& status) {
  if (!core::GetErrorInfo(status).reason().empty()) return core::GetErrorReason(status);
  const bool stopped = absl::IsCancelled(status) || absl::IsDeadlineExceeded(status);
  return stopped ? v1::ERROR_REASON_STOPPED : v1::ERROR_REASON_INTERNAL;
}

std::string CodeName(absl::StatusCode code) { return absl::StatusCodeToString(code); }

}  // namespace spillway::server
