// Charges all CPU time of a thread within a scope to the account of the caller that it works for:
// digests, comparisons, answers.
//
// Scopes nest: if one caller's answer leads to work for another on the same thread, each is charged
// for its own.
//
// Thread safety: an object belongs to its thread.
#ifndef SPILLWAY_SERVER_ACCESS_CPU_CHARGE_H_
#define SPILLWAY_SERVER_ACCESS_CPU_CHARGE_H_

#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "server/access/access_list.h"
#include "server/access/caller_account.h"

namespace spillway::server {

// Returns the CPU time that this thread has used since it started.
absl::Duration ThreadCpuTime();

class CpuCharge {
 public:
  // `account`: null if no caller is charged. `access`, whose clock is used, may then also be null,
  // and otherwise must outlive this.
  CpuCharge(std::shared_ptr<CallerAccount> account, const AccessList* access);
  ~CpuCharge();
  CpuCharge(const CpuCharge&) = delete;
  CpuCharge& operator=(const CpuCharge&) = delete;

  // Charges this thread's CPU time so far, so that the next answer is based on current quotas.
  static void Settle();

 private:
  void ChargeSoFar();

  const std::shared_ptr<CallerAccount> account_;
  const AccessList* const access_;
  CpuCharge* const outer_;
  absl::Duration from_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_ACCESS_CPU_CHARGE_H_
