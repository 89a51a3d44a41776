#include "server/journal.h"

#include <utility>

#include "server/logging.h"

namespace spillway::server {
namespace {

int64_t LineSize(const std::string& line) { return static_cast<int64_t>(line.size()) + 1; }

}  // namespace

Journal::Journal(std::unique_ptr<JournalSink> sink, Metrics& metrics, int64_t queued_bytes)
    : sink_(std::move(sink)), metrics_(metrics), queued_bytes_limit_(queued_bytes) {
  thread_ = std::thread([this] { Run(); });
}

Journal::~Journal() {
  Close(absl::InfiniteDuration());
  thread_.join();
}

void Journal::Write(std::string line) {
  {
    const absl::MutexLock lock(&mu_);
    if (!closed_ && queued_bytes_ + LineSize(line) <= queued_bytes_limit_) {
      queued_bytes_ += LineSize(line);
      queue_.push_back(std::move(line));
      return;
    }
  }
  Lose(1, "more lines wait for the disk than there is room for");
}

bool Journal::Close(absl::Duration most) {
  int64_t left = 0;
  {
    const absl::MutexLock lock(&mu_);
    closed_ = true;
    if (mu_.AwaitWithTimeout(absl::Condition(&ended_), most)) return true;
    left = static_cast<int64_t>(queue_.size());
    queue_.clear();
    queued_bytes_ = 0;
  }
  if (left > 0) Lose(left, "the server ends, and the disk takes too long");
  return false;
}

void Journal::Run() {
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return closed_ || !queue_.empty();
  };
  while (true) {
    std::string line;
    {
      const absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(&has_work));
      if (queue_.empty()) {
        ended_ = true;
        return;
      }
      line = std::move(queue_.front());
      queue_.pop_front();
      queued_bytes_ -= LineSize(line);
    }
    const absl::Status status = sink_->Append(line);
    if (!status.ok()) {
      Lose(1, status.message());
      continue;
    }
    metrics_.CountJournalLine();
    Recover();
  }
}

void Journal::Lose(int64_t lines, absl::string_view why) {
  metrics_.CountLostJournalLines(lines);
  {
    const absl::MutexLock lock(&mu_);
    lost_ += lines;
    if (lost_ > lines) return;
  }
  Log(LogLevel::kWarn, "the journal loses lines", {{"error", std::string(why)}});
}

void Journal::Recover() {
  int64_t lost = 0;
  {
    const absl::MutexLock lock(&mu_);
    // Not between two lines of a queue that is full: it would be full again.
    if (!queue_.empty()) return;
    std::swap(lost, lost_);
  }
  if (lost > 0) Log(LogLevel::kInfo, "the journal works again", {{"lost_lines", lost}});
}

}  // namespace spillway::server
