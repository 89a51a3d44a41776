// Forecasts of steps as text for people.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PRINT_FORECAST_TEXT_H_
#define SPILLWAY_CLIENT_LIB_CLI_PRINT_FORECAST_TEXT_H_

#include <string>
#include <vector>

#include "client_lib/cli/print/style.h"
#include "spillway/v1/report.pb.h"
#include "spillway/v1/simulate.pb.h"

namespace spillway::cli {

// A step before and after a rewrite, side by side; nothing if `report` has no forecast.
std::string FormatBeforeAndAfter(const v1::RewriteReport& report, Style style);

// What there is to say of it in words, for FormatFacts.
std::vector<std::vector<std::string>> ForecastFacts(const v1::RewriteReport& report);

// What `spillway simulate` prints.
std::string FormatSimulation(const v1::SimulateReport& report, Style style);

// What `spillway inspect --memory` prints; at most `top` rows a table.
std::string FormatMemory(const v1::SimulateReport& report, int top, Style style);

// What `spillway explore` prints: a row for each size, as they come, then what came of it. Columns
// have fixed widths, since nobody knows the rows to come. Not thread-safe.
class ExplorationText {
 public:
  struct Columns {
    bool size_is_batch = false;  // As ExploreReport has it.
    bool swapping = false;       // As ExploreOptions has it.
  };
  ExplorationText(Columns columns, Style style) : columns_(columns), style_(style) {}

  // The row of one size; the first has the heading above it.
  std::string Row(const v1::ExploredSize& size);

  // The largest that fits, the machine and what a step is, below the rows.
  std::string Result(const v1::ExploreReport& report) const;

 private:
  std::string Heading(const std::vector<size_t>& widths) const;

  const Columns columns_;
  const Style style_;
  bool has_rows_ = false;
};

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PRINT_FORECAST_TEXT_H_
