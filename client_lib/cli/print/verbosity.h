// How much a command prints on standard error besides errors: --quiet.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PRINT_VERBOSITY_H_
#define SPILLWAY_CLIENT_LIB_CLI_PRINT_VERBOSITY_H_

namespace spillway::cli {

// kQuiet: no progress and no notices of retries.
enum class Verbosity { kNormal, kQuiet };

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PRINT_VERBOSITY_H_
