// The budget of graph bytes in flight. A request reserves the size of its graph before the graph is
// read and holds a ticket until it is answered; when the budget is spent, requests are refused at
// once, so that the server says "later" instead of running out of memory.
//
// Thread-safe, lock-free. An Admission must outlive its tickets.
#ifndef SPILLWAY_SERVER_ADMISSION_H_
#define SPILLWAY_SERVER_ADMISSION_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"

namespace spillway::server {

class Admission {
 public:
  // A reservation. Gives its bytes back when it is destroyed, on whatever path. Movable; not
  // thread-safe itself.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept
        : admission_(std::exchange(other.admission_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0)) {}
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket() { Release(); }

    // Gives the bytes back now. May be called again.
    void Release();

    // Bytes held; 0 once given back.
    int64_t bytes() const { return bytes_; }

   private:
    friend class Admission;
    Ticket(Admission* admission, int64_t bytes) : admission_(admission), bytes_(bytes) {}

    Admission* admission_ = nullptr;
    int64_t bytes_ = 0;
  };

  // `budget_bytes`: the most bytes of all tickets together.
  explicit Admission(int64_t budget_bytes) : budget_bytes_(budget_bytes) {}
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // Reserves `bytes` (not negative). Errors: RESOURCE_EXHAUSTED, OVERLOADED if they do not fit now;
  // LIMIT_EXCEEDED if they never will.
  absl::StatusOr<Ticket> Reserve(int64_t bytes);

  int64_t inflight_bytes() const { return inflight_bytes_.load(std::memory_order_relaxed); }
  int64_t budget_bytes() const { return budget_bytes_; }

 private:
  const int64_t budget_bytes_;
  std::atomic<int64_t> inflight_bytes_{0};
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_ADMISSION_H_
