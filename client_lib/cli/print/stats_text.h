// The output of `spillway stats`. Names are claims of callers: characters that could move a
// terminal's cursor are printed as question marks, and escaped in JSON.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PRINT_STATS_TEXT_H_
#define SPILLWAY_CLIENT_LIB_CLI_PRINT_STATS_TEXT_H_

#include <cstddef>
#include <string>

#include "client_lib/cli/files/journal_reader.h"
#include "client_lib/cli/files/journal_stats.h"
#include "client_lib/text/style.h"

namespace spillway::cli {

// Returns the totals, a table for each dimension with its first `top` names, and requests that do
// not fit by the first dimension. A sentence if there are no lines.
std::string StatsText(const JournalStats& stats, size_t top, text::Style style);

// Returns the same as indented JSON, with the timeline. All numbers are JSON numbers; unknown
// values are absent.
std::string StatsJson(const JournalStats& stats, const DamagedLines& damaged, size_t top);

// Returns `5 % slower`, `twice as long` from 2 on; `-` if unknown.
std::string SlowdownText(const JournalSums& sums);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PRINT_STATS_TEXT_H_
