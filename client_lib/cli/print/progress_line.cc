#include "client_lib/cli/print/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "rewrite_core/base/steady_time.h"

namespace spillway::cli {
namespace {

// Shorter work needs no line.
constexpr std::chrono::milliseconds kDelay(500);
constexpr std::chrono::milliseconds kInterval(100);
// Moves to the first column and erases to the end of the line (ECMA-48, EL).
constexpr char kErase[] = "\r\033[K";

// Standard error, shared by the two writers.
std::mutex terminal_mutex;
std::string drawn;     // The line on the terminal; guarded by terminal_mutex.
std::string activity;  // Set by ShowProgress; guarded by terminal_mutex.

// Not std::cerr: a line is written in one piece.
void WriteAll(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;  // There is no way to report this.
    text.remove_prefix(written);
  }
}

void Draw(std::string line) {
  // A line that wraps could not be erased.
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    line.resize(std::min<size_t>(line.size(), size.ws_col - 1));
  }
  std::lock_guard<std::mutex> lock(terminal_mutex);
  if (line == drawn) return;
  drawn = std::move(line);
  WriteAll(absl::StrCat(kErase, drawn));
}

void Erase() {
  std::lock_guard<std::mutex> lock(terminal_mutex);
  if (drawn.empty()) return;
  drawn.clear();
  WriteAll(kErase);
}

std::string Doing(const std::string& otherwise) {
  std::lock_guard<std::mutex> lock(terminal_mutex);
  return activity.empty() ? otherwise : activity;
}

// `120 of 480 MiB`; with a decimal if the total is small.
std::string BytesMoved(const Progress& progress) {
  constexpr double kBytesPerMib = 1 << 20;
  const double total = progress.total_bytes / kBytesPerMib;
  const int digits = total < 10 ? 1 : 0;
  return absl::StrFormat("%.*f of %.*f MiB", digits, progress.done_bytes / kBytesPerMib, digits,
                         total);
}

}  // namespace

std::string FormatProgress(const Progress& progress, absl::Duration elapsed,
                           absl::string_view doing) {
  switch (progress.stage) {
    case Stage::kSending:
      return absl::StrCat("spillway: sending ", BytesMoved(progress));
    case Stage::kReceiving:
      return absl::StrCat("spillway: receiving ", BytesMoved(progress));
    case Stage::kRewriting:
      break;
  }
  return absl::StrFormat("spillway: %s... %.1f s", doing, absl::ToDoubleSeconds(elapsed));
}

ProgressLine::ProgressLine(Verbosity verbosity, absl::string_view doing)
    : enabled_(verbosity == Verbosity::kNormal && isatty(STDERR_FILENO) == 1),
      doing_(doing),
      start_(core::SteadyNow()) {
  ShowProgress("");
  if (enabled_) thread_ = std::thread([this] { DrawUntilEnd(); });
}

std::function<void(const Progress&)> ProgressLine::callback() {
  if (!enabled_) return nullptr;
  return [this](const Progress& progress) {
    std::lock_guard<std::mutex> lock(mutex_);
    progress_ = progress;
  };
}

void ProgressLine::End() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  ended_changed_.notify_all();
  thread_.join();
  Erase();
}

void ProgressLine::DrawUntilEnd() {
  std::unique_lock<std::mutex> lock(mutex_);
  std::chrono::milliseconds pause = kDelay;
  while (!ended_changed_.wait_for(lock, pause, [this] { return ended_; })) {
    const Progress progress = progress_;
    lock.unlock();
    Draw(FormatProgress(progress, core::SteadyNow() - start_, Doing(doing_)));
    lock.lock();
    pause = kInterval;
  }
}

void ShowProgress(std::string doing) {
  std::lock_guard<std::mutex> lock(terminal_mutex);
  activity = std::move(doing);
}

void PrintBesideProgress(const std::function<void()>& print) {
  std::lock_guard<std::mutex> lock(terminal_mutex);
  if (!drawn.empty()) WriteAll(kErase);
  drawn.clear();  // It will be redrawn shortly.
  print();
}

void PrintAboveProgress(absl::string_view line) {
  std::lock_guard<std::mutex> lock(terminal_mutex);
  if (drawn.empty()) {
    WriteAll(line);
  } else {
    WriteAll(absl::StrCat(kErase, line, drawn));
  }
}

}  // namespace spillway::cli
