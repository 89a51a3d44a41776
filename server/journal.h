// The journal: a line for each request that was answered, well or not, for who wants to know later
// which jobs swapped what (README.md; `spillway stats` reads it). Where the lines go is up to a
// JournalSink; journal_file.h is the one that servers have.
//
// Nobody waits for a disk: lines go through a queue to a thread of their own. What finds no room
// there, or cannot be written, is lost, and counted; one warning says so, and one line that it
// works again.
#ifndef SPILLWAY_SERVER_JOURNAL_H_
#define SPILLWAY_SERVER_JOURNAL_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/metrics.h"

namespace spillway::server {

// Where lines go, one after the other. For one thread.
class JournalSink {
 public:
  virtual ~JournalSink() = default;
  // Appends `line`, which has no line end, and one. An error, one sentence: the line is lost, and
  // the next one may be tried.
  virtual absl::Status Append(absl::string_view line) = 0;
};

// Thread-safe.
class Journal {
 public:
  // Lines that wait for the disk: some ten thousand.
  static constexpr int64_t kQueuedBytes = int64_t{8} << 20;

  // Counts in `metrics`, which must outlive it. Where lines of more than `queued_bytes` wait, more
  // are lost.
  Journal(std::unique_ptr<JournalSink> sink, Metrics& metrics, int64_t queued_bytes = kQueuedBytes);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  // Waits for all that is queued.
  ~Journal();

  // Never waits.
  void Write(std::string line);

  // Takes no more lines, and waits until all are written, or for `most`: what is queued then is
  // lost. False: some was, or a line is being written still.
  bool Close(absl::Duration most);

 private:
  void Run();
  // Counts them, and warns if they are the first since it worked.
  void Lose(int64_t lines, absl::string_view why);
  // Tells that it works, if a warning has said otherwise.
  void Recover();

  const std::unique_ptr<JournalSink> sink_;
  Metrics& metrics_;
  const int64_t queued_bytes_limit_;
  std::mutex mu_;  // Of the standard library, which the thread sanitizer sees into.
  std::condition_variable changed_;
  std::deque<std::string> queue_;
  int64_t queued_bytes_ = 0;
  bool closed_ = false;
  bool ended_ = false;  // The thread has nothing left to do.
  int64_t lost_ = 0;    // Since it worked.
  std::thread thread_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_JOURNAL_H_
