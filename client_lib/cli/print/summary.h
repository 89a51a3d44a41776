// The account of a rewrite for people, from its report.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PRINT_SUMMARY_H_
#define SPILLWAY_CLIENT_LIB_CLI_PRINT_SUMMARY_H_

#include <string>

#include "absl/strings/string_view.h"
#include "client_lib/cli/print/style.h"
#include "spillway/v1/report.pb.h"

namespace spillway::cli {

// Some lines of at most kMaxLineWidth characters: the outcome, a row per device, nodes, times,
// warnings and advice. What the report does not say is left out. `name` is that of the MetaGraph,
// empty where there is but one graph.
std::string FormatSummary(const v1::RewriteReport& report, absl::string_view name = "",
                          Style style = Style());

// The line for a MetaGraph that is kept, and why.
std::string FormatKept(absl::string_view name, absl::string_view why, Style style = Style());

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PRINT_SUMMARY_H_
