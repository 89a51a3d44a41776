// The flag --color, and the style of the program's output.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_COLOR_FLAG_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_COLOR_FLAG_H_

#include "CLI/App.hpp"
#include "client_lib/text/style.h"

namespace spillway::cli {

// Adds --color auto|always|never to `command`, which StyleOf uses in the whole process.
void AddColorFlag(CLI::App* command);

// Returns the style for output to a file descriptor: options are flags, lines as wide as
// line_width.h says. With `auto`, the default, in colour if it is a terminal, NO_COLOR is not set
// (no-color.org), and TERM is set and not `dumb`.
text::Style StyleOf(int fd);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_COLOR_FLAG_H_
