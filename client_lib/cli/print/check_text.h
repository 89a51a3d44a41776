// What `spillway check` prints.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PRINT_CHECK_TEXT_H_
#define SPILLWAY_CLIENT_LIB_CLI_PRINT_CHECK_TEXT_H_

#include <string>

#include "client_lib/cli/print/style.h"
#include "spillway/v1/check.pb.h"

namespace spillway::cli {

// A sentence on the swaps, a table of figures as simulated and as seen, and what there is to note.
std::string FormatCheck(const v1::RunCheck& check, Style style);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PRINT_CHECK_TEXT_H_
