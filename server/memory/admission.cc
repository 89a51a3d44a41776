#include "server/memory/admission.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "server/base/limit_error.h"

namespace spillway::server {

Admission::Ticket& Admission::Ticket::operator=(Ticket&& other) noexcept {
  if (this != &other) {
    Release();
    budget_ = std::move(other.budget_);
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

absl::StatusOr<Admission::Ticket> Admission::Reserve(int64_t bytes) {
  if (bytes > budget_->graph_bytes) {
    return LimitError(
        absl::StrCat("the graph has ", bytes, " bytes and this server holds at most ",
                     budget_->graph_bytes,
                     " of all graphs: use a server with a larger --max-inflight-bytes"),
        bytes, budget_->graph_bytes);
  }
  const auto full = [bytes](absl::string_view holds, int64_t held, int64_t budget) {
    return core::Error(
        absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_OVERLOADED,
        absl::StrCat("the server is full: ", holds, " ", held, " of ", budget,
                     " bytes and this graph of ", bytes, " does not fit now; try again later"),
        {{"inflight", absl::StrCat(held)},
         {"limit", absl::StrCat(budget)},
         {"value", absl::StrCat(bytes)}});
  };
  if (!TryAdd(bytes, budget_->graph_bytes, budget_->graphs)) {
    return full("requests in flight hold", inflight_bytes(), budget_->graph_bytes);
  }
  if (!TryAddMemory(bytes, *budget_)) {
    budget_->graphs.fetch_sub(bytes, std::memory_order_relaxed);
    return full("the work on other requests, and what it left, takes",
                memory_bytes() + budget_->resident.counted_bytes(), budget_->memory_bytes);
  }
  return Ticket(budget_, bytes);
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
