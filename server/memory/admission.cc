#include "server/memory/admission.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "server/base/limit_error.h"

namespace spillway::server {
namespace {

// The part for small requests beyond the graphs' budget: by default the shares of four callers.
constexpr int64_t kPartForSmall = 8;

absl::Status Full(absl::string_view holds, int64_t held, int64_t budget, int64_t bytes) {
  return core::Error(
      absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_OVERLOADED,
      absl::StrCat("the server is full: ", holds, " ", held, " of ", budget,
                   " bytes and this graph of ", bytes, " does not fit now; try again later"),
      {{"inflight", absl::StrCat(held)},
       {"limit", absl::StrCat(budget)},
       {"value", absl::StrCat(bytes)}});
}

}  // namespace

Admission::Ticket& Admission::Ticket::operator=(Ticket&& other) noexcept {
  if (this != &other) {
    Release();
    budget_ = std::move(other.budget_);
    limit_ = other.limit_;
    bytes_ = std::exchange(other.bytes_, 0);
    work_bytes_ = std::exchange(other.work_bytes_, 0);
  }
  return *this;
}

void Admission::Ticket::Release() {
  if (budget_ != nullptr) {
    budget_->graphs.fetch_sub(bytes_, std::memory_order_relaxed);
    budget_->memory.fetch_sub(bytes_ + work_bytes_, std::memory_order_relaxed);
  }
  budget_ = nullptr;
  bytes_ = work_bytes_ = 0;
}

bool Admission::Ticket::AddWork(int64_t bytes) {
  if (!TryAddMemory(bytes, *budget_)) return false;
  work_bytes_ += bytes;
  return true;
}

void Admission::Ticket::ShrinkWork(int64_t bytes) {
  const int64_t less = std::max<int64_t>(work_bytes_ - std::max<int64_t>(bytes, 0), 0);
  if (less == 0) return;
  budget_->memory.fetch_sub(less, std::memory_order_relaxed);
  work_bytes_ -= less;
}

Admission::Ticket Admission::Ticket::TakeWork() {
  Ticket work(budget_, 0);
  work.work_bytes_ = std::exchange(work_bytes_, 0);
  return work;
}

bool Admission::TryAdd(int64_t bytes, int64_t budget, std::atomic<int64_t>& counter) {
  int64_t now = counter.load(std::memory_order_relaxed);
  do {
    // `budget - now` and not `now + bytes`: the former cannot overflow.
    if (bytes > budget - now) return false;
  } while (!counter.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed));
  return true;
}

bool Admission::TryAddMemory(int64_t bytes, Budget& budget) {
  budget.resident.LookAfter(bytes);
  while (!TryAdd(bytes, budget.memory_bytes - budget.resident.counted_bytes(), budget.memory)) {
    // Others may take the reclaimed memory, so repeat until nothing is left to reclaim.
    if (budget.resident.TrimForRoom()) continue;
    if (bytes > budget.memory_bytes || budget.reclaim == nullptr || !budget.reclaim(bytes)) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<Admission::Ticket> Admission::Reserve(int64_t bytes, int64_t first, Room room) {
  if (bytes > budget_->graph_bytes) {
    return LimitError(
        absl::StrCat("the graph has ", bytes, " bytes and this server holds at most ",
                     budget_->graph_bytes,
                     " of all graphs: use a server with a larger --max-inflight-bytes"),
        bytes, budget_->graph_bytes);
  }
  const int64_t more = room == Room::kForSmall ? budget_->graph_bytes / kPartForSmall : 0;
  Ticket ticket(budget_, budget_->graph_bytes + more);
  // Graphs without room are refused before they are sent.
  if (bytes > ticket.limit_ - inflight_bytes()) {
    return Full("requests in flight hold", inflight_bytes(), ticket.limit_, bytes);
  }
  if (absl::Status status = ticket.GrowTo(first); !status.ok()) return status;
  return ticket;
}

absl::Status Admission::Ticket::GrowTo(int64_t bytes) {
  const int64_t more = bytes - bytes_;
  if (more <= 0) return absl::OkStatus();
  if (!TryAdd(more, limit_, budget_->graphs)) {
    return Full("requests in flight hold", budget_->graphs.load(std::memory_order_relaxed), limit_,
                bytes);
  }
  if (!TryAddMemory(more, *budget_)) {
    budget_->graphs.fetch_sub(more, std::memory_order_relaxed);
    return Full("the memory in use is",
                budget_->memory.load(std::memory_order_relaxed) + budget_->resident.counted_bytes(),
                budget_->memory_bytes, bytes);
  }
  bytes_ = bytes;
  return absl::OkStatus();
}

absl::Status Admission::OutOfBudget(const Ticket& ticket, int64_t wanted) const {
  const int64_t own = ticket.bytes() + ticket.work_bytes();
  // If other requests came and went meanwhile, this gives the milder of the two errors.
  const bool shares = memory_bytes() > own || budget_->resident.counted_bytes() > 0;
  if (shares && own + wanted <= budget_->memory_bytes) {
    return core::Error(
        absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_OVERLOADED,
        absl::StrCat("the server is full: this request takes more than ", core::BytesText(own),
                     " of memory, which is not available now; try again later"),
        {{"limit", absl::StrCat(budget_->memory_bytes)}, {"value", absl::StrCat(own + wanted)}});
  }
  return LimitError(
      absl::StrCat("this request takes more than the ", core::BytesText(budget_->memory_bytes),
                   " of memory that this server has for requests: ask for fewer outputs and "
                   "decisions, or use a server with a larger --memory-budget"),
      own + wanted, budget_->memory_bytes);
}

}  // namespace spillway::server
