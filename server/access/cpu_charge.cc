#include "server/access/cpu_charge.h"

#include <time.h>

namespace spillway::server {
namespace {

thread_local CpuCharge* current = nullptr;

}  // namespace

absl::Duration ThreadCpuTime() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

CpuCharge::CpuCharge(std::shared_ptr<CallerAccount> account, const AccessList* access)
    : account_(std::move(account)), access_(access), outer_(current) {
  if (outer_ != nullptr) outer_->ChargeSoFar();
  if (account_ != nullptr) from_ = ThreadCpuTime();
  current = this;
}

CpuCharge::~CpuCharge() {
  ChargeSoFar();
  current = outer_;
  if (outer_ != nullptr && outer_->account_ != nullptr) outer_->from_ = ThreadCpuTime();
}

void CpuCharge::Settle() {
  if (current != nullptr) current->ChargeSoFar();
}

void CpuCharge::ChargeSoFar() {
  if (account_ == nullptr) return;
  const absl::Duration now = ThreadCpuTime();
  account_->ChargeCpu(now - from_, access_->now());
  from_ = now;
}

}  // namespace spillway::server
