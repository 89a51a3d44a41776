// Charges the CPU time of a thread to the account of the caller it works for, from here to the end
// of the block, whatever is done there: digests, comparisons, answers.
//
// They nest: where one caller's answer leads to the work for another, on the same thread, each pays
// for its own.
//
// Thread safety: an object belongs to its thread.
#ifndef SPILLWAY_SERVER_CPU_CHARGE_H_
#define SPILLWAY_SERVER_CPU_CHARGE_H_

#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "server/access_list.h"
#include "server/caller_account.h"

namespace spillway::server {

// That this thread has used since it started.
absl::Duration ThreadCpuTime();

class CpuCharge {
 public:
  // `account`: null where nobody pays; `access`, whose clock it is, may then be null, too, and
  // otherwise must outlive this.
  CpuCharge(std::shared_ptr<CallerAccount> account, const AccessList* access);
  ~CpuCharge();
  CpuCharge(const CpuCharge&) = delete;
  CpuCharge& operator=(const CpuCharge&) = delete;

  // Charges what this thread has used so far, so that whoever is answered next is told the truth.
  static void Settle();

 private:
  void ChargeSoFar();

  const std::shared_ptr<CallerAccount> account_;
  const AccessList* const access_;
  CpuCharge* const outer_;
  absl::Duration from_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CPU_CHARGE_H_
