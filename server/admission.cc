#include "server/admission.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "server/limit_error.h"

namespace spillway::server {

Admission::Ticket& Admission::Ticket::operator=(Ticket&& other) noexcept {
  if (this != &other) {
    Release();
    admission_ = std::exchange(other.admission_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void Admission::Ticket::Release() {
  if (admission_ != nullptr) {
    admission_->inflight_bytes_.fetch_sub(bytes_, std::memory_order_relaxed);
  }
  admission_ = nullptr;
  bytes_ = 0;
}

absl::StatusOr<Admission::Ticket> Admission::Reserve(int64_t bytes) {
  if (bytes > budget_bytes_) {
    return LimitError(
        absl::StrCat("the graph has ", bytes, " bytes and this server's whole budget is ",
                     budget_bytes_, ": use a server with a larger --max-inflight-bytes"),
        bytes, budget_bytes_);
  }
  int64_t inflight = inflight_bytes_.load(std::memory_order_relaxed);
  do {
    // `budget - inflight` and not `inflight + bytes`: the former cannot overflow.
    if (bytes > budget_bytes_ - inflight) {
      return core::Error(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_OVERLOADED,
                         absl::StrCat("the server is full: requests in flight hold ", inflight,
                                      " of ", budget_bytes_, " bytes and this graph of ", bytes,
                                      " does not fit now; try again later"),
                         {{"inflight", absl::StrCat(inflight)},
                          {"limit", absl::StrCat(budget_bytes_)},
                          {"value", absl::StrCat(bytes)}});
    }
  } while (!inflight_bytes_.compare_exchange_weak(inflight, inflight + bytes,
                                                  std::memory_order_relaxed));
  return Ticket(this, bytes);
}

}  // namespace spillway::server
