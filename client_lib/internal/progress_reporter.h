// Internal. Tells CallOptions::on_progress how far one call is.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_PROGRESS_REPORTER_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_PROGRESS_REPORTER_H_

#include <cstdint>
#include <mutex>

#include "spillway/connection.h"

namespace spillway::internal {

// One call, or one attempt of it. Thread-safe: a stream is written and read by two threads, and the
// callback is promised that it never runs twice at once. `call` must outlive it.
class ProgressReporter {
 public:
  explicit ProgressReporter(const CallOptions& call) : call_(call) {}

  void Report(Stage stage, int64_t done_bytes = 0, int64_t total_bytes = 0) {
    if (!call_.on_progress) return;
    std::lock_guard<std::mutex> lock(mutex_);
    // An answer may begin while the rest of the graph is still on its way: no stage comes back.
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
