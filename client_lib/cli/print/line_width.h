// How wide a line may be.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PRINT_LINE_WIDTH_H_
#define SPILLWAY_CLIENT_LIB_CLI_PRINT_LINE_WIDTH_H_

#include <cstddef>

namespace spillway::cli {

// What COLUMNS says, which shells and users set; without it the width of the terminal that standard
// output is; else `otherwise`. At least 40 and at most 240: what is narrower or wider is not read.
size_t LineWidth(size_t otherwise);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PRINT_LINE_WIDTH_H_
