// The memory that requests may take, as a budget. A request reserves the size of its graph before
// the graph is read and holds a ticket until it is answered; what is allocated for it on a worker
// is added to the ticket as it is allocated (memory_account.h). When the budget is spent, requests
// are refused, so that the server says "later" instead of running out of memory.
//
// Graphs may take a part of the budget alone, so that those that wait leave room for the work on
// those that run.
//
// Thread-safe, lock-free. A ticket may outlive its Admission: what gRPC still holds of an answer
// does.
#ifndef SPILLWAY_SERVER_ADMISSION_H_
#define SPILLWAY_SERVER_ADMISSION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"

namespace spillway::server {

class Admission {
 public:
  // Frees memory of the budget that is held for convenience: at least so many bytes, or all of it.
  // False: there was none. Thread-safe; charges nobody.
  using Reclaim = std::function<bool(int64_t bytes)>;

 private:
  struct Budget {
    const int64_t graph_bytes;
    const int64_t memory_bytes;
    std::atomic<int64_t> graphs{0};
    std::atomic<int64_t> memory{0};  // Graphs and work.
    Reclaim reclaim = nullptr;
  };

 public:
  // A reservation. Gives its bytes back when it is destroyed, on whatever path. Movable; not
  // thread-safe itself.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept
        : budget_(std::move(other.budget_)),
          bytes_(std::exchange(other.bytes_, 0)),
          work_bytes_(std::exchange(other.work_bytes_, 0)) {}
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket() { Release(); }

    // Gives the bytes back now. May be called again.
    void Release();

    // Adds `bytes` (not negative) of work; false, and nothing is added, if the budget has not as
    // many left. REQUIRES: a ticket of Reserve.
    [[nodiscard]] bool AddWork(int64_t bytes);
    // Gives back what is above `bytes` of work.
    void ShrinkWork(int64_t bytes);

    // The work of it as a ticket of its own.
    Ticket TakeWork();

    // Bytes held; 0 once given back.
    int64_t bytes() const { return bytes_; }
    int64_t work_bytes() const { return work_bytes_; }

   private:
    friend class Admission;
    Ticket(std::shared_ptr<Budget> budget, int64_t bytes)
        : budget_(std::move(budget)), bytes_(bytes) {}

    std::shared_ptr<Budget> budget_;  // Null once given back.
    int64_t bytes_ = 0;               // Of graphs.
    int64_t work_bytes_ = 0;          // Beside them.
  };

  // `graph_budget_bytes`: the most bytes of all graphs together; `memory_budget_bytes` (at least as
  // many): of graphs and work.
  Admission(int64_t graph_budget_bytes, int64_t memory_budget_bytes)
      : budget_(new Budget{graph_budget_bytes, memory_budget_bytes}) {}
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // Asks `reclaim`, unless it is null, before anything is refused for want of memory. Not while
  // requests are in flight.
  void ReclaimWith(Reclaim reclaim) { budget_->reclaim = std::move(reclaim); }

  // Reserves `bytes` (not negative). Errors: RESOURCE_EXHAUSTED, OVERLOADED if they do not fit now;
  // LIMIT_EXCEEDED if they never will.
  absl::StatusOr<Ticket> Reserve(int64_t bytes);

  // What a request is told that took more memory than there was for it: LIMIT_EXCEEDED if it had
  // the budget for itself, otherwise OVERLOADED. `wanted`: bytes that were not had.
  absl::Status OutOfBudget(const Ticket& ticket, int64_t wanted) const;

  // Of graphs; and of graphs and work.
  int64_t inflight_bytes() const { return budget_->graphs.load(std::memory_order_relaxed); }
  int64_t memory_bytes() const { return budget_->memory.load(std::memory_order_relaxed); }
  int64_t graph_budget_bytes() const { return budget_->graph_bytes; }
  int64_t memory_budget_bytes() const { return budget_->memory_bytes; }

 private:
  // Adds to `counter` unless it were above `budget` then.
  static bool TryAdd(int64_t bytes, int64_t budget, std::atomic<int64_t>& counter);
  // The same for the memory of `budget`, and what can be reclaimed of it.
  static bool TryAddMemory(int64_t bytes, Budget& budget);

  const std::shared_ptr<Budget> budget_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_ADMISSION_H_
