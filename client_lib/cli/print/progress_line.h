// The line that says how far a call is, on a terminal.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PRINT_PROGRESS_LINE_H_
#define SPILLWAY_CLIENT_LIB_CLI_PRINT_PROGRESS_LINE_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client_lib/cli/print/verbosity.h"
#include "spillway/connection.h"

namespace spillway::cli {

// `spillway: sending 120 of 480 MiB`: what is shown `elapsed` after the call began. `doing`: what
// the core does, e.g. `rewriting`.
std::string FormatProgress(const Progress& progress, absl::Duration elapsed,
                           absl::string_view doing);

// Draws the line on standard error, again and again in place, from half a second after it was made
// until it ends, and then takes it away. Nothing is drawn unless standard error is a terminal: logs
// and pipes stay clean.
//
// One at a time in a process. Not thread-safe; the callback is.
class ProgressLine {
 public:
  // Draws nothing if quiet.
  explicit ProgressLine(Verbosity verbosity, absl::string_view doing = "rewriting");
  ~ProgressLine() { End(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // For CallOptions::on_progress; must not be called once the line is gone.
  std::function<void(const Progress&)> callback();

  // Takes the line away. Does nothing the second time.
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

// What the core does now, in place of what the line was made with: `exploring: 5 sizes tried`.
// Until the line ends. Thread-safe.
void TellProgress(std::string doing);

// Calls `print`, which writes on standard output, with the progress line out of its way: both may
// be one terminal.
void PrintBesideProgress(const std::function<void()>& print);

// Writes `line`, which ends with a line end, on standard error: above the progress line, if there
// is one.
void PrintAboveProgress(absl::string_view line);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PRINT_PROGRESS_LINE_H_
