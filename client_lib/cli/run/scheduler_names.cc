#include "client_lib/cli/run/scheduler_names.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "client_lib/internal/job_names.h"
#include "rewrite_core/base/request_names.h"

namespace spillway::cli {
namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string JobOfScheduler() {
  const std::string array = Variable("SLURM_ARRAY_JOB_ID"), task = Variable("SLURM_ARRAY_TASK_ID");
  // For a task of an array, SLURM_JOB_ID is a number that users do not see.
  if (!array.empty() && !task.empty()) return absl::StrCat(array, "_", task);
  if (std::string job = Variable("SLURM_JOB_ID"); !job.empty()) return job;
  // Elsewhere, HOSTNAME is the name of the machine, not of a job.
  return Variable("KUBERNETES_SERVICE_HOST").empty() ? "" : Variable("HOSTNAME");
}

std::string NameOfScheduler(absl::string_view key) {
  if (key == core::kJobKey) return JobOfScheduler();
  if (key == core::kUserKey) return Variable("SLURM_JOB_USER");
  if (key == core::kQueueKey) return Variable("SLURM_JOB_PARTITION");
  return Variable("SLURM_JOB_NAME");
}

}  // namespace

void AddSchedulerNames(CallOptions* call) {
  for (const internal::JobName& name : internal::JobNames()) {
    const bool given = std::any_of(call->metadata.begin(), call->metadata.end(),
                                   [&](const auto& entry) { return entry.first == name.key; });
    if (given || !Variable(name.variable).empty()) continue;
    const std::string value = NameOfScheduler(name.key);
    if (!value.empty()) call->metadata.emplace_back(name.key, internal::AsJobName(value));
  }
}

}  // namespace spillway::cli
