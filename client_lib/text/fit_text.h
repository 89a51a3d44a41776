// Prints the fit of a plan into each GPU, for every strategy: the budget and its source, the memory
// of the original step, and the simulated memory of the planned one.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_FIT_TEXT_H_
#define SPILLWAY_CLIENT_LIB_TEXT_FIT_TEXT_H_

#include <string>
#include <vector>

#include "client_lib/text/style.h"
#include "spillway/v1/report.pb.h"

namespace spillway::text {

// Returns rows for FormatFacts if there is only one GPU: the strategy's setting for it
// (level_text.h), and its fit. Empty if nothing was planned for a budget or with a setting.
std::vector<std::vector<std::string>> DeviceFacts(const v1::RewriteReport& report,
                                                  Style style = Style());

// Returns a block of such rows for each GPU, under its name. Empty if there is only one.
std::string FormatDeviceFacts(const v1::RewriteReport& report, Style style);

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_FIT_TEXT_H_
