// Each caller's bytes in flight, so that none takes the whole budget of graphs from the others.
//
// A single request may be larger than its caller's share until another caller is refused for lack
// of bytes: then an upload that has not ended yet has to yield (AskToYield). Small requests have
// their own share, in case all is held (kPartOfShare).
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
  // The bytes of one request. Releases them when it is destroyed. Movable; not thread-safe.
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

    // Releases them now. Idempotent.
    void Release();

    // Whether its caller is above its share, and others need bytes.
    bool yields() const;

   private:
    friend class CallerShares;
    Share(CallerShares* shares, std::string caller, int64_t bytes)
        : shares_(shares), caller_(std::move(caller)), bytes_(bytes) {}

    CallerShares* shares_ = nullptr;  // Null: nothing is held.
    std::string caller_;
    int64_t bytes_ = 0;
  };

  // Small: a caller's requests of at most this part of its share. Most graphs are below a hundredth
  // of a server's capacity.
  static constexpr int64_t kPartOfShare = 16;

  enum class Single { kMayHaveMore, kMayNot };

  // `max_bytes`: one caller's maximum in all, except for a single request, if that may have more.
  explicit CallerShares(int64_t max_bytes, Single single = Single::kMayHaveMore)
      : max_bytes_(max_bytes), single_(single) {}
  CallerShares(const CallerShares&) = delete;
  CallerShares& operator=(const CallerShares&) = delete;

  // Error: RESOURCE_EXHAUSTED (OVERLOADED) if `caller` would hold more than its share.
  absl::StatusOr<Share> Take(const std::string& caller, int64_t bytes);

  // `caller` was refused for lack of bytes. Unless it holds more than its share itself, those that
  // do have to yield.
  void AskToYield(const std::string& caller);
  // The error of a request that yields: RESOURCE_EXHAUSTED (OVERLOADED).
  absl::Status Yielded() const;

 private:
  struct Held {
    int64_t bytes = 0;
    bool yields = false;
  };

  const int64_t max_bytes_;
  const Single single_;
  mutable std::mutex mu_;                        // Guards the rest.
  absl::flat_hash_map<std::string, Held> held_;  // By caller; none at 0 bytes.
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_MEMORY_CALLER_SHARES_H_
