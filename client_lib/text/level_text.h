// Prints reports of the strategy `level`: its view of the graph, and for each GPU the setting and
// how it was found.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_LEVEL_TEXT_H_
#define SPILLWAY_CLIENT_LIB_TEXT_LEVEL_TEXT_H_

#include <string>
#include <vector>

#include "spillway/v1/report.pb.h"

namespace spillway::text {

// Returns rows for FormatFacts: TFLMS's counts (vertices, edges, levels, operations added), and
// the serialization. Empty for other strategies.
std::vector<std::vector<std::string>> LevelFacts(const v1::RewriteReport& report);

// Returns "swapout_threshold 530, swapin_ahead 158, ..."
std::string LevelSettingText(const v1::LevelDevice& device);

// Adds the rows of one GPU.
void AddLevelSetting(const v1::LevelDevice& device, std::vector<std::vector<std::string>>* facts);

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_LEVEL_TEXT_H_
