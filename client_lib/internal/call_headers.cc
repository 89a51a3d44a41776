#include "client_lib/internal/call_headers.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client_lib/internal/addresses.h"
#include "client_lib/internal/job_names.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/request_names.h"
#include "rewrite_core/base/small_file.h"

namespace spillway::internal {
namespace {

// From RFC 6750, like the scheme and the `b64token` below.
constexpr char kAuthorizationKey[] = "authorization";
constexpr char kBearer[] = "Bearer ";
// gRPC servers refuse more than 8 KiB of metadata in total.
constexpr size_t kMaxTokenBytes = 4096;

absl::Status BadHeader(const char* option, absl::string_view message) {
  return core::InvalidError(v1::ERROR_REASON_BAD_OPTION, message, {{"option", option}});
}

bool IsBearerToken(absl::string_view text) {
  const size_t last = text.find_last_not_of('=');
  if (last == absl::string_view::npos || text.size() > kMaxTokenBytes) return false;
  for (const char c : text.substr(0, last + 1)) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains("-._~+/", absl::string_view(&c, 1))) {
      return false;
    }
  }
  return true;
}

// Returns the token of this call, if any. No message contains the token.
absl::StatusOr<std::string> TokenOf(const RemoteOptions& options, const CallOptions& call) {
  constexpr char kForm[] =
      "it has to be 1 to 4096 letters, digits and -._~+/, with any = at its end (RFC 6750)";
  if (!call.token.empty()) {
    if (IsBearerToken(call.token)) return call.token;
    return BadHeader("token", absl::StrCat("the token cannot be sent: ", kForm));
  }
  if (options.token_file.empty()) return std::string();
  const std::string name = absl::StrCat("the token file ", core::Quoted(options.token_file));
  const absl::StatusOr<std::string> content = core::ReadSmallFile(options.token_file);
  if (!content.ok()) {
    return BadHeader("token_file", absl::StrCat(name, ": ", content.status().message()));
  }
  std::string token(absl::StripAsciiWhitespace(*content));
  if (IsBearerToken(token)) return token;
  return BadHeader("token_file", absl::StrCat(name, " holds no token: ", kForm));
}

// As documented in CallOptions::metadata. In normal use, the total is well below the limit of
// servers (8 KiB); gRPC itself refuses more.
constexpr size_t kMaxEntries = 32;
constexpr size_t kMaxKeyBytes = 64;
constexpr size_t kMaxValueBytes = 1024;

// Reserved names: those of gRPC (PROTOCOL-HTTP2.md), HTTP/2, and the fields of CallOptions.
bool IsReserved(absl::string_view key) {
  for (const absl::string_view taken :
       {"authorization", core::kRequestIdKey, core::kTraceparentKey, "te", "host", "connection",
        "content-type", "content-length", "transfer-encoding", "user-agent"}) {
    if (key == taken) return true;
  }
  return absl::StartsWith(key, "grpc-") || absl::EndsWith(key, "-bin");
}

bool IsKey(absl::string_view key) {
  if (key.empty() || key.size() > kMaxKeyBytes || IsReserved(key)) return false;
  for (const char c : key) {
    if (!absl::ascii_islower(c) && !absl::ascii_isdigit(c) && c != '-' && c != '_' && c != '.') {
      return false;
    }
  }
  return true;
}

bool IsValue(absl::string_view value) {
  if (value.size() > kMaxValueBytes) return false;
  for (const char c : value) {
    if (!absl::ascii_isprint(c)) return false;
  }
  return true;
}

bool HasKey(const CallHeaders& headers, absl::string_view key) {
  return std::any_of(headers.begin(), headers.end(),
                     [key](const auto& header) { return header.first == key; });
}

bool IsJobKey(absl::string_view key) {
  const absl::Span<const JobName> names = JobNames();
  return std::any_of(names.begin(), names.end(),
                     [key](const JobName& name) { return key == name.key; });
}

absl::Status AddMetadata(const CallOptions& call, CallHeaders* headers) {
  if (call.metadata.size() > kMaxEntries) {
    return BadHeader("metadata", absl::StrCat("metadata has ", call.metadata.size(),
                                              " entries; at most ", kMaxEntries, " are sent"));
  }
  for (const auto& [key, value] : call.metadata) {
    if (!IsKey(key)) {
      return BadHeader("metadata",
                       absl::StrCat("metadata cannot be called ", core::Quoted(key),
                                    ": a name is 1 to ", kMaxKeyBytes,
                                    " small letters, digits and -_., and none that gRPC, HTTP or "
                                    "another field of CallOptions has"));
    }
    if (!IsValue(value)) {
      return BadHeader("metadata", absl::StrCat("the value of metadata ", core::Quoted(key),
                                                " cannot be sent: it has to be at most ",
                                                kMaxValueBytes, " printable ASCII characters"));
    }
    if (IsJobKey(key) && HasKey(*headers, key)) continue;
    headers->emplace_back(key, value);
  }
  return absl::OkStatus();
}

absl::Status CheckSecret(const RemoteOptions& options, const std::vector<std::string>& addresses) {
  if (options.tls.has_value() || options.token_in_clear) return absl::OkStatus();
  for (const std::string& address : addresses) {
    if (StaysOnMachine(address)) continue;
    return BadHeader("token",
                     absl::StrCat("the token would go to ", core::Quoted(address),
                                  " where others can read it; encrypt the connection (--tls), or "
                                  "allow it (--token-in-clear)"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CallHeaders> MakeCallHeaders(const RemoteOptions& options,
                                            const std::vector<std::string>& addresses,
                                            const CallOptions& call, const CallHeaders& job_names) {
  CallHeaders headers;
  if (!call.request_id.empty()) {
    if (!core::IsRequestId(call.request_id)) {
      return BadHeader(
          "request_id",
          absl::StrCat("the request id ", core::Quoted(call.request_id),
                       " cannot be sent: it has to be 1 to ", core::kMaxRequestNameBytes,
                       " printable ASCII characters without space, quote or "
                       "backslash"));
    }
    headers.emplace_back(core::kRequestIdKey, call.request_id);
  }
  if (!call.traceparent.empty()) {
    if (!core::IsTraceparent(call.traceparent)) {
      return BadHeader("traceparent",
                       absl::StrCat("the traceparent ", core::Quoted(call.traceparent),
                                    " is not of the form of W3C Trace Context, e.g. "
                                    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
    }
    headers.emplace_back(core::kTraceparentKey, call.traceparent);
  }
  if (absl::Status status = AddMetadata(call, &headers); !status.ok()) return status;
  for (const auto& name : job_names) {
    if (!HasKey(headers, name.first)) headers.push_back(name);
  }
  const absl::StatusOr<std::string> token = TokenOf(options, call);
  if (!token.ok()) return token.status();
  if (!token->empty()) {
    absl::Status status = CheckSecret(options, addresses);
    if (!status.ok()) return status;
    headers.emplace_back(kAuthorizationKey, absl::StrCat(kBearer, *token));
  }
  return headers;
}

}  // namespace spillway::internal
