#include "client_lib/internal/job_names.h"

#include <cstdlib>

#include "rewrite_core/base/request_names.h"

namespace spillway::internal {
namespace {

constexpr JobName kJobNames[] = {{core::kJobKey, "SPILLWAY_JOB"},
                                 {core::kUserKey, "SPILLWAY_USER"},
                                 {core::kQueueKey, "SPILLWAY_QUEUE"},
                                 {core::kModelKey, "SPILLWAY_MODEL"}};

}  // namespace

absl::Span<const JobName> JobNames() { return kJobNames; }

std::string AsJobName(absl::string_view text) {
  std::string name(text.substr(0, core::kMaxRequestNameBytes));
  for (char& c : name) {
    if (!core::IsRequestId(absl::string_view(&c, 1))) c = '_';
  }
  return name;
}

std::vector<std::pair<std::string, std::string>> JobNamesFromEnvironment() {
  std::vector<std::pair<std::string, std::string>> names;
  for (const JobName& name : kJobNames) {
    const char* const value = std::getenv(name.variable);
    if (value != nullptr && *value != '\0') names.emplace_back(name.key, AsJobName(value));
  }
  return names;
}

}  // namespace spillway::internal
