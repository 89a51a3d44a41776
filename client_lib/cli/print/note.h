// Notes on standard error that are not errors, such as values that were filled in.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PRINT_NOTE_H_
#define SPILLWAY_CLIENT_LIB_CLI_PRINT_NOTE_H_

#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"

namespace spillway::cli {

// Prints `line`, unless it is empty.
inline void TellNote(const std::string& line) {
  if (!line.empty()) std::cerr << absl::StrCat("spillway: ", line, "\n");
}

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PRINT_NOTE_H_
