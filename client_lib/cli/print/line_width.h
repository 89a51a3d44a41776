// The maximum width of a line.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PRINT_LINE_WIDTH_H_
#define SPILLWAY_CLIENT_LIB_CLI_PRINT_LINE_WIDTH_H_

#include <cstddef>

namespace spillway::cli {

// Returns COLUMNS, which shells and users set, or without it the width of the terminal on standard
// output, clamped to 40 to 240 for readability; without either, `otherwise`.
size_t LineWidth(size_t otherwise);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PRINT_LINE_WIDTH_H_
