// What each caller has in flight, so that none takes the whole budget of graphs from the others.
//
// Thread-safe. Must outlive its shares.
#ifndef SPILLWAY_SERVER_MEMORY_CALLER_SHARES_H_
#define SPILLWAY_SERVER_MEMORY_CALLER_SHARES_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

namespace spillway::server {

class CallerShares {
 public:
  // What one request has taken. Gives it back when it is destroyed. Movable; not thread-safe.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept
        : shares_(std::exchange(other.shares_, nullptr)),
          caller_(std::move(other.caller_)),
          bytes_(other.bytes_) {}
    Share& operator=(Share&& other) noexcept {
      Release();
      shares_ = std::exchange(other.shares_, nullptr);
      caller_ = std::move(other.caller_);
      bytes_ = other.bytes_;
      return *this;
    }
    ~Share() { Release(); }

    // Gives it back now. Idempotent.
    void Release();

   private:
    friend class CallerShares;
    Share(CallerShares* shares, std::string caller, int64_t bytes)
        : shares_(shares), caller_(std::move(caller)), bytes_(bytes) {}

    CallerShares* shares_ = nullptr;  // Null: nothing is held.
    std::string caller_;
    int64_t bytes_ = 0;
  };

  // `max_bytes`: what one caller may hold in all, unless it is a single request.
  explicit CallerShares(int64_t max_bytes) : max_bytes_(max_bytes) {}
  CallerShares(const CallerShares&) = delete;
  CallerShares& operator=(const CallerShares&) = delete;

  // Error: RESOURCE_EXHAUSTED (OVERLOADED) if `caller` would hold more than its share.
  absl::StatusOr<Share> Take(const std::string& caller, int64_t bytes);

 private:
  const int64_t max_bytes_;
  std::mutex mu_;                                   // Guards the rest.
  absl::flat_hash_map<std::string, int64_t> held_;  // By caller; none at 0 bytes.
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_MEMORY_CALLER_SHARES_H_
