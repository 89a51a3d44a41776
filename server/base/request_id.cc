#include "server/base/request_id.h"

#include <cstdint>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"

namespace spillway::server {
namespace {

// Returns the caller's value of `key`; empty if none.
std::string Given(const grpc::ServerContextBase& context, const char* key) {
  const auto& metadata = context.client_metadata();
  const auto given = metadata.find(key);
  if (given == metadata.end()) return "";
  return std::string(given->second.data(), given->second.size());
}

// The same, if it is valid.
std::string PlainGiven(const grpc::ServerContextBase& context, const char* key) {
  std::string given = Given(context, key);
  return core::IsRequestId(given) ? given : "";
}

std::string RandomId() {
  thread_local absl::InsecureBitGen generator;  // Ids must be unique, not secret.
  return absl::StrCat(absl::Hex(absl::Uniform<uint64_t>(generator), absl::kZeroPad16));
}

}  // namespace

std::string RequestIdOf(const grpc::ServerContextBase& context) {
  std::string given = Given(context, core::kRequestIdKey);
  return core::IsRequestId(given) ? given : RandomId();
}

std::string TraceparentOf(const grpc::ServerContextBase& context) {
  std::string given = Given(context, core::kTraceparentKey);
  return core::IsTraceparent(given) ? given : "";
}

JobNames JobNamesOf(const grpc::ServerContextBase& context) {
  return {PlainGiven(context, core::kJobKey), PlainGiven(context, core::kUserKey),
          PlainGiven(context, core::kQueueKey), PlainGiven(context, core::kModelKey)};
}

}  // namespace spillway::server
