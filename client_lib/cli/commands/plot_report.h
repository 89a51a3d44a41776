// Report files: determines the message of a JSON file and whether it can be drawn.
#ifndef SPILLWAY_CLIENT_LIB_CLI_COMMANDS_PLOT_REPORT_H_
#define SPILLWAY_CLIENT_LIB_CLI_COMMANDS_PLOT_REPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/variant.h"
#include "spillway/v1/simulate.pb.h"

namespace spillway::cli {

using PlotReport = absl::variant<v1::SimulateReport, v1::ExploreReport>;

// Parses the report in the file `path`, as printed by `simulate --json`, `inspect --memory --json`
// and `explore --json`. BAD_OPTION, naming the command to use, if it is damaged, none of these, or
// has no memory over time.
absl::StatusOr<PlotReport> ReadReport(absl::string_view json, const std::string& path);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_COMMANDS_PLOT_REPORT_H_
