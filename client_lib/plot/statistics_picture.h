// A picture of a server's answers over time: requests by outcome, swapped bytes, slowdown, and the
// jobs that swap most. Names come from callers and are untrusted.
//
// Thread safety: a pure function; plain values.
#ifndef SPILLWAY_CLIENT_LIB_PLOT_STATISTICS_PICTURE_H_
#define SPILLWAY_CLIENT_LIB_PLOT_STATISTICS_PICTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "client_lib/plot/picture.h"

namespace spillway::plot {

// One interval of time.
struct StatisticsColumn {
  int64_t rewritten = 0;
  int64_t nothing_to_do = 0;
  int64_t does_not_fit = 0;
  int64_t failed = 0;
  int64_t other = 0;
  int64_t swap_bytes = 0;
  absl::optional<double> slowdown;  // Step after / step before.
};

struct StatisticsBar {
  std::string name;
  int64_t swap_bytes = 0;
};

struct Statistics {
  int64_t start_s = 0;  // Unix time, of the first column.
  int64_t width_s = 1;
  std::vector<StatisticsColumn> columns;
  std::string bars_of;  // `job`.
  std::vector<StatisticsBar> bars;
};

// Draws `statistics`. INVALID_ARGUMENT (BAD_OPTION) if it has no columns.
absl::StatusOr<std::string> DrawStatistics(const Statistics& statistics,
                                           const PictureOptions& options);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_STATISTICS_PICTURE_H_
