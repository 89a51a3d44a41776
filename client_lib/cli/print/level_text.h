// What a report of the strategy `level` looks like: the graph as it saw it, and for each GPU the
// setting and how it was found.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PRINT_LEVEL_TEXT_H_
#define SPILLWAY_CLIENT_LIB_CLI_PRINT_LEVEL_TEXT_H_

#include <string>
#include <vector>

#include "spillway/v1/report.pb.h"

namespace spillway::cli {

// Rows for FormatFacts: TFLMS's counts (vertices, edges, levels, operations added), and what was
// serialized. Empty for another strategy.
std::vector<std::vector<std::string>> LevelFacts(const v1::RewriteReport& report);

// "swapout_threshold 530, swapin_ahead 158, ..."
std::string LevelSettingText(const v1::LevelDevice& device);

// Adds the rows of one GPU.
void AddLevelSetting(const v1::LevelDevice& device, std::vector<std::vector<std::string>>* facts);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PRINT_LEVEL_TEXT_H_
