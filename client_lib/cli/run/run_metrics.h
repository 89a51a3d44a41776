// What `spillway run` did, in a file of node exporter's textfile collector.
//
// A hook is gone before anything could scrape it, so its counts are kept in the file: each run adds
// to what is there. The names begin with spillway_hook_, since a server counts the rewrites that a
// hook asks it for, too: the same names would count them twice.
#ifndef SPILLWAY_CLIENT_LIB_CLI_RUN_METRICS_H_
#define SPILLWAY_CLIENT_LIB_CLI_RUN_METRICS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client_lib/cli/exit_code.h"
#include "client_lib/cli/run/run_prepare.h"

namespace spillway::cli {

// One run, as it is counted.
struct HookRun {
  // What the command got: its own rewrite, one from the cache, or the graph as it was.
  enum class Result { kRewritten, kCached, kUnchanged, kFailedOpen, kFailedClosed };

  Result result = Result::kFailedOpen;
  ExitCode failure = ExitCode::kDone;           // Of a failed one.
  absl::Duration duration;                      // Before the command began.
  v1::Strategy strategy = v1::STRATEGY_BUDGET;  // That was asked for.
  v1::RewriteReport report;                     // Of one that did not fail.
  // Of one that failed since nothing fits: the smallest budget that is known to do / the budget.
  std::optional<double> need_ratio;
};

// The text of `old` (empty: a new file) with `run` added. INVALID_ARGUMENT if `old` is not such a
// file: cut off, or somebody else's.
absl::StatusOr<std::string> AddToMetrics(absl::string_view old, const HookRun& run);

// Adds `run` to the file `path`, alone of all runs that do so at once. One of spillway run that is
// damaged begins anew; any other is left alone: BAD_OPTION. Returns what to warn of, or nothing.
// Waits without a limit: run it in a child.
//
// Beside the file there are `NAME.lock` and, while it is written, `.NAME.tmp`.
absl::StatusOr<std::string> AddToMetricsFile(const std::string& path, const HookRun& run);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_RUN_METRICS_H_
