#include "server/observe/journal.h"

#include <algorithm>
#include <utility>

#include "server/base/logging.h"

namespace spillway::server {
namespace {

// Effectively forever.
constexpr absl::Duration kLongest = absl::Hours(24 * 365);

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
    const std::lock_guard lock(mu_);
    if (!closed_ && queued_bytes_ + LineSize(line) <= queued_bytes_limit_) {
      queued_bytes_ += LineSize(line);
      queue_.push_back(std::move(line));
      changed_.notify_all();
      return;
    }
  }
  Lose(1, "the queue of lines for the disk is full");
}

bool Journal::Close(absl::Duration timeout) {
  int64_t left = 0;
  {
    std::unique_lock lock(mu_);
    closed_ = true;
    changed_.notify_all();
    const auto has_ended = [this] { return ended_; };
    // A longer wait would overflow.
    if (changed_.wait_for(lock, absl::ToChronoMilliseconds(std::min(timeout, kLongest)),
                          has_ended)) {
      return true;
    }
    left = static_cast<int64_t>(queue_.size());
    queue_.clear();
    queued_bytes_ = 0;
  }
  if (left > 0) Lose(left, "the disk was too slow for the last lines of the server");
  return false;
}

void Journal::Run() {
  while (true) {
    std::string line;
    {
      std::unique_lock lock(mu_);
      changed_.wait(lock, [this] { return closed_ || !queue_.empty(); });
      if (queue_.empty()) {
        ended_ = true;
        changed_.notify_all();
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
    const std::lock_guard lock(mu_);
    lost_ += lines;
    if (lost_ > lines) return;
  }
  Log(LogLevel::kWarn, "the journal loses lines", {{"error", std::string(why)}});
}

void Journal::Recover() {
  int64_t lost = 0;
  {
    const std::lock_guard lock(mu_);
    // Not while the queue has lines: it could be full again right away.
    if (!queue_.empty()) return;
    std::swap(lost, lost_);
  }
  if (lost > 0) Log(LogLevel::kInfo, "the journal works again", {{"lost_lines", lost}});
}

}  // namespace spillway::server
