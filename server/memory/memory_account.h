// Charges the allocations of a request on a worker to its ticket (admission.h) as they are made, so
// that memory is bounded without predicting a request's needs.
//
// The program's operator new and delete (counted_new.cc) report to the account of their thread. A
// request that exceeds the budget is stopped through the flag of its stop token, and ends when it
// next polls the token; its allocations until then exceed the budget. (Failing the allocation
// would end it immediately, but Abseil's hash tables do not survive an allocation that throws.)
// Memory freed by another thread stays charged until GiveBack or the end of the request; malloc is
// not counted.
//
//   MemoryAccount account(ticket);
//   if (!account.Expect(least)) ...
//   { const MemoryAccount::Scope scope(&account);  work(); }
//   account.Settle();
//
// For one thread at a time, except GiveBack.
#ifndef SPILLWAY_SERVER_MEMORY_MEMORY_ACCOUNT_H_
#define SPILLWAY_SERVER_MEMORY_MEMORY_ACCOUNT_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "server/memory/admission.h"

namespace spillway::server {

class MemoryAccount {
 public:
  // `ticket` must outlive it.
  explicit MemoryAccount(Admission::Ticket& ticket) : ticket_(ticket) {}
  MemoryAccount(const MemoryAccount&) = delete;
  MemoryAccount& operator=(const MemoryAccount&) = delete;

  // While it lives, this thread's allocations are charged to `account`; null: to none.
  class Scope {
   public:
    explicit Scope(MemoryAccount* account);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    MemoryAccount* const before_;
  };

  // Returns this thread's account, or null.
  static MemoryAccount* Current();

  // Reserves the minimum that will be charged. Returns false if the budget has fewer bytes left.
  [[nodiscard]] bool Expect(int64_t bytes);

  // Sets `*stopped` (StopWith) if the budget has fewer bytes left.
  void Charge(int64_t bytes);
  void Discharge(int64_t bytes) { taken_ -= bytes; }
  // Discharges bytes that another thread has freed. Thread-safe.
  void GiveBack(int64_t bytes) { given_back_.fetch_add(bytes, std::memory_order_relaxed); }

  // Null: no flag is set.
  void StopWith(std::atomic<bool>* stopped) { stopped_ = stopped; }

  // Leaves in the ticket only memory still allocated, i.e. the answer.
  void Settle();

  // The same, and moves that memory into a ticket for the owner of the answer.
  Admission::Ticket TakeWork();

  // Returns the bytes of the first charge that exceeded the budget since the last call; 0: none.
  int64_t TakeRefused() { return std::exchange(refused_bytes_, 0); }

 private:
  Admission::Ticket& ticket_;
  int64_t taken_ = 0;  // Below 0 if memory that came with the request was freed.
  std::atomic<int64_t> given_back_{0};
  std::atomic<bool>* stopped_ = nullptr;
  int64_t refused_bytes_ = 0;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_MEMORY_MEMORY_ACCOUNT_H_
