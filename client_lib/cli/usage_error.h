// Messages for invalid command lines.
#ifndef SPILLWAY_CLIENT_LIB_CLI_USAGE_ERROR_H_
#define SPILLWAY_CLIENT_LIB_CLI_USAGE_ERROR_H_

#include <string>
#include <vector>

#include "CLI/App.hpp"

namespace spillway::cli {

// Returns one sentence for `error`, with suggestions and a pointer to the help. `words`: the
// command line without the program's name.
std::string UsageText(const CLI::App& app, const CLI::ParseError& error,
                      const std::vector<std::string>& words);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_USAGE_ERROR_H_
