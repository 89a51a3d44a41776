// What the process has resident beyond what requests are charged for: the program, gRPC and its
// connections, and what malloc keeps of memory that was freed, in an arena for each few threads.
// The last goes back to the system when there is much of it, whoever left it; what is resident
// nevertheless counts against the memory budget.
//
// Handing memory back takes milliseconds, and the next request takes it anew: so this happens only
// when much has come together since the last time, or, once in a while, with less.
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
  // A process's memory: what is resident, in bytes, and what hands freed memory back.
  struct Process {
    std::function<int64_t()> resident_bytes;
    std::function<void()> trim;
  };

  // More than this beyond the last time is handed back at once: the two workers of a small server
  // leave some 30 MiB with each pair of requests of 0.6 MB, and take it again.
  static constexpr int64_t kMostKept = int64_t{64} << 20;
  // More than this beyond what was resident at first is handed back by LookAtRest.
  static constexpr int64_t kMostKeptAtRest = int64_t{16} << 20;
  // More than this beyond what was resident at first counts: of kOverheadBytes of memory_budget.h.
  static constexpr int64_t kUncounted = int64_t{128} << 20;

  // Both must outlive it. Nothing is resident until Watch.
  explicit ResidentMemory(const std::atomic<int64_t>& charged_bytes) : charged_(charged_bytes) {}
  ResidentMemory(const ResidentMemory&) = delete;
  ResidentMemory& operator=(const ResidentMemory&) = delete;

  // Looks at `process` from now on. Called at most once, before any other thread uses this.
  void Watch(Process process);

  // Hands memory back if too much is kept. Cheap: reads a line of /proc.
  void Look();
  // The same once another `bytes` are charged, if many have been since the last look.
  void LookAfter(int64_t bytes);
  // The same with the tighter bound: to be called every few seconds.
  void LookAtRest();
  // Hands memory back; returns whether fewer bytes count now.
  bool TrimForRoom();

  // What counts against the budget beside the charges, in bytes.
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
  std::atomic<bool> asked_{false};  // To look once mu_ is free.
  std::mutex mu_;                   // Held while memory is handed back. Guards the rest.
  int64_t least_ = 0;               // The least excess since memory was last handed back.
};

// Of the process that calls it.
ResidentMemory::Process ThisProcess();

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_MEMORY_RESIDENT_MEMORY_H_
