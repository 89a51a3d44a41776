// The account of a rewrite for people, from its report.
#ifndef SPILLWAY_CLIENT_LIB_CLI_SUMMARY_H_
#define SPILLWAY_CLIENT_LIB_CLI_SUMMARY_H_

#include <string>

#include "spillway/v1/report.pb.h"

namespace spillway::cli {

// Some lines: the outcome, a row per device, nodes, times, warnings and advice. What the report
// does not say is left out.
std::string FormatSummary(const v1::RewriteReport& report);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_SUMMARY_H_
