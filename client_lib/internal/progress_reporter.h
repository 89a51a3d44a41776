// Internal. Reports the progress of a call to CallOptions::on_progress.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_PROGRESS_REPORTER_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_PROGRESS_REPORTER_H_

#include <cstdint>
#include <mutex>

#include "spillway/connection.h"

namespace spillway::internal {

// The progress of a call or of one of its attempts. Thread-safe: a stream is written and read by
// two threads, and the callback must never run concurrently. `call` must outlive it.
class ProgressReporter {
 public:
  explicit ProgressReporter(const CallOptions& call) : call_(call) {}

  void Report(Stage stage, int64_t done_bytes = 0, int64_t total_bytes = 0) {
    if (!call_.on_progress) return;
    std::lock_guard<std::mutex> lock(mutex_);
    // An answer may begin while the rest of the graph is still being sent: never go back a stage.
    if (stage < stage_) return;
    stage_ = stage;
    call_.on_progress({stage, done_bytes, total_bytes});
  }

 private:
  const CallOptions& call_;
  std::mutex mutex_;
  Stage stage_ = Stage::kSending;  // Guarded by mutex_.
};

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_PROGRESS_REPORTER_H_
