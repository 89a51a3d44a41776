// Prints the fit of a plan into each GPU, for every strategy: the budget and its source, the memory
// of the original step, and the simulated memory of the planned one.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_FIT_TEXT_H_
#define SPILLWAY_CLIENT_LIB_TEXT_FIT_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client_lib/text/style.h"
#include "spillway/v1/report.pb.h"

namespace spillway::text {

// Returns rows for FormatFacts if there is only one GPU: the strategy's setting for it
// (level_text.h), and its fit. Empty if nothing was planned for a budget or with a setting.
std::vector<std::vector<std::string>> DeviceFacts(const v1::RewriteReport& report,
                                                  Style style = Style());

// "833 ms (99% of full speed)": the share if full speed is known (not 0). Full speed is that of
// TensorFlow's own order of the ops, and nothing is faster: a better order is named.
std::string StepSpeedText(int64_t step_ns, int64_t full_speed_ns);

// Returns a block of such rows for each GPU, under its name. Empty if there is only one.
std::string FormatDeviceFacts(const v1::RewriteReport& report, Style style);

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_FIT_TEXT_H_
