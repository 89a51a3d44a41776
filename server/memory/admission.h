// The memory budget of all requests. A request reserves the size of its graph before the graph is
// read, or as it arrives, and holds a ticket until it is answered. Memory allocated for it on a
// worker is added to the ticket as it is allocated (memory_account.h). When the budget is used up,
// requests are rejected, so that the server says "later" instead of running out of memory.
//
// Graphs may take only a part of the budget, so that waiting graphs leave room for the work on
// running ones. An eighth of that part is always available in addition for small ones (Room).
//
// No request waits for bytes, so uploads that each hold the other's missing bytes cannot deadlock:
// the first whose next bytes do not fit is refused and releases its own.
//
// Thread-safe, lock-free. A ticket may outlive its Admission, as does the part of an answer that
// gRPC still holds.
#ifndef SPILLWAY_SERVER_MEMORY_ADMISSION_H_
#define SPILLWAY_SERVER_MEMORY_ADMISSION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "server/memory/resident_memory.h"

namespace spillway::server {

class Admission {
 public:
  // Frees optional memory of the budget (caches): at least this many bytes, or all of it. Returns
  // false if there was none. Thread-safe; not charged to any request.
  using Reclaim = std::function<bool(int64_t bytes)>;

  // kForSmall: beyond the graphs' part, but within the whole budget. For requests that are small
  // (caller_shares.h).
  enum class Room { kShared, kForSmall };

 private:
  struct Budget {
    Budget(int64_t of_graphs, int64_t of_memory)
        : graph_bytes(of_graphs), memory_bytes(of_memory) {}

    const int64_t graph_bytes;
    const int64_t memory_bytes;
    std::atomic<int64_t> graphs{0};
    std::atomic<int64_t> memory{0};  // Graphs and work.
    Reclaim reclaim = nullptr;
    ResidentMemory resident{memory};
  };

 public:
  // A reservation. Releases its bytes when it is destroyed. Movable; not thread-safe.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept
        : budget_(std::move(other.budget_)),
          limit_(other.limit_),
          bytes_(std::exchange(other.bytes_, 0)),
          work_bytes_(std::exchange(other.work_bytes_, 0)) {}
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket() { Release(); }

    // Releases the bytes now. Idempotent.
    void Release();

    // Raises the reservation to `bytes` of graphs. Error: RESOURCE_EXHAUSTED, OVERLOADED. REQUIRES:
    // a ticket from Reserve.
    absl::Status GrowTo(int64_t bytes);

    // Adds `bytes` (not negative) of work. Returns false and adds nothing if the budget has fewer
    // left. REQUIRES: a ticket from Reserve.
    [[nodiscard]] bool AddWork(int64_t bytes);
    // Releases work in excess of `bytes`.
    void ShrinkWork(int64_t bytes);

    // Moves the work into a separate ticket.
    Ticket TakeWork();

    // Bytes held; 0 once released.
    int64_t bytes() const { return bytes_; }
    int64_t work_bytes() const { return work_bytes_; }

   private:
    friend class Admission;
    Ticket(std::shared_ptr<Budget> budget, int64_t limit)
        : budget_(std::move(budget)), limit_(limit) {}

    std::shared_ptr<Budget> budget_;  // Null once released.
    int64_t limit_ = 0;               // Of all graphs.
    int64_t bytes_ = 0;               // Of graphs.
    int64_t work_bytes_ = 0;          // Beside them.
  };

  // `graph_budget_bytes`: maximum total bytes of all graphs; `memory_budget_bytes` (at least as
  // many): of graphs and work.
  Admission(int64_t graph_budget_bytes, int64_t memory_budget_bytes)
      : budget_(std::make_shared<Budget>(graph_budget_bytes, memory_budget_bytes)) {}
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // Calls `reclaim`, unless it is null, before a request is rejected for lack of memory. Must not
  // be called while requests are in flight.
  void ReclaimWith(Reclaim reclaim) { budget_->reclaim = std::move(reclaim); }

  // Resident memory beside all charges: counts against the memory budget beyond the server's own
  // needs.
  ResidentMemory& resident() { return budget_->resident; }

  // Reserves `bytes` (not negative). Errors: RESOURCE_EXHAUSTED, with OVERLOADED if they do not fit
  // now, or LIMIT_EXCEEDED if they never will.
  absl::StatusOr<Ticket> Reserve(int64_t bytes) { return Reserve(bytes, bytes, Room::kShared); }
  // The same, but reserves only the `first` of them; the rest follows with GrowTo.
  absl::StatusOr<Ticket> Reserve(int64_t bytes, int64_t first, Room room);

  // Returns the error of a request that ran out of memory: LIMIT_EXCEEDED if it had the whole
  // budget, otherwise OVERLOADED. `wanted`: the bytes that could not be allocated.
  absl::Status OutOfBudget(const Ticket& ticket, int64_t wanted) const;

  // Bytes held and budgets, of graphs alone (inflight, graph) and of graphs and work (memory).
  int64_t inflight_bytes() const { return budget_->graphs.load(std::memory_order_relaxed); }
  int64_t memory_bytes() const { return budget_->memory.load(std::memory_order_relaxed); }
  int64_t graph_budget_bytes() const { return budget_->graph_bytes; }
  int64_t memory_budget_bytes() const { return budget_->memory_bytes; }

 private:
  // Adds to `counter` unless that would exceed `budget`.
  static bool TryAdd(int64_t bytes, int64_t budget, std::atomic<int64_t>& counter);
  // The same for the memory of `budget`, minus resident memory without a charge; reclaims memory if
  // needed.
  static bool TryAddMemory(int64_t bytes, Budget& budget);

  const std::shared_ptr<Budget> budget_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_MEMORY_ADMISSION_H_
