// Metrics of `spillway run`, in a file for node exporter's textfile collector.
//
// A hook exits before it could be scraped, so its counts are kept in a file of their own, from
// which the text file is written; each run adds to them. The names begin with spillway_hook_,
// because a server also counts the rewrites that a hook requests: the same names would count them
// twice.
#ifndef SPILLWAY_CLIENT_LIB_CLI_RUN_METRICS_H_
#define SPILLWAY_CLIENT_LIB_CLI_RUN_METRICS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client_lib/cli/base/exit_code.h"
#include "client_lib/cli/run/run_prepare.h"

namespace spillway::cli {

// One run.
struct HookRun {
  // The graph that the command got: its own rewrite, one from the cache, or the original.
  enum class Result { kRewritten, kCached, kUnchanged, kFailedOpen, kFailedClosed };

  Result result = Result::kFailedOpen;
  ExitCode failure = ExitCode::kDone;           // Of a failed one.
  absl::Duration duration;                      // Before the command began.
  v1::Strategy strategy = v1::STRATEGY_BUDGET;  // The requested one.
  v1::RewriteReport report;                     // Of a run that did not fail.
  // For a run that failed because nothing fits: the smallest budget known to suffice / the budget.
  std::optional<double> need_ratio;
};

struct HookMetrics {
  std::string state;  // The counts, as JSON.
  std::string text;   // The same in the text format of Prometheus.
  bool was_damaged = false;
};

// Adds `run` to the counts `old` (empty: none yet). Damaged ones start again from zero.
HookMetrics AddToMetrics(absl::string_view old, const HookRun& run);

// Adds `run` to the text file `path` and to its counts, `path`.state, under the lock `path`.lock;
// each is replaced as a whole. Counts that are damaged or missing start again from zero, and the
// returned warning says so; otherwise it is empty. Files of other programs are left unchanged:
// BAD_OPTION. The wait is unbounded: run it in a child.
absl::StatusOr<std::string> AddToMetricsFile(const std::string& path, const HookRun& run);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_RUN_METRICS_H_
