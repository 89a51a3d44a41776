// The output of `spillway check`.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_CHECK_TEXT_H_
#define SPILLWAY_CLIENT_LIB_TEXT_CHECK_TEXT_H_

#include <string>

#include "client_lib/text/style.h"
#include "spillway/v1/check.pb.h"

namespace spillway::text {

// Returns a sentence on the swaps, a table of simulated and measured figures, and notes.
std::string FormatCheck(const v1::RunCheck& check, Style style);

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_CHECK_TEXT_H_
