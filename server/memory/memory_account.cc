#include "server/memory/memory_account.h"

#include <algorithm>
#include <utility>

namespace spillway::server {
namespace {

// The ticket grows by at least this: one atomic operation for many allocations.
constexpr int64_t kGranuleBytes = 1 << 20;

thread_local MemoryAccount* current_account = nullptr;

}  // namespace

MemoryAccount::Scope::Scope(MemoryAccount* account)
    : before_(std::exchange(current_account, account)) {}

MemoryAccount::Scope::~Scope() { current_account = before_; }

MemoryAccount* MemoryAccount::Current() { return current_account; }

bool MemoryAccount::Expect(int64_t bytes) {
  const int64_t missing = taken_ + bytes - ticket_.work_bytes();
  return missing <= 0 || ticket_.AddWork(missing);
}

void MemoryAccount::Charge(int64_t bytes) {
  taken_ += bytes;
  int64_t missing = taken_ - ticket_.work_bytes();
  if (missing <= 0) return;
  const int64_t given_back = given_back_.exchange(0, std::memory_order_relaxed);
  taken_ -= given_back;
  missing -= given_back;
  if (missing <= 0 || ticket_.AddWork(std::max(missing, kGranuleBytes)) ||
      ticket_.AddWork(missing)) {
    return;
  }
  if (refused_bytes_ == 0) refused_bytes_ = missing;
  if (stopped_ != nullptr) stopped_->store(true, std::memory_order_relaxed);
}

Admission::Ticket MemoryAccount::TakeWork() {
  Settle();
  taken_ = 0;
  return ticket_.TakeWork();
}

void MemoryAccount::Settle() {
  taken_ -= given_back_.exchange(0, std::memory_order_relaxed);
  ticket_.ShrinkWork(taken_);
}

}  // namespace spillway::server
