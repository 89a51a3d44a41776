// The process's resident memory beyond the charges of requests: the program, gRPC and its
// connections, and freed memory that malloc keeps, in an arena for each few threads. The last goes
// back to the system when there is much of it, regardless of its source; resident memory that
// remains counts against the memory budget.
//
// Returning memory takes milliseconds, and the next request takes it again: so this happens only
// when much has accumulated since the last time, or, once in a while, with less.
//
// Thread-safe.
#ifndef SPILLWAY_SERVER_MEMORY_RESIDENT_MEMORY_H_
#define SPILLWAY_SERVER_MEMORY_RESIDENT_MEMORY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>

namespace spillway::server {

class ResidentMemory {
 public:
  // A process's memory: functions that read resident bytes and return freed memory.
  struct Process {
    std::function<int64_t()> resident_bytes;
    std::function<void()> trim;
  };

  // More than this beyond the last time is returned at once: the two workers of a small server
  // leave some 30 MiB with each pair of requests of 0.6 MB, and take it again.
  static constexpr int64_t kMostKept = int64_t{64} << 20;
  // LookAtRest returns memory if more than this was added since the start.
  static constexpr int64_t kMostKeptAtRest = int64_t{16} << 20;
  // More than this beyond the start's memory counts: part of kOverheadBytes of memory_budget.h.
  static constexpr int64_t kUncounted = int64_t{128} << 20;

  // Both must outlive it. Nothing is resident until Watch.
  explicit ResidentMemory(const std::atomic<int64_t>& charged_bytes) : charged_(charged_bytes) {}
  ResidentMemory(const ResidentMemory&) = delete;
  ResidentMemory& operator=(const ResidentMemory&) = delete;

  // Checks `process` from now on. Called at most once, before any other thread uses this.
  void Watch(Process process);

  // Returns memory if too much is kept. Cheap: reads a line of /proc.
  void Look();
  // The same once another `bytes` are charged, if many were since the last check.
  void LookAfter(int64_t bytes);
  // The same with the tighter bound: to be called every few seconds.
  void LookAtRest();
  // Trims; returns whether fewer bytes count now.
  bool TrimForRoom();

  // The bytes that count against the budget beside the charges.
  int64_t counted_bytes() const { return counted_.load(std::memory_order_relaxed); }

 private:
  // Resident beyond the charges.
  int64_t Excess() const;
  // REQUIRES: mu_ is held.
  void Note(int64_t excess);
  void Trim();

  const std::atomic<int64_t>& charged_;
  Process process_;
  int64_t at_first_ = 0;
  std::atomic<int64_t> counted_{0};
  std::atomic<int64_t> since_look_{0};
  std::atomic<bool> asked_{false};  // To check once mu_ is free.
  std::mutex mu_;                   // Held while memory is returned. Guards the rest.
  int64_t least_ = 0;               // The least excess since memory was last returned.
};

// Of the process that calls it.
ResidentMemory::Process ThisProcess();

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_MEMORY_RESIDENT_MEMORY_H_
