// The progress line of a call, on a terminal.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PRINT_PROGRESS_LINE_H_
#define SPILLWAY_CLIENT_LIB_CLI_PRINT_PROGRESS_LINE_H_

#include <condition_variable>
#include <functional>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rewrite_core/base/plain_text.h"
#include "spillway/connection.h"

namespace spillway::cli {

// How much a command prints on standard error besides errors (--quiet). kQuiet: no progress and no
// notices of retries.
enum class Verbosity { kNormal, kQuiet };

// Prints a note that is not an error, such as values that were filled in, unless it is empty.
inline void PrintNote(const std::string& line) {
  if (!line.empty()) std::cerr << absl::StrCat("spillway: ", core::PlainText(line), "\n");
}

// Returns the line at `elapsed` after the start of the call: `spillway: sending 120 of 480 MiB`.
// `doing`: the activity of the core, e.g. `rewriting`.
std::string FormatProgress(const Progress& progress, absl::Duration elapsed,
                           absl::string_view doing);

// Draws the line on standard error and keeps updating it in place, from half a second after its
// construction until it ends, and then erases it. Nothing is drawn unless standard error is a
// terminal: logs and pipes stay clean.
//
// One at a time in a process. Not thread-safe; the callback is.
class ProgressLine {
 public:
  // Draws nothing if quiet.
  explicit ProgressLine(Verbosity verbosity, absl::string_view doing = "rewriting");
  ~ProgressLine() { End(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // For CallOptions::on_progress; must not be called after the line is destroyed.
  std::function<void(const Progress&)> callback();

  // Erases the line. A second call has no effect.
  void End();

 private:
  void DrawUntilEnd();

  const bool enabled_;
  const std::string doing_;
  const absl::Time start_;
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  bool ended_ = false;  // These two are guarded by mutex_.
  Progress progress_;
  std::thread thread_;
};

// Replaces the activity that the line shows, until it ends: `exploring: 5 sizes tried`.
// Thread-safe.
void ShowProgress(std::string doing);

// Calls `print`, which writes to standard output, with the progress line hidden: both may be the
// same terminal.
void PrintBesideProgress(const std::function<void()>& print);

// Writes `line`, which ends with a newline, to standard error, above the progress line, if any.
void PrintAboveProgress(absl::string_view line);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PRINT_PROGRESS_LINE_H_
