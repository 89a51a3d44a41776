// The journal: a line for each answered request, successful or not, to find later which jobs
// swapped how much (README.md; `spillway stats` reads it). A JournalSink takes the lines; servers
// use that of journal_file.h.
//
// Requests never wait for the disk: lines go through a queue to a separate thread. Lines that do
// not fit into the queue, or cannot be written, are lost and counted. A warning is logged once, and
// a line when writing works again.
#ifndef SPILLWAY_SERVER_OBSERVE_JOURNAL_H_
#define SPILLWAY_SERVER_OBSERVE_JOURNAL_H_

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
#include "server/observe/metrics.h"

namespace spillway::server {

// Takes lines one by one. For one thread.
class JournalSink {
 public:
  virtual ~JournalSink() = default;
  // Appends `line`, which has no line end, and a line end. Error, one sentence: the line is lost;
  // the next one may be tried.
  virtual absl::Status Append(absl::string_view line) = 0;
};

// Thread-safe.
class Journal {
 public:
  // Bytes of lines that wait for the disk: some ten thousand lines.
  static constexpr int64_t kQueuedBytes = int64_t{8} << 20;

  // Counts in `metrics`, which must outlive it. Lines beyond `queued_bytes` of waiting lines are
  // lost.
  Journal(std::unique_ptr<JournalSink> sink, Metrics& metrics, int64_t queued_bytes = kQueuedBytes);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  // Waits until all queued lines are written.
  ~Journal();

  // Never blocks.
  void Write(std::string line);

  // Takes no more lines and waits until all are written, for at most `most`; lines that are still
  // queued then are lost. Returns false if any were lost, or if a line is still being written.
  bool Close(absl::Duration timeout);

 private:
  void Run();
  // Counts lost lines, and warns if they are the first since writing last worked.
  void Lose(int64_t lines, absl::string_view why);
  // Logs that writing works again, if a warning preceded.
  void Recover();

  const std::unique_ptr<JournalSink> sink_;
  Metrics& metrics_;
  const int64_t queued_bytes_limit_;
  std::mutex mu_;  // Not absl::Mutex: ThreadSanitizer understands this one.
  std::condition_variable changed_;
  std::deque<std::string> queue_;
  int64_t queued_bytes_ = 0;
  bool closed_ = false;
  bool ended_ = false;  // The thread is done.
  int64_t lost_ = 0;    // Since writing last worked.
  std::thread thread_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_OBSERVE_JOURNAL_H_
