// Charges what a request allocates on a worker to its ticket (admission.h), as it is allocated, so
// that memory is bounded whatever a request makes of its bytes: no formula has to foresee it.
//
// The program's operator new and delete (counted_new.cc) tell the account of their thread. Who asks
// for more than the budget has is told to stop, through the flag of its stop token, and ends at its
// next look at that; what it takes until then is beyond the budget. (An allocation that fails would
// end it at once, but hash tables of Abseil do not survive one that throws.) What another thread
// frees stays charged until GiveBack or the end of the request; malloc is not seen.
//
//   MemoryAccount account(ticket);
//   if (!account.Expect(least)) ...
//   { const MemoryAccount::Scope scope(&account);  work(); }
//   account.Settle();
//
// One thread at a time, but for GiveBack.
#ifndef SPILLWAY_SERVER_MEMORY_ACCOUNT_H_
#define SPILLWAY_SERVER_MEMORY_ACCOUNT_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "server/admission.h"

namespace spillway::server {

class MemoryAccount {
 public:
  // `ticket` must outlive it.
  explicit MemoryAccount(Admission::Ticket& ticket) : ticket_(ticket) {}
  MemoryAccount(const MemoryAccount&) = delete;
  MemoryAccount& operator=(const MemoryAccount&) = delete;

  // While it lives, what this thread allocates is charged to `account`; null: to nobody.
  class Scope {
   public:
    explicit Scope(MemoryAccount* account);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    MemoryAccount* const before_;
  };

  // That of this thread, or null.
  static MemoryAccount* Current();

  // Sets aside what will at least be charged. False if the budget has not so many bytes left.
  [[nodiscard]] bool Expect(int64_t bytes);

  // Where the budget has not so many bytes left, `*stopped` (StopWith) becomes true.
  void Charge(int64_t bytes);
  void Discharge(int64_t bytes) { taken_ -= bytes; }
  // Discharges what another thread has freed. Thread-safe.
  void GiveBack(int64_t bytes) { given_back_.fetch_add(bytes, std::memory_order_relaxed); }

  // Null: nobody is told.
  void StopWith(std::atomic<bool>* stopped) { stopped_ = stopped; }

  // The ticket keeps what is still taken: what the answer holds.
  void Settle();

  // The same, and hands what is still taken to the one who holds the answer.
  Admission::Ticket TakeWork();

  // The first for which there was no room since this was last asked; 0: nothing.
  int64_t TakeRefused() { return std::exchange(refused_bytes_, 0); }

 private:
  Admission::Ticket& ticket_;
  int64_t taken_ = 0;  // Below 0 if what came with the request was freed.
  std::atomic<int64_t> given_back_{0};
  std::atomic<bool>* stopped_ = nullptr;
  int64_t refused_bytes_ = 0;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_MEMORY_ACCOUNT_H_
