// What the fit of a plan into each GPU looks like, whatever the strategy: budget and where it is
// from, what the step took as the graph came, and what is simulated of it as planned.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PRINT_FIT_TEXT_H_
#define SPILLWAY_CLIENT_LIB_CLI_PRINT_FIT_TEXT_H_

#include <string>
#include <vector>

#include "client_lib/cli/print/style.h"
#include "spillway/v1/report.pb.h"

namespace spillway::cli {

// Rows for FormatFacts, of the GPU if there is but one: its setting by the strategy (level_text.h),
// and its fit. Empty if nothing was planned for a budget or with a setting.
std::vector<std::vector<std::string>> DeviceFacts(const v1::RewriteReport& report);

// A block of such rows for each GPU, under its name. Empty if there is but one.
std::string FormatDeviceFacts(const v1::RewriteReport& report, Style style);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PRINT_FIT_TEXT_H_
