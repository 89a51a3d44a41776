// What `spillway stats` prints of a journal. Names are claims of whoever asked: what could move a
// terminal's cursor is shown as a question mark, and JSON escapes it.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PRINT_STATS_TEXT_H_
#define SPILLWAY_CLIENT_LIB_CLI_PRINT_STATS_TEXT_H_

#include <cstddef>
#include <string>

#include "client_lib/cli/files/journal_reader.h"
#include "client_lib/cli/files/journal_stats.h"
#include "client_lib/cli/print/style.h"

namespace spillway::cli {

// The totals; a table for each dimension with its first `top` names; what does not fit by the first
// dimension. A sentence if there is no line.
std::string StatsText(const JournalStats& stats, size_t top, Style style);

// The same, indented, with the timeline. Numbers are numbers, and what is not known is not there.
std::string StatsJson(const JournalStats& stats, const DamagedLines& damaged, size_t top);

// `5 % slower`, `twice as long` from 2 on; `-` where it is not known.
std::string SlowdownText(const JournalSums& sums);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PRINT_STATS_TEXT_H_
