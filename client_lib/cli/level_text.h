// What a report of the strategy `level` looks like: the graph as it saw it, and for each GPU the
// setting, the budget and where that is from, and how the setting was found.
#ifndef SPILLWAY_CLIENT_LIB_CLI_LEVEL_TEXT_H_
#define SPILLWAY_CLIENT_LIB_CLI_LEVEL_TEXT_H_

#include <string>
#include <vector>

#include "client_lib/cli/style.h"
#include "spillway/v1/report.pb.h"

namespace spillway::cli {

// Rows for FormatFacts: TFLMS's counts (vertices, edges, levels, operations added), what was
// serialized, and the choice for the GPU if there is but one. Empty for another strategy.
std::vector<std::vector<std::string>> LevelFacts(const v1::RewriteReport& report);

// A block of rows for each GPU, under its name. Empty if there is but one.
std::string FormatLevelDevices(const v1::RewriteReport& report, Style style);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_LEVEL_TEXT_H_
