#include "server/request_id.h"

#include <algorithm>
#include <cstdint>

#include "absl/random/random.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace spillway::server {
namespace {

bool IsPlainWord(grpc::string_ref text) {
  return !text.empty() && text.size() <= kMaxRequestIdBytes &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return absl::ascii_isgraph(c) && c != '"' && c != '\\';
         });
}

std::string RandomId() {
  thread_local absl::InsecureBitGen generator;  // Ids need to differ, not to be secret.
  return absl::StrCat(absl::Hex(absl::Uniform<uint64_t>(generator), absl::kZeroPad16));
}

}  // namespace

std::string RequestIdOf(const grpc::ServerContextBase& context) {
  const auto& metadata = context.client_metadata();
  const auto given = metadata.find(kRequestIdKey);
  if (given != metadata.end() && IsPlainWord(given->second)) {
    return std::string(given->second.data(), given->second.size());
  }
  return RandomId();
}

}  // namespace spillway::server
