// The summary of a rewrite for people, from its report.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_SUMMARY_H_
#define SPILLWAY_CLIENT_LIB_TEXT_SUMMARY_H_

#include <string>

#include "absl/strings/string_view.h"
#include "client_lib/text/recompute_choice.h"
#include "client_lib/text/style.h"
#include "spillway/v1/report.pb.h"

namespace spillway::text {

// The most lines of a FormatSummary whose summary sentence takes two.
inline constexpr int kSummaryLines = 13;

// Returns lines of at most the style's width: the outcome, whether more recomputation would be
// clearly faster (unless `recompute` was given), the memory of each GPU before and after
// against its limit, the step's time, the machine, warnings and advice; omitted ones are counted.
// Values missing from the report are omitted. `name`: the MetaGraph's, empty if there is only one
// graph.
std::string FormatSummary(const v1::RewriteReport& report, absl::string_view name = "",
                          Style style = Style(),
                          RecomputeChoice recompute = RecomputeChoice::kDefault);

// Returns everything that the report says for people: also the search, bounds, variations, copies
// of each device, shares of the step's time, nodes and stages.
std::string FormatDetails(const v1::RewriteReport& report, absl::string_view name = "",
                          Style style = Style());

// Returns the line for a MetaGraph that is kept unchanged, with the reason.
std::string FormatKept(absl::string_view name, absl::string_view why, Style style = Style());

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_SUMMARY_H_
