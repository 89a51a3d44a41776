#include "server/memory/resident_memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <utility>

namespace spillway::server {
namespace {

// Charges between two checks while requests work: few enough that the budget is not far exceeded.
constexpr int64_t kLookAfterBytes = int64_t{16} << 20;

// Less than this since the last trim is not worth the milliseconds, even for a request without
// room.
constexpr int64_t kLeastTrimmed = int64_t{4} << 20;

}  // namespace

void ResidentMemory::Watch(Process process) {
  process_ = std::move(process);
  at_first_ = least_ = Excess();
}

int64_t ResidentMemory::Excess() const {
  const int64_t charged = charged_.load(std::memory_order_relaxed);
  return process_.resident_bytes() - charged;
}

void ResidentMemory::Note(int64_t excess) {
  least_ = std::min(least_, excess);
  counted_.store(std::max<int64_t>(excess - at_first_ - kUncounted, 0), std::memory_order_relaxed);
}

void ResidentMemory::Trim() {
  asked_.store(false);
  process_.trim();
  // Requests freed more meanwhile, in arenas already trimmed: much, with many workers.
  if (asked_.exchange(false)) process_.trim();
  least_ = Excess();
  Note(least_);
}

void ResidentMemory::Look() {
  if (process_.resident_bytes == nullptr) return;
  since_look_.store(0, std::memory_order_relaxed);
  // No thread waits for the one that trims: that one checks again.
  for (asked_.store(true); asked_.load();) {
    const std::unique_lock lock(mu_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    asked_.store(false);
    const int64_t excess = Excess();
    Note(excess);
    if (excess - least_ > kMostKept) Trim();
  }
}

void ResidentMemory::LookAfter(int64_t bytes) {
  if (since_look_.fetch_add(bytes, std::memory_order_relaxed) + bytes >= kLookAfterBytes) Look();
}

void ResidentMemory::LookAtRest() {
  if (process_.resident_bytes == nullptr) return;
  {
    const std::lock_guard lock(mu_);
    const int64_t excess = Excess();
    Note(excess);
    if (excess - at_first_ > kMostKeptAtRest) Trim();
  }
  if (asked_.load()) Look();
}

bool ResidentMemory::TrimForRoom() {
  const int64_t before = counted_bytes();
  if (before == 0) return false;
  const std::lock_guard lock(mu_);
  const int64_t excess = Excess();
  Note(excess);
  // Otherwise each request without room would trim again right after a trim.
  if (excess - least_ >= kLeastTrimmed) Trim();
  return counted_bytes() < before;
}

ResidentMemory::Process ThisProcess() {
  // Open as long as the process.
  static const int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  static const int64_t page_bytes = sysconf(_SC_PAGE_SIZE);
  const auto resident_bytes = [] {
    char text[128] = {};  // Pages: address space, resident, and others.
    int64_t resident = 0;
    if (pread(statm, text, sizeof(text) - 1, 0) <= 0 ||
        std::sscanf(text, "%*s %" SCNd64, &resident) != 1) {
      return int64_t{0};
    }
    return resident * page_bytes;
  };
  return {resident_bytes, [] { malloc_trim(0); }};
}

}  // namespace spillway::server
